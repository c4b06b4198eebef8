//! Logical counters with a chosen start value.
//!
//! ```no_run
//! # use tally::{Bank, Error, Session};
//! # fn count(session: &Session, bank: &Bank<'_>) -> Result<(), Error> {
//! let mut misses = bank.counter(0).unwrap().reset();      // shows 0, and what comes from here on
//! // … what is counted …
//! println!("{}", misses.read());
//! misses.preload(0_u64.wrapping_sub(4096));               // shows 0 after 4,096 events
//! session.set_threshold(0, misses.count_at(0))            // which this threshold fires at
//! # }
//! ```
//!
//! The bank's counter itself is unchanged, as are thresholds, samples and readings of its session;
//! so one event can have any number of preloaded counters. Paper 002 preloads the low bits of a
//! counter, so that a threshold fires at a count that its comparator cannot represent (section 5).

use crate::bank::{Details, LogicalCounter};

/// A logical counter that had a chosen value at one moment, and counts on from it. Its value is the
/// chosen one plus the increase of the logical counter since then, modulo 2⁶⁴.
///
/// The values of an exact event are exact. For an estimated event, the difference of two estimates
/// of the whole count is added to the value, so the half width is at most the sum of those of both
/// moments ([`Details::half_width_95`]).
#[derive(Clone, Copy, Debug)]
pub struct PreloadedCounter<'a> {
    counter: LogicalCounter<'a>,
    /// Offset that is added to the logical counter's value.
    offset: u64,
    /// Details of the logical counter when it was preloaded.
    then: Details,
}

impl<'a> LogicalCounter<'a> {
    /// Returns a counter that has `value` now and counts on from it.
    pub fn preload(&self, value: u64) -> PreloadedCounter<'a> {
        let then = self.details();
        // Last, so that the events of `details` are not counted.
        PreloadedCounter { counter: *self, offset: value.wrapping_sub(self.read()), then }
    }

    /// Returns a counter that counts from 0 from now on.
    pub fn reset(&self) -> PreloadedCounter<'a> {
        self.preload(0)
    }
}

impl PreloadedCounter<'_> {
    /// Reads the value like [`LogicalCounter::read`], with one more instruction.
    #[inline]
    pub fn read(&self) -> u64 {
        self.counter.read().wrapping_add(self.offset)
    }

    /// Reads the value with its error and its origin. The half width is that of the value: the sum
    /// of those of the whole count now and when the counter was preloaded; 0 for an exact count,
    /// `None` while either is not known, for example for an event that was not counted yet.
    pub fn details(&self) -> Details {
        let now = self.counter.details();
        let both = now.half_width_95.zip(self.then.half_width_95);
        Details {
            value: now.value.wrapping_add(self.offset),
            half_width_95: both.map(|(now, then)| now + then),
            ..now
        }
    }

    /// Preloads the counter again.
    pub fn preload(&mut self, value: u64) {
        *self = self.counter.preload(value);
    }

    /// Restarts counting from 0.
    pub fn reset(&mut self) {
        self.preload(0);
    }

    /// Returns the count of the logical counter at which this one reaches `value`, as an argument
    /// for [`Session::set_threshold`](crate::Session::set_threshold). A count that has been passed
    /// fires at once.
    pub fn count_at(&self, value: u64) -> u64 {
        value.wrapping_sub(self.offset)
    }
}
