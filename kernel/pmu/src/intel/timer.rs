//! The slice timer.

use tally_engine::Pinned;

use crate::registers::intel::PerfGlobalOvfCtrl;

/// The slice timer, and what the overflow path would otherwise compute each time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    pub(super) event: Pinned,
    /// What acknowledges its overflow.
    pub(super) acknowledge: PerfGlobalOvfCtrl,
}

impl Timer {
    pub(super) fn new(event: Pinned, freezes: bool) -> Timer {
        let bit = PerfGlobalOvfCtrl::FIXED0.bits() << event as u8;
        let mut acknowledge = PerfGlobalOvfCtrl::from_bits_retain(bit);
        acknowledge.set(PerfGlobalOvfCtrl::CTR_FRZ, freezes);
        Timer { event, acknowledge }
    }
}
