//! The largest slices of an event, in the overflow path.

use super::base::PerBase;

/// The number of an event's largest slices that are kept.
pub const PEAKS: usize = 4;

/// One slice of one event, not restated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Its events; 0 if there was no such slice.
    pub events: u64,
    /// Its bases.
    pub bases: PerBase<u64>,
}

/// Inserts `peak` in order, and drops the least. The longer a session runs, the rarer.
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
