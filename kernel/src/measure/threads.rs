//! Counts of each thread of a program: the difference of the session's counts between the beginning
//! and the end of the thread's turns.
//!
//! Threads take turns on one CPU (decision 16), so the counts of all threads together are those of
//! the session. Only threads that request their counts have a row, and only a session with such a
//! thread takes any time at a switch of threads.

use alloc::{boxed::Box, vec, vec::Vec};

use tally_abi::{
    Error,
    thread::{CYCLES, EVENT_WORDS, HEADER_WORDS, INSTRUCTIONS, TID, TIME_NS, words},
};
use tally_engine::Session;

use crate::{machine::clock, memory::heap};

/// Maximum number of threads of a session with rows.
const MAX_ROWS: usize = 1024;

/// The counts of the threads of one session.
pub struct ThreadCounts {
    rows: Vec<Row>,
    /// The running thread, and the session's counts when its turn began.
    running: u32,
    since: Box<[u64]>,
}

struct Row {
    thread: u32,
    /// Words of [`tally_abi::thread`]; the first two are 0.
    counts: Box<[u64]>,
}

/// The session's counts, in the words of [`tally_abi::thread`], as if the program had one thread.
fn counted(session: &Session) -> impl Iterator<Item = u64> + '_ {
    let header = (0..HEADER_WORDS).map(|word| match word {
        CYCLES => session.cycles(),
        INSTRUCTIONS => session.instructions(),
        _ => 0,
    });
    header.chain((0..session.events()).flat_map(|event| session.counted(event)))
}

impl ThreadCounts {
    /// Makes an empty table, while the thread `running` runs.
    pub fn new(session: &Session, running: u32) -> ThreadCounts {
        ThreadCounts { rows: Vec::new(), running, since: counted(session).collect() }
    }

    /// Ends the running thread's turn, and starts that of `next`. Allocates nothing.
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
    /// The thread has no row yet, and there is no memory for one, or there are too many.
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
