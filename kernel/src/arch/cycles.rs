//! The processor's own count of core cycles.

use raw_cpuid::CpuId;
use spin::Once;
use tally_pmu::bus::try_rdmsr;
use x86_64::registers::model_specific::Msr;

/// IA32_APERF (SDM volume 3, "Hardware Coordination Feedback"; APM volume 2, "MPERF and APERF").
const APERF: u32 = 0xe8;

/// Core cycles for which this CPU was not halted, in every ring; modulo 2^64. The count does not
/// freeze with the performance counters, so it includes interrupts and their handlers. `None` if
/// the processor lacks it, as under most hypervisors.
pub fn core_cycles() -> Option<u64> {
    static HAS_APERF: Once<bool> = Once::new();
    let has_aperf = || {
        let info = CpuId::new().get_thermal_power_info();
        // SAFETY: this is ring 0, the kernel's handlers are in place, and to read the register
        // changes nothing.
        let is_there = || unsafe { try_rdmsr(APERF) }.is_some();
        info.is_some_and(|info| info.has_hw_coord_feedback()) && is_there()
    };
    // SAFETY: the register is there; to read it changes nothing.
    HAS_APERF.call_once(has_aperf).then(|| unsafe { Msr::new(APERF).read() })
}
