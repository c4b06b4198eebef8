//! Counters that interrupt: the slice timer, and those that are preloaded for thresholds.

use core::mem::take;

use tally_abi::bank::PINNED_SLOT;
use tally_engine::{MAX_GENERAL, Selector, for_each_counter};

use super::Intel;
use crate::{
    Bus,
    registers::intel::{FixedCtrCtrl, PebsEnable, PerfEvtSel, PerfGlobalOvfCtrl, PerfGlobalStatus},
};

impl<B: Bus> Intel<B> {
    /// See [`tally_engine::Pmu::preload`].
    pub(super) fn preload_slot(&mut self, slot: usize, remaining: u64) -> u64 {
        let Some(event) = slot.checked_sub(PINNED_SLOT) else {
            let index = slot % MAX_GENERAL;
            self.armed |= 1 << index;
            self.arm_general(index);
            let value = remaining.wrapping_neg() & self.features.widths.general;
            self.bus.put_at(self.features.addresses.counter(index as u8), value);
            return value;
        };
        if event != self.timer.event as usize {
            self.arm_fixed(event);
        }
        let value = remaining.wrapping_neg() & self.features.widths.pinned;
        self.bus.put_at(self.features.addresses.fixed(event as u8), value);
        value
    }

    fn arm_general(&mut self, index: usize) {
        let held = self.selects.held()[index];
        match &mut self.precise {
            Some(precise) if self.recording >> index & 1 == 1 => {
                precise.arm(&mut self.bus, index as u32);
                self.timer.interrupting |= precise.status().bits();
            }
            _ => {
                self.select(index, Selector(held.0 | PerfEvtSel::INT.bits()));
                self.timer.interrupting |= 1 << index;
            }
        }
    }

    fn arm_fixed(&mut self, event: usize) {
        match &mut self.precise {
            Some(precise) if self.recording >> (PINNED_SLOT + event) & 1 == 1 => {
                precise
                    .arm(&mut self.bus, PebsEnable::FIXED0.bits().trailing_zeros() + event as u32);
                self.timer.interrupting |= precise.status().bits();
            }
            _ => {
                let interrupts = FixedCtrCtrl::PMI0.bits() << (4 * event);
                self.control_fixed(self.fixed | FixedCtrCtrl::from_bits_retain(interrupts));
                self.timer.interrupting |= PerfGlobalStatus::FIXED0.bits() << event;
            }
        }
    }

    /// Value that acknowledges the overflow of every counter.
    pub(super) fn all_overflows(&self) -> PerfGlobalOvfCtrl {
        PerfGlobalOvfCtrl::from_bits_retain(self.enabled().bits())
    }

    /// See [`tally_engine::Pmu::has_lost_overflow`].
    pub(super) fn has_recorded_overflow(&mut self) -> bool {
        let recorded: PerfGlobalStatus = self.bus.get(0);
        recorded.bits() & self.timer.interrupting != 0
    }

    /// See [`tally_engine::Pmu::disarm`].
    pub(super) fn disarm_all(&mut self) {
        for_each_counter(take(&mut self.armed), |index| {
            let silent = self.selects.held()[index].0 & !PerfEvtSel::INT.bits();
            self.select(index, Selector(silent));
        });
        let all = FixedCtrCtrl::PMI0.bits() * 0x111;
        let timer = FixedCtrCtrl::PMI0.bits() << (4 * self.timer.event as u8);
        self.control_fixed(self.fixed & !FixedCtrCtrl::from_bits_retain(all & !timer));
        if let Some(precise) = &mut self.precise {
            precise.disarm(&mut self.bus);
        }
    }
}
