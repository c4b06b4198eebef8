//! System calls, raw. See [`tally_abi::syscall`] for what each takes.

use core::arch::asm;

pub use tally_abi::syscall::*;

/// Makes a system call.
///
/// # Safety
/// The arguments are such that the call does nothing to memory which this program does not expect:
/// buffers are valid for what the call reads or writes, and memory that it unmaps is not used.
#[inline]
pub unsafe fn call(number: u64, arguments: [u64; 6]) -> i64 {
    let [a, b, c, d, e, f] = arguments;
    let result;
    // SAFETY: the kernel keeps every register but RAX, RCX and R11; the rest is the caller's word.
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
    // SAFETY: the call does not touch memory that anyone uses afterwards.
    unsafe { call(EXIT_GROUP, [status as u64, 0, 0, 0, 0, 0]) };
    unreachable!("a program that has ended goes no further")
}
