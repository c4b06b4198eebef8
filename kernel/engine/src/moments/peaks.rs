//! The largest slices of an event, in the overflow path.

use super::base::PerBase;

/// Number of an event's largest slices that are kept.
pub const PEAKS: usize = 4;

/// A slice of an event, not restated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Events of the slice; 0 if there was no such slice.
    pub events: u64,
    /// The slice's bases.
    pub bases: PerBase<u64>,
}

/// Inserts `peak` in order, and drops the smallest. Becomes rarer the longer a session runs.
#[cold]
#[inline(never)]
pub(super) fn insert(peaks: &mut [Peak; PEAKS], peak: Peak) {
    peaks[PEAKS - 1] = peak;
    for place in (1..PEAKS).rev() {
        if peaks[place].events <= peaks[place - 1].events {
            return;
        }
        peaks.swap(place, place - 1);
    }
}
