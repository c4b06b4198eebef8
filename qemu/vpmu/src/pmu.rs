//! The PMU of one virtual CPU: what both vendors share, and the way in.

use std::fmt;

use tally_model::{Counts, Geometry};

use crate::{
    Profile, Vendor,
    counter::{Counter, Source},
    metrics::Metrics,
};

/// What became of a register access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It happened; a read's value.
    Done(u64),
    /// A general-protection fault.
    Fault,
    /// Not one of the PMU's registers.
    Foreign,
}

/// Whose answer to a CPUID leaf it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuidKind {
    /// The PMU's alone.
    Whole,
    /// The processor's, with something of the PMU's in it.
    Patched,
    /// The processor's alone.
    Foreign,
}

/// What a guest asked for that does not exist here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unmodelled {
    /// An event select's value.
    Select(u64),
    /// An event select's value, some bits of whose unit mask count nothing.
    UnitMask(u64),
    /// An off-core response filter, some of whose requests do not happen.
    Offcore(u64),
    /// A register of precise sampling, branch records or other counters.
    Register(u32),
}

impl fmt::Display for Unmodelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmodelled::Select(value) => {
                write!(f, "event select {value:#x} is not modelled and counts nothing")
            }
            Unmodelled::UnitMask(value) => {
                write!(f, "event select {value:#x} is modelled in part; the rest counts nothing")
            }
            Unmodelled::Offcore(value) => {
                write!(
                    f,
                    "off-core response filter {value:#x} is modelled in part or not at all; the rest counts nothing"
                )
            }
            Unmodelled::Register(msr) => {
                write!(
                    f,
                    "MSR {msr:#x} is of a feature that is not there; what is written does nothing"
                )
            }
        }
    }
}

/// Event-select bits that both vendors share (SDM vol. 3, "IA32_PERFEVTSELx MSRs"; APM vol. 2,
/// 13.2.1 "Performance Event-Select Registers").
pub(crate) mod select {
    pub(crate) const USR: u64 = 1 << 16;
    pub(crate) const OS: u64 = 1 << 17;
    pub(crate) const EDGE: u64 = 1 << 18;
    pub(crate) const INT: u64 = 1 << 20;
    pub(crate) const EN: u64 = 1 << 22;
    pub(crate) const INV: u64 = 1 << 23;
    pub(crate) const CMASK_SHIFT: u32 = 24;
}

/// Global status: counters are frozen because an interrupt was raised (SDM, "CTR_FRZ").
pub(crate) const STATUS_FROZEN: u64 = 1 << 59;
/// Global status and control: PERF_METRICS (SDM, "PERF_METRICS_OVF", "PERF_METRICS_EN").
pub(crate) const STATUS_METRICS: u64 = 1 << 48;
/// Fixed counter control: an interrupt when fixed counter 3 overflows.
const FIXED_CTRL_SLOTS_INT: u64 = 1 << 15;
/// Debug control: freeze the counters at their interrupt, in both vendors' registers.
const DEBUGCTL_FREEZE_ON_PMI: u64 = 1 << 12;

/// The PMU of one virtual CPU.
#[derive(Clone, Debug)]
pub struct Pmu {
    pub(crate) profile: Profile,
    pub(crate) counters: Vec<Counter>,
    pub(crate) selects: Vec<u64>,
    pub(crate) fixed: Vec<Counter>,
    pub(crate) fixed_ctrl: u64,
    pub(crate) global_ctrl: u64,
    pub(crate) status: u64,
    pub(crate) debugctl: u64,
    /// Extra event registers: two off-core response filters, and two that hold what is written.
    pub(crate) extra: [u64; 4],
    pub(crate) metrics: Option<Metrics>,
    interrupt_due: bool,
    pub(crate) unmodelled: Vec<Unmodelled>,
}

impl Pmu {
    /// A PMU after reset, with this many general counters.
    pub fn new(profile: Profile, counters: u8) -> Pmu {
        let all = (1u64 << counters) - 1;
        Pmu {
            counters: vec![Counter::default(); counters.into()],
            selects: vec![0; counters.into()],
            fixed: vec![Counter::default(); profile.fixed.into()],
            fixed_ctrl: 0,
            // Both vendors' global control lets every general counter run after reset, so that
            // software older than it still works.
            global_ctrl: all,
            status: 0,
            debugctl: 0,
            extra: [0; 4],
            metrics: profile.has_metrics().then(|| Metrics::new(profile.second_level)),
            interrupt_due: false,
            unmodelled: Vec::new(),
            profile,
        }
    }

    /// The profile that it follows.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Whether any counter counts.
    pub fn is_counting(&self) -> bool {
        self.counters.iter().chain(&self.fixed).any(Counter::is_running)
    }

    /// RDMSR.
    pub fn rdmsr(&mut self, msr: u32, counts: &[Counts; 2]) -> Access {
        self.sync(counts);
        match self.profile.vendor {
            Vendor::Intel => self.intel_rdmsr(msr, counts),
            Vendor::Amd => self.amd_rdmsr(msr, counts),
        }
    }

