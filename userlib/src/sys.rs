//! Raw system calls. [`tally_abi::syscall`] documents their arguments.

use core::arch::asm;

pub use tally_abi::syscall::*;

/// Makes a system call.
///
/// # Safety
/// Buffers are valid for what the call reads or writes, and memory that the call unmaps is not
/// used.
#[inline]
pub unsafe fn call(number: u64, arguments: [u64; 6]) -> i64 {
    let [a, b, c, d, e, f] = arguments;
    let result;
    // SAFETY: the kernel preserves every register except RAX, RCX and R11; the caller guarantees
    // the rest.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as i64 => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Ends the program.
pub fn exit(status: i32) -> ! {
    // SAFETY: the call does not return.
    unsafe { call(EXIT_GROUP, [status as u64, 0, 0, 0, 0, 0]) };
    unreachable!("EXIT_GROUP does not return")
}
