//! The slots of dispatch that no retired micro-operation used, by cause.
//!
//! Each cycle has as many slots as dispatch is wide. Dispatch uses them in order, so one position
//! is enough: all slots before it belong to a micro-operation or to a cause.

use crate::{counts::Counts, signal::Signal};

/// Position up to which every slot has a user or a cause.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    width: u64,
    /// Slots since the first cycle.
    at: u64,
}

impl Slots {
    pub(super) fn new(width: u16) -> Slots {
        Slots { width: width.into(), at: 0 }
    }

    /// Assigns the next `count` slots to micro-operations.
    #[inline]
    pub(super) fn take(&mut self, count: u64) {
        self.at += count;
    }

    /// Returns whether a slot before cycle `end` has neither user nor cause.
    #[inline]
    pub(super) fn are_behind(&self, end: u64) -> bool {
        self.at < end * self.width
    }

    /// Charges the slots before cycle `end` to `cause`.
    #[inline]
    pub(super) fn until(&mut self, end: u64, cause: Signal, counts: &mut Counts) {
        self.some_until(end, u64::MAX, cause, counts);
    }

    /// Charges the slots before cycle `end` to `cause`, but at most `most` slots.
    #[inline]
    pub(super) fn some_until(&mut self, end: u64, most: u64, cause: Signal, counts: &mut Counts) {
        let lost = (end * self.width).saturating_sub(self.at).min(most);
        counts[cause] += lost;
        self.at += lost;
    }

    /// Charges the slots before cycle `end` to fetch: those of a cycle in which dispatch has used
    /// some to its bandwidth, those of whole cycles to its latency.
    #[inline]
    pub(super) fn fetch_until(&mut self, end: u64, counts: &mut Counts) {
        let begun = self.at.div_ceil(self.width).min(end);
        self.until(begun, Signal::SlotsFetchBandwidth, counts);
        self.until(end, Signal::SlotsFetchLatency, counts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_one_user_or_cause() {
        let (mut slots, mut counts) = (Slots::new(4), Counts::ZERO);
        slots.take(3);
        slots.fetch_until(3, &mut counts);
        slots.some_until(6, 5, Signal::SlotsWrongPath, &mut counts);
        slots.until(6, Signal::SlotsMemory, &mut counts);
        slots.until(5, Signal::SlotsCore, &mut counts);
        let lost = [
            Signal::SlotsFetchBandwidth,
            Signal::SlotsFetchLatency,
            Signal::SlotsWrongPath,
            Signal::SlotsMemory,
            Signal::SlotsCore,
        ];
        assert_eq!(lost.map(|cause| counts[cause]), [1, 8, 5, 7, 0]);
    }
}
