//! Signals: a program's actions, its threads' masks, and the pending signals of both.
//!
//! Signals come from the program itself, from its timers and from its faults; other programs can
//! send only SIGKILL, to programs that they loaded. A signal is delivered on the return to a thread
//! that does not block it (`sched::deliver`): the kernel calls the program's handler, or ends the
//! program. A signal below [`FIRST_QUEUED`] is pending at most once, however often it was sent;
//! others are queued in order.

use alloc::vec::Vec;
use core::array;

// Numbers of signals (Linux's `asm-generic/signal.h`; x86 has the same).
pub const SIGILL: u32 = 4;
pub const SIGTRAP: u32 = 5;
pub const SIGBUS: u32 = 7;
pub const SIGFPE: u32 = 8;
/// The signal that always ends a program.
pub const SIGKILL: u32 = 9;
pub const SIGSEGV: u32 = 11;
pub const SIGPIPE: u32 = 13;
pub const SIGALRM: u32 = 14;
const SIGSTOP: u32 = 19;
pub const SIGVTALRM: u32 = 26;
pub const SIGPROF: u32 = 27;
/// Signals that are ignored by default: SIGCHLD, SIGCONT, SIGURG and SIGWINCH.
const IGNORED: u64 = bit(17) | bit(18) | bit(23) | bit(28);
/// Signals that cannot be handled, blocked or ignored.
const UNBLOCKED: u64 = bit(SIGKILL) | bit(SIGSTOP);
/// Highest number of a signal.
pub const SIGNALS: u32 = 64;
/// Lowest number of a real-time signal (the kernel's `SIGRTMIN`).
const FIRST_QUEUED: u32 = 32;
/// Maximum number of signals with descriptions that are pending for a program and its threads.
pub const MAX_PENDING: usize = 1024;

/// `SI_KERNEL`: sent by the kernel.
pub const FROM_KERNEL: i32 = 0x80;
/// `SI_USER`: sent by `kill`.
pub const BY_PROGRAM: i32 = 0;
/// `SI_TIMER`: sent by a timer of `timer_create`.
pub const BY_TIMER: i32 = -2;
/// `SI_TKILL`: sent by `tkill` and `tgkill`.
pub const BY_THREAD: i32 = -6;

/// `SIG_DFL`, instead of a handler.
pub const DEFAULT: u64 = 0;
/// `SIG_IGN`, instead of a handler.
pub const IGNORE: u64 = 1;
/// `SA_ONSTACK`: the handler runs on the alternative stack.
pub const ON_STACK: u64 = 0x0800_0000;
/// `SA_RESTART`: the call that the signal interrupts is restarted.
pub const RESTART: u64 = 0x1000_0000;
/// `SA_NODEFER`: the signal is not blocked while its handler runs.
pub const NO_DEFER: u64 = 0x4000_0000;
/// `SA_RESETHAND`: the handler is called only once.
pub const ONCE: u64 = 0x8000_0000;

/// A signal's bit in a set.
pub const fn bit(signal: u32) -> u64 {
    1 << (signal - 1)
}

/// The signals of a set that a thread can block.
pub fn blockable(set: u64) -> u64 {
    set & !UNBLOCKED
}

/// A program's action for a signal: Linux's `struct sigaction`, in words.
#[derive(Clone, Copy, Debug, Default)]
pub struct Action {
    /// Address of the handler, or [`DEFAULT`] or [`IGNORE`].
    pub handler: u64,
    /// Flags.
    pub flags: u64,
    /// Address to which the handler returns.
    pub restorer: u64,
    /// The signals that are blocked while the handler runs.
    pub mask: u64,
}

/// A pending signal.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// Signal number, 1 to 64.
    pub signal: u32,
    /// Origin of the signal: `si_code`.
    pub code: i32,
    /// Words of its description after the code. The first: a sender's program and user, or a
    /// timer's number and overruns. The second: the value sent with the signal.
    pub words: [u64; 2],
    /// The timer that sent the signal.
    pub timer: Option<u32>,
}

impl Pending {
    /// Makes a signal that the kernel sends.
    pub fn of_kernel(signal: u32) -> Pending {
        Pending { signal, code: FROM_KERNEL, words: [0; 2], timer: None }
    }

    /// Makes a signal that the program `pid` sent.
    pub fn sent(signal: u32, code: i32, pid: u32) -> Pending {
        // User 0.
        Pending { signal, code, words: [pid.into(), 0], timer: None }
    }

    /// Returns whether each sent instance is delivered.
    fn is_queued(&self) -> bool {
        self.signal >= FIRST_QUEUED
    }

    /// The description for handlers.
    pub fn info(&self) -> SignalInfo {
        let mut info = [0; INFO_WORDS];
        info[0] = self.signal.into();
        info[1] = u64::from(self.code as u32);
        info[2..4].copy_from_slice(&self.words);
        info
    }
}

/// Pending signals.
#[derive(Default)]
pub struct PendingSet {
    set: u64,
    /// Descriptions in the order in which the signals were sent, at most one of each signal below
    /// [`FIRST_QUEUED`]. A signal in the set without a description was sent when there was no room.
    queue: Vec<Pending>,
}

