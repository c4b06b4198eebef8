//! Counts of one thread from a moment on, with reset, reading and accumulation.
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
//! The session itself continues: a part consists of differences of the session's unscaled counts
//! ([`tally_abi::thread`]), so one session can have any number of parts, in any thread.

use alloc::{vec, vec::Vec};
use core::marker::PhantomData;

use tally_abi::{Error, Reading, Value, reading::ReadingWords, thread};

use crate::{
    counting::{Session, decode},
    error::check,
    sums::{self, Bases, Sums, Whole},
    sys,
};

/// Counts of one thread in a session, from a moment on. Only the thread that made the part is
/// counted, and only it may use the part: a call by another thread is refused.
#[derive(Debug)]
pub struct Part<'a> {
    /// Number of the session.
    session: u64,
    open: PhantomData<&'a Session>,
    /// Words at the start of the current stretch.
    began: Vec<u64>,
    now: Vec<u64>,
    bases: Bases,
    /// Sums by event.
    sums: Vec<Sums>,
}

impl Session {
    /// Starts a part that counts the calling thread.
    ///
    /// # Errors
    /// The kernel has no memory for another thread of the session.
    pub fn part(&self) -> Result<Part<'_>, Error> {
        Part::of(self.id())
    }

    /// Writes the counts of the calling thread since its first call to `words`, in the format of
    /// [`tally_abi::thread`]: additive integers, not scaled. There are [`thread::words`] of them;
    /// as many are written as fit.
    ///
    /// # Errors
    /// The kernel has no memory for another thread of the session.
    pub fn read_thread(&self, words: &mut [u64]) -> Result<(), Error> {
        read_thread(self.id(), words)
    }
}

fn read_thread(session: u64, words: &mut [u64]) -> Result<(), Error> {
    let arguments = [session, words.as_mut_ptr() as u64, words.len() as u64, 0, 0, 0];
    // SAFETY: the buffer is valid for writing its length.
    check(unsafe { sys::tally_call(sys::SESSION_THREAD, arguments) }).map(drop)
}

/// Returns the values of a session's `events` events for the whole session, in the order of the
/// list.
///
/// # Errors
/// See [`sys::SESSION_READ`].
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

/// Makes a call write the values of a session. Returns the number of its events.
fn read_session(session: u64, words: &mut [ReadingWords], call: u64) -> Result<usize, Error> {
    let arguments = [session, words.as_mut_ptr() as u64, words.len() as u64, 0, 0, 0];
    // SAFETY: the buffer is valid for writing its length.
    let events = check(unsafe { sys::tally_call(call, arguments) })?;
    Ok(events as usize)
}

impl Part<'_> {
    /// Makes a part of the session with this number, which may close before the part: then the
    /// part's calls fail.
    #[doc(hidden)]
    pub fn of(session: u64) -> Result<Self, Error> {
        let events = read_session(session, &mut [], sys::SESSION_READ)?;
        let mut began = vec![0; thread::words(events)];
        read_thread(session, &mut began)?;
        let (now, sums) = (began.clone(), vec![Sums::default(); events]);
        Ok(Part { session, open: PhantomData, began, now, bases: [0; 2], sums })
    }

    /// Restarts counting from 0.
    ///
    /// # Errors
    /// `WrongState`: another thread made the part.
    pub fn reset(&mut self) -> Result<(), Error> {
        self.skip()?;
        self.bases = [0; 2];
        self.sums.fill(Sums::default());
        Ok(())
    }

    /// Ends a stretch without adding it, and begins the next.
    ///
    /// # Errors
    /// See [`Self::reset`].
    pub fn skip(&mut self) -> Result<(), Error> {
        self.update()?;
        core::mem::swap(&mut self.began, &mut self.now);
        Ok(())
    }

    /// Ends a stretch, adds it, and begins the next. The errors of events that share counters are
    /// computed from the spread between stretches, so several short stretches are better than a
    /// long one.
    ///
    /// # Errors
    /// See [`Self::reset`].
    pub fn accumulate(&mut self) -> Result<(), Error> {
        self.update()?;
        (self.bases, self.sums) = self.with_stretch();
        core::mem::swap(&mut self.began, &mut self.now);
        Ok(())
    }

    /// Reads every event over the added stretches and the current one, in the order of the
    /// session's list. An event that was on a counter for all that time is exact. Any other event
    /// needs four stretches in which it was counted, or one in which it was counted for four
    /// slices.
    ///
    /// # Errors
    /// See [`Self::reset`].
    pub fn read(&mut self) -> Result<Vec<Reading>, Error> {
        self.update()?;
        let (bases, sums) = self.with_stretch();
        let all = sums.iter().zip(wholes(self.session, sums.len())?);
        Ok(all.map(|(sums, whole)| sums.reading(bases, whole)).collect())
    }

    fn update(&mut self) -> Result<(), Error> {
        read_thread(self.session, &mut self.now)?;
        if self.now[thread::TID] == self.began[thread::TID] {
            Ok(())
        } else {
            Err(Error::WrongState)
        }
    }

    /// Returns the sums including the current stretch, up to [`Self::update`].
    fn with_stretch(&self) -> (Bases, Vec<Sums>) {
        let since = |word: usize| self.now[word].saturating_sub(self.began[word]);
        let (mut bases, mut sums) = (self.bases, self.sums.clone());
        sums::add(&mut bases, sums::visit(&mut sums, since));
        (bases, sums)
    }
}
