//! Counts of one thread from a moment on: to reset, to read and to add up.
//!
//! ```no_run
//! # use tally::{Error, Session};
//! # fn count(session: &Session) -> Result<(), Error> {
//! let mut part = session.part()?;     // counts from here on, this thread alone
//! // … what is counted …
//! part.accumulate()?;                 // ends a stretch and begins the next
//! // … what is not …
//! part.skip()?;                       // leaves the stretch out
//! // … what is counted …
//! for reading in part.read()? {
//!     // exact, estimated with its error, or not measured: see `Value`
//! }
//! part.reset()                        // counts from here on, from 0
//! # }
//! ```
//!
//! The session itself goes on: a part is differences of what it counted, not scaled
//! ([`tally_abi::thread`]), so any number of parts can be of one session, in any thread.

use alloc::{vec, vec::Vec};
use core::marker::PhantomData;

use tally_abi::{
    Error, Reading, Value,
    reading::ReadingWords,
    thread::{self, COUNTED_CYCLES, CYCLES, EVENT_WORDS, EVENTS, HEADER_WORDS},
};

use crate::{
    counting::{Session, decode},
    error::check,
    sums::{Sums, Whole},
    sys,
};

/// What a session counts of one thread from a moment on. The thread that made it is the one that
/// is counted, and the only one that may use it: a call by another is refused.
#[derive(Debug)]
pub struct Part<'a> {
    /// The session's number.
    session: u64,
    open: PhantomData<&'a Session>,
    /// The words when the present stretch began.
    began: Vec<u64>,
    now: Vec<u64>,
    cycles: u64,
    /// By event.
    sums: Vec<Sums>,
}

impl Session {
    /// Counts the calling thread from here on.
    ///
    /// # Errors
    /// The kernel has no memory for one more thread of the session.
    pub fn part(&self) -> Result<Part<'_>, Error> {
        Part::of(self.id())
    }

    /// Writes what was counted of the calling thread since its first call to `words`, as
    /// [`tally_abi::thread`] has it: integers that add up, not scaled. There are
    /// [`thread::words`] of them; as many are written as there is room for.
    ///
    /// # Errors
    /// The kernel has no memory for one more thread of the session.
    pub fn read_thread(&self, words: &mut [u64]) -> Result<(), Error> {
        read_thread(self.id(), words)
    }
}

fn read_thread(session: u64, words: &mut [u64]) -> Result<(), Error> {
    let arguments = [session, words.as_mut_ptr() as u64, words.len() as u64, 0, 0, 0];
    // SAFETY: the buffer is valid for writing its length.
    check(unsafe { sys::tally_call(sys::SESSION_THREAD, arguments) }).map(drop)
}

/// What is known of the `events` events of a session, in the order of the list.
///
/// # Errors
/// Those of [`sys::SESSION_READ`].
pub(crate) fn wholes(session: u64, events: usize) -> Result<Vec<Whole>, Error> {
    let read = |call| {
        let mut words: Vec<ReadingWords> = vec![[0; 8]; events];
        read_session(session, &mut words, call)?;
        decode(words)
    };
    let best = read(sys::SESSION_READ)?;
    let is_estimated = |of: &Reading| matches!(of.value, Value::Estimated { .. });
    let by_cycles =
        if best.iter().any(is_estimated) { read(sys::SESSION_SCALED)? } else { best.clone() };
    let whole = |(best, by): (Reading, Reading)| Whole {
        cycles: best.total_cycles,
        value: best.value,
        by_cycles: by.value,
    };
    Ok(best.into_iter().zip(by_cycles).map(whole).collect())
}

/// Has a call write the values of a session. Returns the number of its events.
fn read_session(session: u64, words: &mut [ReadingWords], call: u64) -> Result<usize, Error> {
    let arguments = [session, words.as_mut_ptr() as u64, words.len() as u64, 0, 0, 0];
    // SAFETY: the buffer is valid for writing its length.
    let events = check(unsafe { sys::tally_call(call, arguments) })?;
    Ok(events as usize)
}

impl Part<'_> {
    /// A part of the session of this number, which may close before it: then its calls fail.
    #[doc(hidden)]
    pub fn of(session: u64) -> Result<Self, Error> {
        let events = read_session(session, &mut [], sys::SESSION_READ)?;
        let mut began = vec![0; thread::words(events)];
        read_thread(session, &mut began)?;
        let (now, sums) = (began.clone(), vec![Sums::default(); events]);
        Ok(Part { session, open: PhantomData, began, now, cycles: 0, sums })
    }

    /// Counts from here on, from 0.
    ///
    /// # Errors
    /// `WrongState`: another thread made the part.
    pub fn reset(&mut self) -> Result<(), Error> {
        self.skip()?;
        self.cycles = 0;
        self.sums.fill(Sums::default());
        Ok(())
    }

    /// Ends a stretch without adding it, and begins the next.
    ///
    /// # Errors
    /// As [`Self::reset`].
    pub fn skip(&mut self) -> Result<(), Error> {
        self.update()?;
        core::mem::swap(&mut self.began, &mut self.now);
        Ok(())
    }

    /// Ends a stretch, adds it, and begins the next. The errors of events that share counters come
    /// from the spread between stretches, so several short ones are better than a long one.
    ///
    /// # Errors
    /// As [`Self::reset`].
    pub fn accumulate(&mut self) -> Result<(), Error> {
        self.update()?;
        (self.cycles, self.sums) = self.with_stretch();
        core::mem::swap(&mut self.began, &mut self.now);
        Ok(())
    }

    /// Every event of the stretches that were added and of the present one, in the order of the
    /// session's list. An event that was on a counter all that time is exact. Another needs four
    /// stretches in which it was counted, or one in which it was counted for four slices.
    ///
    /// # Errors
    /// As [`Self::reset`].
    pub fn read(&mut self) -> Result<Vec<Reading>, Error> {
        self.update()?;
        let (cycles, sums) = self.with_stretch();
        let all = sums.iter().zip(wholes(self.session, sums.len())?);
        Ok(all.map(|(sums, whole)| sums.reading(cycles, whole)).collect())
    }

    fn update(&mut self) -> Result<(), Error> {
        read_thread(self.session, &mut self.now)?;
        if self.now[thread::TID] == self.began[thread::TID] {
            Ok(())
        } else {
            Err(Error::WrongState)
        }
    }

    /// The sums with the present stretch, up to [`Self::update`].
    fn with_stretch(&self) -> (u64, Vec<Sums>) {
        let since = |word: usize| self.now[word].saturating_sub(self.began[word]);
        let mut sums = self.sums.clone();
        for (event, sums) in sums.iter_mut().enumerate() {
            let first = HEADER_WORDS + event * EVENT_WORDS;
            sums.visit(since(first + EVENTS), since(first + COUNTED_CYCLES));
        }
        (self.cycles + since(CYCLES), sums)
    }
}
