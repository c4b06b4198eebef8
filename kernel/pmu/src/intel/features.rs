//! Features of an Intel PMU.

use tally_engine::Widths;

use super::{
    addresses::Addresses,
    branches::BranchSupport,
    precise::{ARCHITECTURAL, has_records},
};
use crate::registers::intel::{PebsEnable, PerfCapabilities, PerfGlobalCtrl};

/// Records of precise samples that a processor has, from CPUID. `exact` are the counters whose
/// samples are those of the overflowing instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordSupport {
    /// No records that the driver knows.
    None,
    /// In a debug store with 64-bit records, if IA32_PERF_CAPABILITIES has a format that the driver
    /// knows.
    DebugStore { exact: PebsEnable },
    /// In a buffer (architectural PEBS), from every counter.
    Buffer { exact: PebsEnable },
}

impl RecordSupport {
    /// Returns the support that also the format in IA32_PERF_CAPABILITIES has.
    pub(super) fn by(self, capabilities: PerfCapabilities) -> RecordSupport {
        let is_known = match self {
            RecordSupport::None => false,
            RecordSupport::DebugStore { .. } => has_records(capabilities),
            RecordSupport::Buffer { .. } => capabilities.pebs_format() == ARCHITECTURAL,
        };
        if is_known { self } else { RecordSupport::None }
    }
}

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
    /// Records of precise samples.
    pub(crate) records: RecordSupport,
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
