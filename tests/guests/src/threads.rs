//! Threads and signals of guests that have no C library.

use core::{
    arch::{asm, naked_asm},
    sync::atomic::AtomicU32,
};

use tally::sys;

/// `CLONE_VM`, `CLONE_FS`, `CLONE_FILES`, `CLONE_SIGHAND` and `CLONE_THREAD`.
const THREAD: u64 = 0x1_0f00;
/// `CLONE_CHILD_CLEARTID`.
const CLEARS: u64 = 0x20_0000;
/// `SA_RESTORER`.
const HAS_RESTORER: u64 = 0x0400_0000;
/// Words of a signal's frame (Linux's `struct rt_sigframe`): all of them, and where some stand.
const FRAME_WORDS: usize = 55;
const REGISTERS: usize = 6;
const RIP: usize = REGISTERS + 16;
const FPU: usize = REGISTERS + 23;

/// Calls on threads, signals and affinities, those more often that have more to do.
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

/// Begins a thread in `function`, which does not return, on a stack; its number, or an error. Where it ends
/// the kernel makes the word `runs`, if there is one, 0, and wakes who waits for that.
pub fn spawn(
    stack: &'static mut [u128],
    function: extern "C" fn(u64) -> !,
    data: u64,
    runs: Option<&'static AtomicU32>,
) -> i64 {
    let top = stack.as_mut_ptr_range().end as u64;
    let (flags, word) = runs.map_or((THREAD, 0), |word| (THREAD | CLEARS, word.as_ptr() as u64));
    let result;
    // SAFETY: the new thread has the stack alone, and leaves this function for another. The word is there as
    // long as the program.
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

/// Ends the thread that calls it.
pub fn end() -> ! {
    // SAFETY: the call does not return.
    unsafe { sys::call(sys::EXIT, [0; 6]) };
    unreachable!("a thread that has ended goes no further")
}

/// What [`sys::RT_SIGACTION`] takes for a handler.
pub fn action(handler: extern "C" fn(u64), flags: u64, mask: u64) -> [u64; 4] {
    [handler as usize as u64, flags | HAS_RESTORER, go_back as *const () as u64, mask]
}

/// Where a handler returns to.
#[unsafe(naked)]
unsafe extern "C" fn go_back() -> ! {
    naked_asm!("mov eax, {back}", "syscall", "ud2", back = const sys::RT_SIGRETURN)
}

/// Says that a handler has ended that never ran, with a frame of words that `word` gives: it would go on
/// at `rip`, with the FPU that is at `fpu`.
pub fn forge(rip: u64, fpu: u64, mut word: impl FnMut() -> u64) -> ! {
    let mut frame: [u64; FRAME_WORDS] = core::array::from_fn(|_| word());
    (frame[RIP], frame[FPU]) = (rip, fpu);
    // SAFETY: nothing of this function is used any more.
    unsafe {
        asm!(
            "lea rsp, [{frame} + 8]",
            "mov eax, {back}",
            "syscall",
            "ud2",
            frame = in(reg) frame.as_ptr(),
            back = const sys::RT_SIGRETURN,
            options(noreturn),
        )
    }
}
