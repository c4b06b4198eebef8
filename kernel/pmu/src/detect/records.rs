//! Intel's records of precise samples: a debug store (SDM volume 2, CPUID leaf 1), or a buffer
//! (leaf 23H, sub-leaves 4 and 5; Linux, arch/x86/events/intel/core.c, `update_pmu_cap`).

use raw_cpuid::CpuIdResult;

use crate::{
    intel::RecordSupport,
    registers::{intel::PebsEnable, records::PmcCfgC},
};

/// Contents of the sub-leaves: the groups in the places of the upper half of [`PmcCfgC`], counters
/// that store records, and those with precise distribution, as in IA32_PEBS_ENABLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordLeaves {
    pub(super) groups: u32,
    pub(super) counters: u64,
    pub(super) exact: u64,
}

impl RecordLeaves {
    pub(super) fn of(groups: CpuIdResult, counters: CpuIdResult) -> RecordLeaves {
        let mask = |general: u32, fixed: u32| u64::from(fixed) << 32 | u64::from(general);
        RecordLeaves {
            groups: groups.ebx,
            counters: mask(counters.eax, counters.ecx),
            exact: mask(counters.ebx, counters.edx),
        }
    }

    /// Returns whether each of the general counters and the fixed one of instructions store records
    /// that can have the memory access.
    fn are_enough(&self, general: u16) -> bool {
        let needed = PebsEnable::FIXED0.bits() | u64::from(general);
        let access = (PmcCfgC::ACCESS.bits() >> 32) as u32;
        self.counters & needed == needed && self.groups & access != 0
    }
}

/// Returns the records of a processor whose leaf 1 is `first`. `exact` are the counters with
/// precise distribution of a debug store.
pub(super) fn of_intel(
    first: CpuIdResult,
    leaves: Option<RecordLeaves>,
    exact: PebsEnable,
    general: u16,
) -> RecordSupport {
    // DS, and DTES64: records in 64-bit format.
    let has_store = first.edx >> 21 & 1 == 1 && first.ecx >> 2 & 1 == 1;
    match leaves {
        Some(leaves) if leaves.are_enough(general) => {
            RecordSupport::Buffer { exact: PebsEnable::from_bits_retain(leaves.exact) }
        }
        None if has_store => RecordSupport::DebugStore { exact },
        _ => RecordSupport::None,
    }
}
