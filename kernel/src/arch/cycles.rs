//! The processor's own counts of core cycles, and of cycles of the time-stamp counter's rate.

use raw_cpuid::CpuId;
use spin::Once;
use tally_pmu::bus::try_rdmsr;
use x86_64::registers::model_specific::Msr;

/// IA32_MPERF and IA32_APERF (SDM volume 3, "Hardware Coordination Feedback"; APM volume 2, "MPERF
/// and APERF").
const MPERF: u32 = 0xe7;
const APERF: u32 = 0xe8;

/// Core cycles for which this CPU was not halted, in every ring; modulo 2^64. The count does not
/// freeze with the performance counters, so it includes interrupts and their handlers. `None` if
/// the processor lacks it, as under most hypervisors.
pub fn core_cycles() -> Option<u64> {
    // SAFETY: the register is there; to read it changes nothing.
    has_counts().then(|| unsafe { Msr::new(APERF).read() })
}

/// Core cycles, as [`core_cycles`], and cycles of the time-stamp counter's rate in the same time:
/// their ratio is the core's mean frequency as a part of the counter's.
pub fn both() -> Option<[u64; 2]> {
    // SAFETY: the registers are there; to read them changes nothing.
    has_counts().then(|| [APERF, MPERF].map(|register| unsafe { Msr::new(register).read() }))
}

/// Returns whether the processor has both registers.
fn has_counts() -> bool {
    static HAS_COUNTS: Once<bool> = Once::new();
    *HAS_COUNTS.call_once(|| {
        let info = CpuId::new().get_thermal_power_info();
        // SAFETY: this is ring 0, the kernel's handlers are in place, and to read the register
        // changes nothing.
        let is_there = |register| unsafe { try_rdmsr(register) }.is_some();
        info.is_some_and(|info| info.has_hw_coord_feedback()) && is_there(APERF) && is_there(MPERF)
    })
}
