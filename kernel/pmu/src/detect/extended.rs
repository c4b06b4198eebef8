//! Intel's leaf of performance monitoring with sub-leaves, CPUID leaf 23H (SDM volume 2; Linux,
//! arch/x86/events/intel/core.c, `update_pmu_cap`).

use raw_cpuid::CpuIdReader;

use super::records::RecordLeaves;

const LEAF: u32 = 0x23;

/// Contents of leaf 23H.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extended {
    /// Masks of the general and of the fixed counters, which may have gaps; `None` without the
    /// sub-leaf.
    pub(super) counters: Option<[u32; 2]>,
    /// Whether event selects have a second unit mask.
    pub(super) has_second_umask: bool,
    /// Whether event selects have the equal flag.
    pub(super) has_equal: bool,
    /// Records of precise samples; `None` without the sub-leaves.
    pub(super) records: Option<RecordLeaves>,
}

impl Extended {
    /// Reads the leaf of a processor whose last basic leaf is `leaves`; without the leaf the
    /// contents are empty.
    pub(super) fn of<R: CpuIdReader>(cpuid: &R, leaves: u32) -> Extended {
        // Bit 8 of leaf 7, sub-leaf 1: the leaf exists.
        if leaves < LEAF || cpuid.cpuid2(7, 1).eax >> 8 & 1 == 0 {
            return Extended::default();
        }
        let first = cpuid.cpuid2(LEAF, 0);
        let has_sub_leaf = |number: u32| first.eax >> number & 1 == 1;
        let counters = has_sub_leaf(1).then(|| {
            let masks = cpuid.cpuid2(LEAF, 1);
            [masks.eax, masks.ebx]
        });
        let has_records = has_sub_leaf(4) && has_sub_leaf(5);
        let records =
            has_records.then(|| RecordLeaves::of(cpuid.cpuid2(LEAF, 4), cpuid.cpuid2(LEAF, 5)));
        Extended {
            counters,
            records,
            has_second_umask: first.ebx & 1 == 1,
            has_equal: first.ebx >> 1 & 1 == 1,
        }
    }

    /// Returns the masks of counters, where leaf 0AH has `common`; and whether that has counters
    /// which this leaf does not have. On a hybrid processor leaf 0AH has those that all cores have.
    pub(super) fn or(&self, common: [u32; 2]) -> ([u32; 2], bool) {
        let own = self.counters.unwrap_or(common);
        (own, (0..2).any(|kind| common[kind] & !own[kind] != 0))
    }
}
