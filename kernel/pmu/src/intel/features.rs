//! The features of an Intel PMU.

use tally_engine::Widths;

use crate::registers::intel::PerfGlobalCtrl;

/// What CPUID says of an Intel PMU, as far as the driver needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Features {
    /// General counters, as a mask.
    pub(crate) general: u8,
    /// General counters that the driver leaves to others and never disables, as a mask.
    pub(crate) reserved: u8,
    /// Whether fixed counter 2 is there.
    pub(crate) reference: bool,
    /// Whether there is IA32_PERF_CAPABILITIES.
    pub(crate) capabilities: bool,
    /// Extra registers, as a mask of the numbers that [`extra_register`] gives.
    pub(crate) extra: u8,
    pub(crate) widths: Widths,
}

impl Features {
    /// The global control's value with the counters of others alone.
    pub(super) fn reserved(&self) -> PerfGlobalCtrl {
        PerfGlobalCtrl::from_bits_retain(self.reserved.into())
    }
}
