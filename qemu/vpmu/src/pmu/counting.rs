//! Start, stop and freeze of the counters, and their overflows.

use tally_model::{Counts, Privilege, Signal};

use crate::{
    arch_pebs::FIXED,
    counter::{self, CounterInput},
    pmu::{
        access::{
            DEBUGCTL_FREEZE_ON_PMI, DEBUGCTL_FREEZE_WHILE_SMM, STATUS_FROZEN, STATUS_METRICS,
            select,
        },
        state::VirtualPmu,
    },
    profile::Vendor,
    quirks::Held,
    unit::Moment,
};

/// Instructions and cycles of the handler of a system-management interrupt.
const SMI_INSTRUCTIONS: u64 = 2_000;
const SMI_CYCLES: u64 = 50_000;
/// Fixed counter control: interrupt at the overflow of fixed counter 3.
const FIXED_CTRL_SLOTS_INT: u64 = 1 << 15;

impl VirtualPmu {
    /// Handles overflows: sets their status bits, and makes an interrupt pending if one is enabled.
    pub fn sync(&mut self, counts: &[Counts; 2]) {
        let retired = counts.iter().map(|ring| ring[Signal::Instructions]).sum();
        self.hold(retired, counts);
        self.manage_system(retired, counts);
        let mut interrupt = false;
        for index in 0..self.counters.len() {
            let (counter, geometry) = (&mut self.counters[index], &self.profile.geometry);
            let wraps = counter.is_running() && counter.wrap(counts, geometry, self.profile.width);
            if wraps && self.carry(index, counts) && !self.arms(index) {
                self.status |= 1 << index;
                interrupt |= self.selects[index] & select::INT != 0;
            }
        }
        let (geometry, width) = (&self.profile.geometry, self.profile.width);
        for (index, counter) in self.fixed.iter_mut().enumerate() {
            let wraps = counter.is_running() && counter.wrap(counts, geometry, width);
            let bit = FIXED + index as u32;
            if wraps && !self.pebs.as_mut().is_some_and(|pebs| pebs.arm(bit)) {
                self.status |= 1 << bit;
                interrupt |= self.fixed_ctrl >> (4 * index) & 8 != 0;
            }
        }
        if let Some(metrics) = &mut self.metrics
            && metrics.wrap(counts, geometry, width)
        {
            self.status |= STATUS_METRICS;
            interrupt |= self.fixed_ctrl & FIXED_CTRL_SLOTS_INT != 0;
        }
        if interrupt {
            self.interrupt_pending = true;
            self.freeze(counts);
        }
        // The unit's interrupt does not freeze counters.
        if let Some(unit) = &mut self.unit {
            self.interrupt_pending |=
                unit.sync(Moment { counts, geometry: &self.profile.geometry });
        }
    }

    /// Arms a general counter that has overflowed, if it is enabled for PEBS; returns whether it
    /// is.
    fn arms(&mut self, index: usize) -> bool {
        self.pebs.as_mut().is_some_and(|pebs| pebs.arm(index as u32))
    }

    /// Makes the held counter count nothing from its time on.
    fn hold(&mut self, retired: u64, counts: &[Counts; 2]) {
        let is_due = |held: &Held| retired >= held.from_instructions;
        if !self.is_holding && self.held.as_ref().is_some_and(is_due) {
            self.is_holding = true;
            self.restart(counts);
        }
    }

    /// Handles the system-management interrupts up to now: counters of ring 0 count the handler's
    /// instructions and cycles, unless `IA32_DEBUGCTL` freezes them there.
    fn manage_system(&mut self, retired: u64, counts: &[Counts; 2]) {
        let Some(every) = self.smi else { return };
        let new = retired / every - self.smis;
        self.smis += new;
        if new > 0 && self.is_owned {
            self.turn_on(counts);
        }
        if new == 0 || self.debugctl & DEBUGCTL_FREEZE_WHILE_SMM != 0 {
            return;
        }
        let mut handler = [Counts::ZERO; 2];
        let ring_0 = &mut handler[Privilege::Kernel as usize];
        ring_0[Signal::Instructions] = new * SMI_INSTRUCTIONS;
        ring_0[Signal::Slots] = new * SMI_CYCLES * u64::from(self.profile.geometry.width);
        for counter in self.counters.iter_mut().chain(&mut self.fixed) {
            counter.add(&handler, &self.profile.geometry);
        }
    }

    /// Freezes counters and branch records at an interrupt, if the guest has enabled that.
    pub(super) fn freeze(&mut self, counts: &[Counts; 2]) {
        self.freeze_branches();
        if self.debugctl & DEBUGCTL_FREEZE_ON_PMI == 0 {
            return;
        }
        // SDM vol. 3, "Freezing LBR and Performance Counters on PMI": the legacy method clears
        // global control, the streamlined one of version 4 sets a status bit, as does AMD's (APM
        // vol. 2, "PerfMonV2").
        match (self.profile.vendor, self.profile.version) {
            (Vendor::Intel, 0..4) => self.global_ctrl = 0,
            _ => self.status |= STATUS_FROZEN,
        }
        self.restart(counts);
    }

    /// Starts and stops the counters as the control registers say.
    pub(crate) fn restart(&mut self, counts: &[Counts; 2]) {
        for index in 0..self.counters.len() {
            let enabled = self.selects[index] & select::EN != 0
                && self.global_ctrl >> index & 1 != 0
                && self.status & STATUS_FROZEN == 0;
            let source = enabled.then(|| self.source(index));
            self.counters[index].run(source, counts, &self.profile.geometry);
        }
        if self.profile.vendor == Vendor::Intel {
            self.restart_fixed(counts);
        }
    }

    fn restart_fixed(&mut self, counts: &[Counts; 2]) {
        let frozen = self.status & STATUS_FROZEN != 0;
        for (index, (counter, event)) in self.fixed.iter_mut().zip(&counter::FIXED).enumerate() {
            let control = self.fixed_ctrl >> (4 * index);
            let selected = self.global_ctrl >> (32 + index) & 1 != 0;
            let source = (control & 3 != 0 && selected && !frozen)
                .then(|| CounterInput::of(vec![event], [control & 2 != 0, control & 1 != 0]));
            counter.run(source, counts, &self.profile.geometry);
        }
        if let Some(metrics) = &mut self.metrics {
            // PERF_METRICS needs fixed counter 3.
            let (control, both) = (self.fixed_ctrl >> 12, STATUS_METRICS | 1 << 35);
            let runs = control & 3 != 0 && self.global_ctrl & both == both && !frozen;
            let rings = runs.then_some((control & 2 != 0, control & 1 != 0));
            metrics.run(rings, counts, &self.profile.geometry);
        }
    }
}