impl PendingSet {
    /// The signals, a bit for each.
    pub fn set(&self) -> u64 {
        self.set
    }

    /// Number of descriptions.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Adds a signal, unless it is pending already and not queued. Returns whether it is pending.
    /// If `is_full` or no memory is left, its description is dropped; a queued signal that was not
    /// sent by `kill` is refused then.
    pub fn add(&mut self, new: Pending, is_full: bool) -> bool {
        if !new.is_queued() && self.set & bit(new.signal) != 0 {
            return true;
        }
        let has_room = (!is_full || new.timer.is_some()) && self.queue.try_reserve(1).is_ok();
        if has_room {
            self.queue.push(new);
        } else if new.is_queued() && new.code != BY_PROGRAM {
            return false;
        }
        self.set |= bit(new.signal);
        true
    }

    /// Takes the lowest pending signal of `set`, as Linux does.
    pub fn take(&mut self, set: u64) -> Option<Pending> {
        let set = self.set & set;
        let signal = (set != 0).then(|| set.trailing_zeros() + 1)?;
        let is_it = |pending: &Pending| pending.signal == signal;
        let first = self.queue.iter().position(is_it).map(|index| self.queue.remove(index));
        if !self.queue.iter().any(is_it) {
            self.set &= !bit(signal);
        }
        Some(first.unwrap_or(Pending::sent(signal, BY_PROGRAM, 0)))
    }

    /// Discards all instances of a pending signal.
    pub fn discard(&mut self, signal: u32) {
        self.set &= !bit(signal);
        self.queue.retain(|pending| pending.signal != signal);
    }

    /// The pending signal of a timer.
    pub fn of_timer(&mut self, timer: u32) -> Option<&mut Pending> {
        self.queue.iter_mut().find(|pending| pending.timer == Some(timer))
    }
}

/// A program's signals.
pub struct Signals {
    actions: [Action; SIGNALS as usize],
    /// Signals sent to the program while every thread blocked them.
    pub pending: PendingSet,
    /// The interval timer: the time of its SIGALRM, and its interval or 0, both in nanoseconds.
    pub timer: Option<(u64, u64)>,
}

/// A thread's signals.
#[derive(Default)]
pub struct ThreadSignals {
    /// The signals that the thread blocks.
    pub mask: u64,
    /// The mask to restore after a call that waits with another one, such as `sigsuspend`.
    pub mask_after: Option<u64>,
    /// The alternative stack for handlers: its start and its bytes, 0 if there is none.
    pub stack: (u64, u64),
    /// Whether the thread runs the handler of a threshold.
    pub in_upcall: bool,
    /// The number of a call that a signal interrupted, to be restarted unless the handler's action
    /// lacks [`RESTART`].
    pub restart: Option<u64>,
    /// Signals sent to the thread.
    pub pending: PendingSet,
}

impl ThreadSignals {
    /// The signals of a new thread that this one creates.
    pub fn inherited(&self) -> Self {
        ThreadSignals { mask: self.mask, ..ThreadSignals::default() }
    }

    /// Returns whether the stack pointer is on the alternative stack.
    pub fn on_stack(&self, rsp: u64) -> bool {
        let (start, bytes) = self.stack;
        rsp.wrapping_sub(start).wrapping_sub(1) < bytes
    }
}

impl Signals {
    /// The signals of a new program, with those that it ignores.
    pub fn new(ignored: u64) -> Self {
        let action = |index| match ignored >> index & 1 {
            0 => Action::default(),
            _ => Action { handler: IGNORE, ..Action::default() },
        };
        let actions = array::from_fn(action);
        Signals { actions, pending: PendingSet::default(), timer: None }
    }

    /// The action of a signal, 1 to 64.
    pub fn action(&mut self, signal: u32) -> &mut Action {
        &mut self.actions[signal as usize - 1]
    }

    /// The signals with [`IGNORE`] as their action, a bit for each.
    pub fn ignored(&self) -> u64 {
        let bits = self.actions.iter().enumerate();
        bits.filter(|(_, action)| action.handler == IGNORE).map(|(index, _)| 1 << index).sum()
    }

    /// Returns whether a signal can have an action.
    pub fn can_handle(signal: u32) -> bool {
        (1..=SIGNALS).contains(&signal) && bit(signal) & UNBLOCKED == 0
    }

    /// Returns whether any signal of a set is not ignored.
    pub fn any_acts(&self, set: u64) -> bool {
        (1..=SIGNALS).any(|signal| set & bit(signal) != 0 && !self.ignores(signal))
    }

    /// Returns whether a signal is ignored.
    pub fn ignores(&self, signal: u32) -> bool {
        match self.actions[signal as usize - 1].handler {
            DEFAULT => bit(signal) & IGNORED != 0,
            handler => handler == IGNORE,
        }
    }
}

/// Description of a signal for handlers: `siginfo_t`.
pub type SignalInfo = [u64; INFO_WORDS];
/// Words of an [`SignalInfo`].
pub const INFO_WORDS: usize = 16;
