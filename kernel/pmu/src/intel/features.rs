//! Features of an Intel PMU.

use tally_engine::Widths;

use super::{addresses::Addresses, branches::BranchSupport};
use crate::registers::intel::PerfGlobalCtrl;

/// Features of an Intel PMU that the driver needs, from CPUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Features {
    /// Mask of general counters.
    pub(crate) general: u16,
    /// Mask of general counters that are reserved for others and that the driver never disables.
    pub(crate) reserved: u16,
    /// Whether fixed counter 2 exists.
    pub(crate) reference: bool,
    /// Whether PERF_METRICS exists, which needs fixed counter 3.
    pub(crate) metrics: bool,
    /// Whether the processor has a debug store with 64-bit records.
    pub(crate) debug_store: bool,
    /// Whether precise samples of general counter 0 are those of the overflowing instruction.
    pub(crate) first_is_exact: bool,
    /// Records of branches.
    pub(crate) branches: BranchSupport,
    /// Whether IA32_PERF_CAPABILITIES exists.
    pub(crate) capabilities: bool,
    /// Mask of extra registers by the numbers that [`extra_register`] gives.
    pub(crate) extra: u8,
    pub(crate) widths: Widths,
    /// Registers of the counters.
    pub(crate) addresses: Addresses,
}

impl Features {
    /// Value of the global control that enables only the counters reserved for others.
    pub(super) fn reserved(&self) -> PerfGlobalCtrl {
        PerfGlobalCtrl::from_bits_retain(self.reserved.into())
    }
}