    /// WRMSR.
    pub fn wrmsr(&mut self, msr: u32, value: u64, counts: &[Counts; 2]) -> Access {
        self.sync(counts);
        let access = match self.profile.vendor {
            Vendor::Intel => self.intel_wrmsr(msr, value, counts),
            Vendor::Amd => self.amd_wrmsr(msr, value, counts),
        };
        self.sync(counts);
        access
    }

    /// RDPMC; whether the ring may is the caller's to check.
    pub fn rdpmc(&mut self, index: u32, counts: &[Counts; 2]) -> Access {
        self.sync(counts);
        match self.profile.vendor {
            Vendor::Intel => self.intel_rdpmc(index, counts),
            Vendor::Amd => self.amd_rdpmc(index, counts),
        }
    }

    /// CPUID: what the PMU changes of `[EAX, EBX, ECX, EDX]`.
    pub fn cpuid(&self, leaf: u32, subleaf: u32, registers: [u32; 4]) -> [u32; 4] {
        match self.profile.vendor {
            Vendor::Intel => self.intel_cpuid(leaf, subleaf, registers),
            Vendor::Amd => self.amd_cpuid(leaf, subleaf, registers),
        }
    }

    /// Whose answer to a CPUID leaf it is.
    pub fn cpuid_kind(&self, leaf: u32) -> CpuidKind {
        match (self.profile.vendor, leaf) {
            (Vendor::Intel, 0xa) => CpuidKind::Whole,
            (Vendor::Amd, 0x8000_0022) if self.profile.version >= 2 => CpuidKind::Whole,
            (Vendor::Intel, 0 | 1) | (Vendor::Amd, 1 | 0x8000_0000 | 0x8000_0001) => {
                CpuidKind::Patched
            }
            _ => CpuidKind::Foreign,
        }
    }

    /// Folds overflows in.
    pub fn sync(&mut self, counts: &[Counts; 2]) {
        let (geometry, width) = (&self.profile.geometry, self.profile.width);
        let mut interrupt = false;
        for (index, counter) in self.counters.iter_mut().enumerate() {
            if counter.is_running() && counter.fold(counts, geometry, width) {
                self.status |= 1 << index;
                interrupt |= self.selects[index] & select::INT != 0;
            }
        }
        for (index, counter) in self.fixed.iter_mut().enumerate() {
            if counter.is_running() && counter.fold(counts, geometry, width) {
                self.status |= 1 << (32 + index);
                interrupt |= self.fixed_ctrl >> (4 * index) & 8 != 0;
            }
        }
        if let Some(metrics) = &mut self.metrics
            && metrics.fold(counts, geometry, width)
        {
            self.status |= STATUS_METRICS;
            interrupt |= self.fixed_ctrl & FIXED_CTRL_SLOTS_INT != 0;
        }
        if interrupt {
            self.interrupt_due = true;
            self.freeze(counts);
        }
    }

    /// Freezes the counters for an interrupt, where the guest asked for that.
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

    /// Whether an interrupt became due since this was asked last.
    pub fn take_interrupt(&mut self) -> bool {
        std::mem::take(&mut self.interrupt_due)
    }

    /// Slots that pass at least before any counter can overflow with an interrupt or a status bit
    /// to show for it.
    pub fn slots_to_overflow(&self, counts: &[Counts; 2]) -> u64 {
        self.counters
            .iter()
            .chain(&self.fixed)
            .filter(|counter| counter.is_running())
            .map(|counter| {
                counter.slots_to_overflow(counts, &self.profile.geometry, self.profile.width)
            })
            .min()
            .unwrap_or(u64::MAX >> 1)
    }

    /// What was asked for that the profile does not model, since this was asked last.
    pub fn take_unmodelled(&mut self) -> Vec<Unmodelled> {
        std::mem::take(&mut self.unmodelled)
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.profile.geometry
    }

    pub(crate) fn value(&self, index: usize, counts: &[Counts; 2]) -> u64 {
        self.counters[index].value(counts, self.geometry(), self.profile.width)
    }

    pub(crate) fn set_value(&mut self, index: usize, value: u64, counts: &[Counts; 2]) {
        self.counters[index].set(
            value & ((1 << self.profile.width) - 1),
            counts,
            &self.profile.geometry,
        );
    }

    /// Starts and stops counters as the control registers say.
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

    /// What the general counter `index` is selected to count.
    fn source(&mut self, index: usize) -> Source {
        let value = self.selects[index];
        let said = self.unmodelled.len();
        let events = match self.profile.vendor {
            Vendor::Intel => self.intel_events(index, value),
            Vendor::Amd => self.amd_events(value),
        };
        if events.is_empty() && self.unmodelled.len() == said {
            self.unmodelled.push(Unmodelled::Select(value));
        }
        Source { events, user: value & select::USR != 0, kernel: value & select::OS != 0 }
    }
}

#[cfg(test)]
mod tests;
