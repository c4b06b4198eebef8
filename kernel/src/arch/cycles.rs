//! The processor's own count of core cycles.

use raw_cpuid::CpuId;
use spin::Once;
use x86_64::registers::model_specific::Msr;

/// IA32_APERF (SDM volume 3, "Hardware Coordination Feedback"; APM volume 2, "MPERF and APERF").
const APERF: u32 = 0xe8;

/// Core cycles for which this CPU was not halted, in every ring; modulo 2^64. The count does not
/// freeze with the performance counters, so it includes interrupts and their handlers. `None` if
/// the processor lacks it, as under most hypervisors.
pub fn core_cycles() -> Option<u64> {
    static HAS_APERF: Once<bool> = Once::new();
    let has_aperf =
        || CpuId::new().get_thermal_power_info().is_some_and(|info| info.has_hw_coord_feedback());
    // SAFETY: CPUID reports the register; to read it changes nothing.
    HAS_APERF.call_once(has_aperf).then(|| unsafe { Msr::new(APERF).read() })
}
