//! Slice timer.

use tally_engine::Pinned;

use super::features::{Features, RecordSupport};
use crate::registers::intel::{PerfGlobalOvfCtrl, PerfGlobalStatus};

/// Slice timer, with values that the overflow path would otherwise compute each time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    pub(super) event: Pinned,
    /// Address of its counter.
    pub(super) address: u32,
    /// Value that acknowledges the timer's overflow, and those of the counters of groups: one that
    /// wraps without an interrupt must leave no bit, which would be taken for the overflow of a
    /// later event that interrupts.
    pub(super) acknowledge: PerfGlobalOvfCtrl,
    /// Mask of the status bits of counters that interrupt: the timer, and those preloaded.
    pub(super) interrupting: u64,
}

impl Timer {
    /// `more` are further bits to acknowledge.
    pub(super) fn new(event: Pinned, features: &Features, more: PerfGlobalOvfCtrl) -> Timer {
        let fixed = PerfGlobalOvfCtrl::FIXED0 | PerfGlobalOvfCtrl::FIXED1;
        let third = if features.reference { PerfGlobalOvfCtrl::FIXED2.bits() } else { 0 };
        let metrics = PerfGlobalOvfCtrl::FIXED3 | PerfGlobalOvfCtrl::METRICS;
        let metrics = if features.metrics { metrics.bits() } else { 0 };
        let records = match features.records {
            RecordSupport::None => 0,
            RecordSupport::DebugStore { .. } => PerfGlobalStatus::DS_BUFFER.bits(),
            RecordSupport::Buffer { .. } => PerfGlobalStatus::RECORDS.bits(),
        };
        let bits = fixed.bits() | third | metrics | records | u64::from(features.general);
        Timer {
            event,
            address: features.addresses.fixed(event as u8),
            acknowledge: PerfGlobalOvfCtrl::from_bits_retain(bits) | more,
            interrupting: PerfGlobalOvfCtrl::FIXED0.bits() << event as u8,
        }
    }
}
