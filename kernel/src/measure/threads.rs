//! What is counted of each thread of a program: the difference of what the session has counted when
//! the thread's turn begins and ends.
//!
//! Threads take turns on one CPU (decision 16), so the counts of all threads together are those of
//! the session. Only threads that ask for their counts have a row, and only a session in which one
//! has asked takes any time at a switch of threads.

use alloc::{boxed::Box, vec, vec::Vec};

use tally_abi::{
    Error,
    thread::{CYCLES, EVENT_WORDS, HEADER_WORDS, TID, TIME_NS, words},
};
use tally_engine::Session;

use crate::{machine::clock, memory::heap};

/// The most threads of a session that have rows.
const MAX_ROWS: usize = 1024;

/// The counts of the threads of one session.
pub struct ThreadCounts {
    rows: Vec<Row>,
    /// The thread that runs, and what the session had counted when its turn began.
    running: u32,
    since: Box<[u64]>,
}

struct Row {
    thread: u32,
    /// As [`tally_abi::thread`] has them; the first two words are 0.
    counts: Box<[u64]>,
}

/// What the session has counted, as [`tally_abi::thread`] has it for a program of one thread.
fn counted(session: &Session) -> impl Iterator<Item = u64> + '_ {
    let header = (0..HEADER_WORDS).map(|word| if word == CYCLES { session.cycles() } else { 0 });
    header.chain((0..session.events()).flat_map(|event| session.counted(event)))
}

impl ThreadCounts {
    /// No thread's counts: `running` runs.
    pub fn new(session: &Session, running: u32) -> ThreadCounts {
        ThreadCounts { rows: Vec::new(), running, since: counted(session).collect() }
    }

    /// The running thread's turn ends, and that of `next` begins. Allocates nothing.
    pub fn switch(&mut self, session: &Session, next: u32) {
        let running = self.running;
        let mut row = self.rows.iter_mut().find(|row| row.thread == running);
        for (word, (since, now)) in self.since.iter_mut().zip(counted(session)).enumerate() {
            if let Some(row) = &mut row {
                row.counts[word] += now.saturating_sub(*since);
            }
            *since = now;
        }
        self.running = next;
    }

    /// Forgets a thread that has ended.
    pub fn forget(&mut self, thread: u32) {
        self.rows.retain(|row| row.thread != thread);
    }

    /// The words of the running thread, up to the last [`Self::switch`].
    ///
    /// # Errors
    /// It has no row yet, and no memory is left for one, or there are too many.
    pub fn running(&mut self) -> Result<impl Iterator<Item = u64> + '_, Error> {
        let thread = self.running;
        let known = self.rows.iter().position(|row| row.thread == thread);
        let index = match known {
            Some(index) => index,
            None if self.rows.len() >= MAX_ROWS || !heap::has_room() => {
                return Err(Error::NoMemory);
            }
            None => {
                let events = (self.since.len() - HEADER_WORDS) / EVENT_WORDS;
                self.rows.push(Row { thread, counts: vec![0; words(events)].into() });
                self.rows.len() - 1
            }
        };
        let words = self.rows[index].counts.iter().enumerate();
        Ok(words.map(move |(word, count)| match word {
            TID => thread.into(),
            TIME_NS => clock::now_ns(),
            _ => *count,
        }))
    }
}
