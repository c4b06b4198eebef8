//! The instruction RDPMC.

use core::arch::asm;

/// Returns the low half of a counter, which suffices for differences.
///
/// # Safety
/// RDPMC is allowed, and the counter exists.
pub(crate) unsafe fn rdpmc(number: u32) -> u32 {
    let low: u32;
    // SAFETY: the caller's word. It reads memory as far as the compiler knows, so that it stays in
    // its place.
    unsafe {
        asm!("rdpmc", in("ecx") number, out("eax") low, out("edx") _,
             options(nostack, readonly, preserves_flags));
    }
    low
}
