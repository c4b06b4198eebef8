//! Interrupt vectors, and names for the exceptions among them.

/// The scheduler's timer.
pub const TIMER: u8 = 0x30;
/// Software interrupt (`int`): the idle loop enters the scheduler.
pub const RESCHEDULE: u8 = 0x31;
/// IPI: preempts the running program, because another CPU waits to inspect it.
pub const PREEMPT_IPI: u8 = 0x32;
/// Self-IPI: a threshold of the running program has fired. The upcall is made on the return to ring
/// 3, so the overflow path itself changes no trap frame.
pub const UPCALL: u8 = 0x33;
/// Self-IPI: overflow interrupts have stored rows that should be folded into the session.
pub const FOLD: u8 = 0x34;
/// Self-IPI: the overflow interrupt has taken a sample whose stack must be copied. It has the
/// highest vector of the self-IPIs, so that it is delivered first, before the thread executes
/// another instruction.
pub const STACK: u8 = 0x35;
/// Software interrupt (`int`): starts the loop in ring 3 that checks counters.
pub const RING_3_LOOP: u8 = 0x36;
/// The overflow interrupt: of a higher priority class than the timer (Intel SDM volume 3,
/// "Interrupt, Task, and Processor Priority").
pub const PMI: u8 = 0xe0;
/// Spurious-interrupt vector (Intel SDM volume 3, "Spurious Interrupt").
pub const SPURIOUS: u8 = 0xff;

/// Name of an exception, for log lines and messages.
pub fn exception_name(vector: u64) -> &'static str {
    match vector {
        0 => "division by zero",
        1 => "debug exception",
        2 => "non-maskable interrupt",
        3 => "breakpoint",
        4 => "overflow trap",
        5 => "bound range exceeded",
        6 => "invalid instruction",
        7 => "floating-point unit not available",
        8 => "double fault",
        10 => "invalid task state",
        11 => "segment not present",
        12 => "stack segment fault",
        13 => "general protection fault",
        14 => "page fault",
        16 => "floating-point error",
        17 => "misaligned access",
        18 => "machine check",
        19 => "SIMD floating-point error",
        20 => "virtualization exception",
        21 => "control protection fault",
        _ => "unknown exception",
    }
}
