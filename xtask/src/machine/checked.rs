//! What the kernel says of CPUs: their checks at boot, and those that stay offline.

use serde::{Deserialize, Serialize};

/// What a CPU's check at boot found, where a report of it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedCpu {
    /// The CPU.
    pub cpu: u32,
    /// What is wrong.
    pub failure: Option<String>,
    /// What it counts in ring 3 beyond the instructions that retire, for each interrupt.
    pub overcount: u64,
    /// Core cycles of an RDMSR of the PMU's registers, in hundredths.
    pub rdmsr_centicycles: Option<u64>,
    /// Core cycles of a WRMSR.
    pub wrmsr_centicycles: Option<u64>,
}

/// A processor that runs no programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfflineCpu {
    /// Its APIC ID.
    pub apic_id: u32,
    /// The reason.
    pub why: String,
}

impl CheckedCpu {
    /// By the kernel's message, in which 0 cycles are not known.
    pub(super) fn of(
        cpu: u16,
        failure: Option<String>,
        overcount: u64,
        access_centicycles: [u64; 2],
    ) -> CheckedCpu {
        let known = access_centicycles.map(|cost| (cost > 0).then_some(cost));
        let [rdmsr_centicycles, wrmsr_centicycles] = known;
        CheckedCpu { cpu: cpu.into(), failure, overcount, rdmsr_centicycles, wrmsr_centicycles }
    }
}
