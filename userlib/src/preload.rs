//! Logical counters that show a chosen value from a moment on.
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
//! The bank's counter itself goes on, as do thresholds, samples and readings of its session; so any
//! number of preloaded counters can be of one event. Paper 002 preloads the low bits of a counter,
//! so that a threshold fires at a count that its comparator does not reach (section 5).

use crate::bank::{Details, LogicalCounter};

/// A logical counter that showed a chosen value at one moment, and has counted on since. It shows
/// the value plus what its logical counter shows more, in 64 bits, beyond which it begins at 0.
///
/// Of an exact event each value is exact. Of an estimated one, the difference of two estimates of
/// the whole count is added to the value, so that its half width is at most the sum of those of
/// both moments ([`Details::half_width_95`]).
#[derive(Clone, Copy, Debug)]
pub struct PreloadedCounter<'a> {
    counter: LogicalCounter<'a>,
    /// What is added to the logical counter's value.
    offset: u64,
    /// When it was preloaded.
    then: Details,
}

impl<'a> LogicalCounter<'a> {
    /// The counter, with `value` in place of its value of now.
    pub fn preload(&self, value: u64) -> PreloadedCounter<'a> {
        let then = self.details();
        // Last: what `details` takes is not counted.
        PreloadedCounter { counter: *self, offset: value.wrapping_sub(self.read()), then }
    }

    /// The counter, counting from 0 from now on.
    pub fn reset(&self) -> PreloadedCounter<'a> {
        self.preload(0)
    }
}

impl PreloadedCounter<'_> {
    /// Reads the value, as [`LogicalCounter::read`] with one instruction more.
    #[inline]
    pub fn read(&self) -> u64 {
        self.counter.read().wrapping_add(self.offset)
    }

    /// Reads the value with its error and its origin. The half width is that of the value: the sum
    /// of those of the whole count now and when the counter was preloaded; 0 for an exact count,
    /// `None` while either is not known, as it is for an event that was not counted yet.
    pub fn details(&self) -> Details {
        let now = self.counter.details();
        let both = now.half_width_95.zip(self.then.half_width_95);
        Details {
            value: now.value.wrapping_add(self.offset),
            half_width_95: both.map(|(now, then)| now + then),
            ..now
        }
    }

    /// Preloads it again.
    pub fn preload(&mut self, value: u64) {
        *self = self.counter.preload(value);
    }

    /// Counts from 0 from now on.
    pub fn reset(&mut self) {
        self.preload(0);
    }

    /// The count of the logical counter at which this one shows `value`: what
    /// [`Session::set_threshold`](crate::Session::set_threshold) takes. A count that it has passed
    /// fires at once.
    pub fn count_at(&self, value: u64) -> u64 {
        value.wrapping_sub(self.offset)
    }
}
