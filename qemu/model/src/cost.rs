//! Cycles of the steps of a PMU's overflow interrupt, other than ordinary instructions. Each step
//! occupies the whole pipeline.
//!
//! Rounded from uops.info's and Agner Fog's tables for Ice Lake; WRMSR and RDMSR of PMU registers
//! from Weaver, "Self-monitoring Overhead of the Linux `perf_event` Performance Counter Interface"
//! (ISPASS 2015).

/// Parts of a cycle: the unit of costs that are not whole cycles.
pub(crate) const PARTS: u32 = 256;

/// From the recognition of an interrupt or exception to its handler's first instruction: about the
/// delivery time without mitigations that Linux kernel selftests and the x86 literature report.
pub const DELIVERY_CYCLES: u16 = 250;
/// IRET.
pub const IRET_CYCLES: u16 = 120;
/// WRMSR.
pub const WRMSR_CYCLES: u16 = 200;
/// RDMSR.
pub const RDMSR_CYCLES: u16 = 90;
/// RDPMC.
pub const RDPMC_CYCLES: u16 = 30;
