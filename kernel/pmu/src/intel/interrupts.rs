//! Which counters interrupt: the slice timer, and those that are preloaded for thresholds.

use core::mem::take;

use tally_abi::bank::ALWAYS_SLOT;
use tally_engine::{Always, MAX_GENERAL, Selector, Widths, for_each_counter};

use super::Intel;
use crate::{
    Bus,
    registers::intel::{FixedCtr, FixedCtrCtrl, PerfEvtSel, PerfGlobalOvfCtrl, Pmc},
};

/// The slice timer, and what of it the overflow path would work out each time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    pub(super) event: Always,
    /// What is counted besides, of cycles and instructions.
    pub(super) other: Always,
    /// The highest bit of its counter.
    pub(super) top: u64,
    /// What acknowledges its overflow.
    pub(super) acknowledge: PerfGlobalOvfCtrl,
}

impl Timer {
    pub(super) fn new(event: Always, widths: Widths, freezes: bool) -> Timer {
        let bit = PerfGlobalOvfCtrl::FIXED0.bits() << event as u8;
        let mut acknowledge = PerfGlobalOvfCtrl::from_bits_retain(bit);
        acknowledge.set(PerfGlobalOvfCtrl::CTR_FRZ, freezes);
        let other = match event {
            Always::Instructions => Always::Cycles,
            _ => Always::Instructions,
        };
        Timer { event, other, top: widths.always ^ widths.always >> 1, acknowledge }
    }
}

impl<B: Bus> Intel<B> {
    /// See [`tally_engine::Pmu::preload`].
    pub(super) fn preload_slot(&mut self, slot: usize, remaining: u64) -> u64 {
        let Some(event) = slot.checked_sub(ALWAYS_SLOT) else {
            let index = slot % MAX_GENERAL;
            self.armed |= 1 << index;
            let interrupts = self.selectors[index].0 | PerfEvtSel::INT.bits();
            self.select(index, Selector(interrupts));
            self.timer.acknowledge |= PerfGlobalOvfCtrl::from_bits_retain(1 << index);
            let value = remaining.wrapping_neg() & self.facts.widths.general;
            self.bus.put(index as u8, Pmc(value));
            return value;
        };
        let value = remaining.wrapping_neg() & self.facts.widths.always;
        if event != self.timer.event as usize {
            let interrupts = FixedCtrCtrl::PMI0.bits() << (4 * event);
            self.control_fixed(self.fixed | FixedCtrCtrl::from_bits_retain(interrupts));
            let bit = PerfGlobalOvfCtrl::FIXED0.bits() << event;
            self.timer.acknowledge |= PerfGlobalOvfCtrl::from_bits_retain(bit);
        }
        self.bus.put(event as u8, FixedCtr(value));
        value
    }

    /// See [`tally_engine::Pmu::disarm`].
    pub(super) fn disarm_all(&mut self) {
        for_each_counter(take(&mut self.armed), |index| {
            let silent = self.selectors[index].0 & !PerfEvtSel::INT.bits();
            self.select(index, Selector(silent));
        });
        let all = FixedCtrCtrl::PMI0.bits() * 0x111;
        let timer = FixedCtrCtrl::PMI0.bits() << (4 * self.timer.event as u8);
        self.control_fixed(self.fixed & !FixedCtrCtrl::from_bits_retain(all & !timer));
    }
}
