//! Raw system calls. [`tally_abi::syscall`] documents their arguments.

use core::{
    arch::asm,
    sync::atomic::{AtomicU8, Ordering},
};

pub use tally_abi::syscall::*;
use tally_abi::{Error, text::FixedText, uname};

/// Makes a system call.
///
/// # Safety
/// Buffers are valid for the accesses of the call, and memory that the call unmaps is not used.
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

/// Makes one of Tally's own system calls. On another kernel, which might have a different call with
/// this number, no call is made: the result is that of [`Error::NotTally`].
///
/// # Safety
/// See [`call`].
#[inline]
pub unsafe fn tally_call(number: u64, arguments: [u64; 6]) -> i64 {
    if !is_tally() {
        return Error::NotTally.to_return();
    }
    // SAFETY: the caller guarantees it.
    unsafe { call(number, arguments) }
}

/// Returns whether the kernel is Tally. The first call asks the kernel.
#[inline]
pub fn is_tally() -> bool {
    // Relaxed: only the value matters, and every thread finds the same.
    match KERNEL.load(Ordering::Relaxed) {
        UNKNOWN => ask_kernel(),
        known => known == TALLY,
    }
}

static KERNEL: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const TALLY: u8 = 1;
const OTHER: u8 = 2;

/// Asks by a call of Linux's, which every kernel that runs these programs has.
#[cold]
fn ask_kernel() -> bool {
    let mut names: uname::Names = [[0; 65]; 6];
    // SAFETY: the buffer is of the call's size.
    let answer = unsafe { call(UNAME, [names.as_mut_ptr() as u64, 0, 0, 0, 0, 0]) };
    let is_tally = answer == 0 && uname::is_tally(&names);
    KERNEL.store(if is_tally { TALLY } else { OTHER }, Ordering::Relaxed);
    is_tally
}

/// Ends the program.
pub fn exit(status: i32) -> ! {
    // SAFETY: the call does not return.
    unsafe { call(EXIT_GROUP, [status as u64, 0, 0, 0, 0, 0]) };
    unreachable!("EXIT_GROUP does not return")
}

/// Ends the program because of a panic, for panic handlers: prints the message to standard error.
pub fn exit_on_panic(info: &core::panic::PanicInfo) -> ! {
    // Formatted without the heap, which may have failed, and written in one call. A write error is
    // ignored.
    let text = FixedText::<512>::of(format_args!("{info}\n"));
    let text = text.as_str();
    // SAFETY: the text is valid for reading its length.
    let _ = unsafe { call(WRITE, [2, text.as_ptr() as u64, text.len() as u64, 0, 0, 0]) };
    exit(PANIC_STATUS)
}

/// Exit status of a panicked program: the largest of Tally's range for programs (Rust's usual 101
/// is outside of it).
const PANIC_STATUS: i32 = 63;

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel of the machine that tests run on has a call with this number, which must not be
    /// confused with one of Tally's calls.
    #[test]
    fn another_kernel_gets_no_call() {
        // SAFETY: the call has no buffer.
        let answer = |call: unsafe fn(u64, [u64; 6]) -> i64| unsafe { call(GETPID, [0; 6]) };
        assert!(!is_tally() && answer(call) > 0);
        assert_eq!(Error::from_return(answer(tally_call)), Some(Error::NotTally));
    }
}
