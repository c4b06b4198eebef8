//! Starts, stops and freezes the counters, and handles their overflows.

use tally_model::Counts;

use crate::{
    counter::{CounterInput, FIXED},
    pmu::{
        access::{DEBUGCTL_FREEZE_ON_PMI, STATUS_FROZEN, STATUS_METRICS, select},
        state::VirtualPmu,
    },
    profile::Vendor,
};

/// Fixed counter control: interrupt at the overflow of fixed counter 3.
const FIXED_CTRL_SLOTS_INT: u64 = 1 << 15;

impl VirtualPmu {
    /// Handles overflows: sets their status bits, and makes an interrupt pending where one is
    /// enabled.
    pub fn sync(&mut self, counts: &[Counts; 2]) {
        let (geometry, width) = (&self.profile.geometry, self.profile.width);
        let mut interrupt = false;
        for (index, counter) in self.counters.iter_mut().enumerate() {
            if counter.is_running() && counter.wrap(counts, geometry, width) {
                self.status |= 1 << index;
                interrupt |= self.selects[index] & select::INT != 0;
            }
        }
        for (index, counter) in self.fixed.iter_mut().enumerate() {
            if counter.is_running() && counter.wrap(counts, geometry, width) {
                self.status |= 1 << (32 + index);
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
    }

    /// Freezes the counters at an interrupt, if the guest has enabled that.
    fn freeze(&mut self, counts: &[Counts; 2]) {
        if self.debugctl & DEBUGCTL_FREEZE_ON_PMI == 0 {
            return;
        }
        // SDM vol. 3, "Freezing LBR and Performance Counters on PMI": the legacy way clears global
        // control, version 4's streamlined way sets a status bit, as AMD's does (APM vol. 2,
        // "PerfMonV2").
        match (self.profile.vendor, self.profile.version) {
            (Vendor::Intel, 0..4) => self.global_ctrl = 0,
            _ => self.status |= STATUS_FROZEN,
        }
        self.restart(counts);
    }

    /// Starts and stops the counters by the control registers.
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
        for (index, (counter, event)) in self.fixed.iter_mut().zip(&FIXED).enumerate() {
            let control = self.fixed_ctrl >> (4 * index);
            let selected = self.global_ctrl >> (32 + index) & 1 != 0;
            let source = (control & 3 != 0 && selected && !frozen).then(|| CounterInput {
                events: vec![event],
                user: control & 2 != 0,
                kernel: control & 1 != 0,
            });
            counter.run(source, counts, &self.profile.geometry);
        }
        if let Some(metrics) = &mut self.metrics {
            // It needs fixed counter 3.
            let (control, both) = (self.fixed_ctrl >> 12, STATUS_METRICS | 1 << 35);
            let runs = control & 3 != 0 && self.global_ctrl & both == both && !frozen;
            let rings = runs.then_some((control & 2 != 0, control & 1 != 0));
            metrics.run(rings, counts, &self.profile.geometry);
        }
    }
}
