//! Slice timer.

use tally_engine::Pinned;

use crate::registers::intel::PerfGlobalOvfCtrl;

/// Slice timer, with values that the overflow path would otherwise compute each time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    pub(super) event: Pinned,
    /// Value that acknowledges the timer's overflow.
    pub(super) acknowledge: PerfGlobalOvfCtrl,
}

impl Timer {
    pub(super) fn new(event: Pinned) -> Timer {
        let bit = PerfGlobalOvfCtrl::FIXED0.bits() << event as u8;
        Timer { event, acknowledge: PerfGlobalOvfCtrl::from_bits_retain(bit) }
    }
}
