//! Signals: what a program does about them, which threads block them, which wait to be delivered.
//!
//! They come from the program itself, from its timer, and from its faults; nobody else can send it one. One
//! is delivered on the way back to a thread that does not block it ([`deliver`]): the thread is diverted to
//! the program's handler, or the program ends. A signal that waits already does not wait twice.

// Numbers of signals (Linux's `asm-generic/signal.h`, as x86 has them).
pub const SIGILL: u32 = 4;
pub const SIGTRAP: u32 = 5;
pub const SIGBUS: u32 = 7;
pub const SIGFPE: u32 = 8;
const SIGKILL: u32 = 9;
pub const SIGSEGV: u32 = 11;
pub const SIGALRM: u32 = 14;
const SIGSTOP: u32 = 19;
/// Those that are nothing to a program without a handler: SIGCHLD, SIGCONT, SIGURG and SIGWINCH.
const IGNORED: u64 = bit(17) | bit(18) | bit(23) | bit(28);
/// Those that nobody handles, blocks or ignores.
const UNBLOCKED: u64 = bit(SIGKILL) | bit(SIGSTOP);
/// The highest.
pub const SIGNALS: u32 = 64;

/// `SI_KERNEL`: nobody sent it.
pub const FROM_KERNEL: i32 = 0x80;
/// `SI_USER`, of `kill`.
pub const BY_PROGRAM: i32 = 0;
/// `SI_TKILL`, of `tkill` and `tgkill`.
pub const BY_THREAD: i32 = -6;

/// `SIG_DFL` and `SIG_IGN`, where a handler would be.
pub const DEFAULT: u64 = 0;
pub const IGNORE: u64 = 1;
/// Flags of an action: on the alternative stack, calls are made again, the signal is not blocked, and the
/// default from the next one on.
pub const ON_STACK: u64 = 0x0800_0000;
pub const RESTART: u64 = 0x1000_0000;
pub const NO_DEFER: u64 = 0x4000_0000;
pub const ONCE: u64 = 0x8000_0000;

/// A signal's bit in a set.
pub const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// A set of signals that a thread may block.
pub fn blockable(set: u64) -> u64 {
    set & !UNBLOCKED
}

/// What a program does about a signal: Linux's `struct sigaction`, in words.
#[derive(Clone, Copy, Debug, Default)]
pub struct Action {
    /// Where the handler begins, or [`DEFAULT`] or [`IGNORE`].
    pub handler: u64,
    /// Flags.
    pub flags: u64,
    /// Where the handler returns to.
    pub restorer: u64,
    /// What is blocked meanwhile.
    pub mask: u64,
}

/// A signal that waits for delivery.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// Its number, 1 to 64.
    pub signal: u32,
    /// Who sent it: `si_code`.
    pub code: i32,
}

/// The signals that wait for delivery, each once: of a fixed size, so that sending one takes no memory.
pub struct PendingSet {
    set: u64,
    /// Who sent it, of each that is in the set.
    codes: [i32; SIGNALS as usize],
}

impl Default for PendingSet {
    fn default() -> Self {
        PendingSet { set: 0, codes: [0; SIGNALS as usize] }
    }
}

impl PendingSet {
    /// All of them.
    pub fn set(&self) -> u64 {
        self.set
    }

    /// Notes a signal, if it does not wait already.
    pub fn note(&mut self, new: Pending) {
        if self.set & bit(new.signal) == 0 {
            self.set |= bit(new.signal);
            self.codes[new.signal as usize - 1] = new.code;
        }
    }

    /// Takes one out that is in `set`: the lowest, as under Linux.
    pub fn take(&mut self, set: u64) -> Option<Pending> {
        let index = (self.set & set).trailing_zeros();
        let code = *self.codes.get(index as usize)?;
        self.set &= !bit(index + 1);
        Some(Pending { signal: index + 1, code })
    }
}

/// A program's.
pub struct Signals {
    actions: [Action; SIGNALS as usize],
    /// Sent to the program while every thread blocked them.
    pub pending: PendingSet,
    /// When its timer sends it SIGALRM, and the nanoseconds until the next after that, or 0.
    pub timer: Option<(u64, u64)>,
}

/// A thread's.
#[derive(Default)]
pub struct ThreadSignals {
    /// What it blocks.
    pub mask: u64,
    /// What it blocks again when a handler has ended that came while it waited with another mask.
    pub mask_after: Option<u64>,
    /// The stack for handlers that want it: where, and how many bytes; 0: none.
    pub stack: (u64, u64),
    /// Whether a threshold's handler runs.
    pub in_upcall: bool,
    /// The number of a call that a signal interrupted and that is made again, if no handler forbids.
    pub restart: Option<u64>,
    /// Sent to it, or for it to take.
    pub pending: PendingSet,
}

impl ThreadSignals {
    /// A new thread's.
    pub fn inherited(&self) -> Self {
        ThreadSignals { mask: self.mask, ..ThreadSignals::default() }
    }

    /// Whether the stack pointer is on the alternative stack.
    pub fn on_stack(&self, rsp: u64) -> bool {
        let (start, bytes) = self.stack;
        rsp.wrapping_sub(start).wrapping_sub(1) < bytes
    }
}

impl Signals {
    /// A program's at its start.
    pub fn new() -> Self {
        let actions = [Action::default(); SIGNALS as usize];
        Signals { actions, pending: PendingSet::default(), timer: None }
    }

    /// What is done about a signal, 1 to 64.
    pub fn action(&mut self, signal: u32) -> &mut Action {
        &mut self.actions[signal as usize - 1]
    }

    /// Whether a signal may be given an action.
    pub fn can_handle(signal: u32) -> bool {
        (1..=SIGNALS).contains(&signal) && bit(signal) & UNBLOCKED == 0
    }

    /// Whether any of a set is not ignored.
    pub fn heeds_any(&self, set: u64) -> bool {
        (1..=SIGNALS).any(|signal| set & bit(signal) != 0 && !self.ignores(signal))
    }

    pub fn ignores(&self, signal: u32) -> bool {
        match self.actions[signal as usize - 1].handler {
            DEFAULT => bit(signal) & IGNORED != 0,
            handler => handler == IGNORE,
        }
    }
}

/// What is told of a signal: `siginfo_t`.
pub type Info = [u64; INFO_WORDS];
/// Its words.
pub const INFO_WORDS: usize = 16;

/// What is told of a signal that the program `pid` sent itself.
pub fn sender(pid: u32, signal: Pending) -> Info {
    let mut info = [0; INFO_WORDS];
    info[0] = signal.signal.into();
    info[1] = u64::from(signal.code as u32);
    // User 0.
    info[2] = pid.into();
    info
}
