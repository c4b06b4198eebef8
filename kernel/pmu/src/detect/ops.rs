//! Detection of AMD's sampling of ops (IBS).

use raw_cpuid::CpuIdReader;

/// Flags in EAX of Fn8000_001B that the driver needs: the leaf is valid; ops can be sampled; the
/// count can be read and written, can be of ops, and has 27 bits; an address that is not known is
/// said to be.
const NEEDED: u32 = 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7;

/// Reads AMD64 Architecture Programmer's Manual volume 3, CPUID Fn8000_0001_ECX and
/// Fn8000_001B_EAX: whether ops can be sampled as the driver does.
pub(super) fn of_amd<R: CpuIdReader>(cpuid: &R, leaves: u32) -> bool {
    let has_ibs = leaves >= 0x8000_001b && cpuid.cpuid1(0x8000_0001).ecx >> 10 & 1 == 1;
    has_ibs && cpuid.cpuid1(0x8000_001b).eax & NEEDED == NEEDED
}
