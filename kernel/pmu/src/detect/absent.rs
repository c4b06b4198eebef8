//! Detection of architectural events that do not exist.

use raw_cpuid::CpuIdReader;

/// Returns the mask of architectural events that do not exist: those whose bit in EBX is set, and
/// those of the first seven that are beyond the mask's length in EAX. Events after the first seven
/// are not excluded by the length: some models had them before they became architectural.
pub(super) fn absent_events<R: CpuIdReader>(cpuid: &R) -> u32 {
    const ALWAYS_LISTED: u32 = 0x7f;
    let leaf = cpuid.cpuid1(0xa);
    let told = 1_u32.checked_shl(leaf.eax >> 24).map_or(u32::MAX, |bit| bit - 1);
    leaf.ebx & told | ALWAYS_LISTED & !told
}
