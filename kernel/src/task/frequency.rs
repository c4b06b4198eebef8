//! The frequency of the cores on which a program runs.

use crate::arch::cycles;

/// Core cycles of a program's turns on CPUs, and cycles of the time-stamp counter's rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frequency {
    /// The CPU's counts when the present turn began.
    since: Option<[u64; 2]>,
    /// Counts of the turns before.
    before: [u64; 2],
}

impl Frequency {
    /// Records that a turn begins.
    pub fn begin(&mut self) {
        self.since = cycles::both();
    }

    /// Records that the turn ends, on the same CPU.
    pub fn end(&mut self) {
        if let (Some(since), Some(now)) = (self.since.take(), cycles::both()) {
            for ((before, since), now) in self.before.iter_mut().zip(since).zip(now) {
                *before = before.wrapping_add(now.wrapping_sub(since));
            }
        }
    }

    /// Core cycles and cycles of the counter's rate in all turns; `None` if the processor does not
    /// count them.
    pub fn cycles(&self) -> Option<[u64; 2]> {
        Some(self.before).filter(|[_, reference]| *reference > 0)
    }
}
