//! Detection of records of branches.

use raw_cpuid::{CpuIdReader, CpuIdResult};

use crate::intel::BranchSupport;

/// Filters by ring and by type, in EBX of CPUID leaf 1CH.
const FILTERS: u32 = 0b11;
/// Depths in EAX of that leaf: bit n stands for 8(n + 1). The engine has room for 32.
const DEPTHS: u32 = 0b1111;

/// Reads Intel SDM volume 2, CPUID leaf 1CH: the deepest architectural records, if they filter by
/// ring and type. From version 4 on older records thaw with an acknowledgement.
pub(super) fn of_intel<R: CpuIdReader>(cpuid: &R, leaves: u32, version: u8) -> BranchSupport {
    if version < 4 {
        return BranchSupport::None;
    }
    if leaves < 0x1c || cpuid.cpuid2(7, 0).edx >> 19 & 1 == 0 {
        return BranchSupport::Older;
    }
    let leaf = cpuid.cpuid2(0x1c, 0);
    match (leaf.eax & DEPTHS).checked_ilog2() {
        Some(bit) if leaf.ebx & FILTERS == FILTERS => {
            BranchSupport::Architectural { depth: 8 * (bit as u8 + 1) }
        }
        _ => BranchSupport::None,
    }
}

/// Reads AMD64 Architecture Programmer's Manual volume 3, CPUID Fn8000_0022: LbrStack, and the
/// number of its records; 0 without any that freeze.
pub(super) fn of_amd(leaf: CpuIdResult, freeze: bool) -> u8 {
    let has_records = freeze && leaf.eax >> 1 & 1 == 1;
    if has_records { (leaf.ebx >> 4 & 0x3f) as u8 } else { 0 }
}
