//! The kernel's reports on CPUs: their checks at boot, and those that stay offline.

use serde::{Deserialize, Serialize};

/// Result of a CPU's check at boot, if a report of it was requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedCpu {
    /// The CPU.
    pub cpu: u32,
    /// The failure, if any.
    pub failure: Option<String>,
    /// Instructions counted in ring 3 for each interrupt beyond those that retire.
    pub overcount: u64,
    /// Core cycles of an RDMSR of the PMU's registers, in hundredths.
    pub rdmsr_centicycles: Option<u64>,
    /// Core cycles of a WRMSR of the PMU's registers, in hundredths.
    pub wrmsr_centicycles: Option<u64>,
}

/// A processor that runs no programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfflineCpu {
    /// APIC ID of the processor.
    pub apic_id: u32,
    /// The reason.
    pub why: String,
}

impl CheckedCpu {
    /// Makes the result from the kernel's message, in which 0 cycles means unknown.
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
