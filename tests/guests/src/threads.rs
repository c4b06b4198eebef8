//! Threads and signals for guests without a C library.

use core::{
    arch::{asm, naked_asm},
    sync::atomic::AtomicU32,
};

use tally::sys;

/// `CLONE_VM`, `CLONE_FS`, `CLONE_FILES`, `CLONE_SIGHAND` and `CLONE_THREAD`.
const THREAD: u64 = 0x1_0f00;
/// `CLONE_CHILD_CLEARTID`.
const CLEAR_TID: u64 = 0x20_0000;
/// `SA_RESTORER`.
const RESTORER: u64 = 0x0400_0000;
/// Words of a signal frame (Linux's `struct rt_sigframe`), and the indices of some of them.
const FRAME_WORDS: usize = 55;
const REGISTERS: usize = 6;
const RIP: usize = REGISTERS + 16;
const FPU: usize = REGISTERS + 23;

/// Calls about threads, signals and affinities. Calls with more to test occur several times.
pub const CALLS_ON_THREADS: [u64; 21] = [
    sys::FUTEX,
    sys::FUTEX,
    sys::FUTEX,
    sys::RT_SIGACTION,
    sys::RT_SIGACTION,
    sys::RT_SIGPROCMASK,
    sys::RT_SIGPENDING,
    sys::RT_SIGTIMEDWAIT,
    sys::SIGALTSTACK,
    sys::TKILL,
    sys::TGKILL,
    sys::KILL,
    sys::SETITIMER,
    sys::GETITIMER,
    sys::ALARM,
    sys::SCHED_SETAFFINITY,
    sys::SCHED_GETAFFINITY,
    sys::GETCPU,
    sys::GETTID,
    sys::SET_TID_ADDRESS,
    sys::SET_ROBUST_LIST,
];

/// Starts a thread on `stack` in `function`, which does not return. Returns the thread's number or
/// an error. When the thread ends, the kernel sets the word `runs` to 0 and wakes the threads that
/// wait on it.
pub fn spawn(
    stack: &'static mut [u128],
    function: extern "C" fn(u64) -> !,
    data: u64,
    runs: Option<&'static AtomicU32>,
) -> i64 {
    let top = stack.as_mut_ptr_range().end as u64;
    let (flags, word) = runs.map_or((THREAD, 0), |word| (THREAD | CLEAR_TID, word.as_ptr() as u64));
    let result;
    // SAFETY: (1) only the new thread uses the stack, because the reference is exclusive; (2) the
    // thread leaves this function by a call that does not return; (3) the word is static.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") sys::CLONE => result,
            in("rdi") flags, in("rsi") top, in("rdx") 0, in("r10") word, in("r8") 0,
            in("r12") data, in("r13") function,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    result
}

/// Ends the calling thread.
pub fn end() -> ! {
    // SAFETY: the call does not return.
    unsafe { sys::call(sys::EXIT, [0; 6]) };
    unreachable!("exit does not return")
}

/// Words that [`sys::RT_SIGACTION`] takes for a handler.
pub fn action(handler: extern "C" fn(u64), flags: u64, mask: u64) -> [u64; 4] {
    [handler as usize as u64, flags | RESTORER, sigreturn as *const () as u64, mask]
}

/// Return address of handlers: the function of `SA_RESTORER`.
#[unsafe(naked)]
unsafe extern "C" fn sigreturn() -> ! {
    naked_asm!("mov eax, {number}", "syscall", "ud2", number = const sys::RT_SIGRETURN)
}

/// Calls `rt_sigreturn` on a forged signal frame of words from `word`, with the given instruction
/// pointer and address of the FPU's state.
pub fn forge(rip: u64, fpu: u64, mut word: impl FnMut() -> u64) -> ! {
    let mut frame: [u64; FRAME_WORDS] = core::array::from_fn(|_| word());
    (frame[RIP], frame[FPU]) = (rip, fpu);
    // SAFETY: the call does not return to this function.
    unsafe {
        asm!(
            "lea rsp, [{frame} + 8]",
            "mov eax, {number}",
            "syscall",
            "ud2",
            frame = in(reg) frame.as_ptr(),
            number = const sys::RT_SIGRETURN,
            options(noreturn),
        )
    }
}
