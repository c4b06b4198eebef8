//! A system call, and addresses that the kernel refuses.

use tally::sys;

/// Address that is never mapped.
pub const UNMAPPED: u64 = 0x10;
/// Address in the kernel's half.
pub const KERNEL: u64 = 0xffff_8000_0000_0000;

/// Makes the system call `number`.
pub fn call(number: u64, arguments: [u64; 6]) -> i64 {
    // SAFETY: addresses passed here are either buffers of this program or refused by the kernel.
    unsafe { sys::call(number, arguments) }
}
