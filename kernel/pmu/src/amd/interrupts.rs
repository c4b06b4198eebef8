//! Counters that interrupt: those that are preloaded for thresholds, and the op sampler.

use core::mem::take;

use tally_abi::bank::PINNED_SLOT;
use tally_engine::{MAX_GENERAL, Pinned, Pmu, for_each_counter};

use super::{Amd, counter_of};
use crate::{bus::Bus, registers::amd::PerfCtl};

impl<B: Bus> Amd<B> {
    /// See [`tally_engine::Pmu::preload`].
    pub(super) fn preload_slot(&mut self, slot: usize, remaining: u64) -> u64 {
        let always = slot.checked_sub(PINNED_SLOT).and_then(|event| Pinned::ALL.get(event));
        let index = always.map_or(slot % MAX_GENERAL, |event| counter_of(*event).into());
        let select = self.held(index);
        if let Amd { ibs: Some(ibs), bus, .. } = self
            && always.is_none()
            && ibs.arm(bus, index, select, remaining)
        {
            return bus.count(index as u32) & self.widths().general;
        }
        if index != usize::from(self.timer) {
            self.armed |= 1 << index;
            self.acknowledged |= 1 << index;
            self.select(index, self.held(index) | PerfCtl::INT);
        }
        let value = remaining.wrapping_neg();
        self.set(index as u8, value);
        value & self.widths().general
    }

    /// See [`tally_engine::Pmu::disarm`].
    pub(super) fn disarm_all(&mut self) {
        if let Amd { ibs: Some(ibs), bus, .. } = self {
            ibs.disarm(bus);
        }
        for_each_counter(take(&mut self.armed), |index| {
            self.select(index, self.held(index).difference(PerfCtl::INT));
        });
    }
}
