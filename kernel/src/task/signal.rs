//! Signals: what a program does about them, which threads block them, which wait to be delivered.
//!
//! They come from the program itself, from its timer, and from its faults; nobody else can send it one. One
//! is delivered on the way back to a thread that does not block it ([`deliver`]): the thread is diverted to
//! the program's handler, or the program ends. A signal that waits already does not wait twice.

use core::mem::take;

use tally_abi::syscall;

use super::{
    Process, divert,
    fault::Fault,
    thread::{Thread, Wait},
};
use crate::{
    cpu::{Cpu, entry::Frame},
    machine::clock,
};

/// The length of SYSCALL: 0F 05. A call that is to be made again begins so many bytes before.
pub const SYSCALL_BYTES: u64 = 2;
/// The status of a program that a signal ended, as shells tell it: this and the signal's number.
const SIGNALLED: i32 = 128;

// Numbers of signals (Linux's `asm-generic/signal.h`, as x86 has them).
pub const SIGILL: u32 = 4;
pub const SIGTRAP: u32 = 5;
pub const SIGBUS: u32 = 7;
pub const SIGFPE: u32 = 8;
const SIGKILL: u32 = 9;
pub const SIGSEGV: u32 = 11;
const SIGALRM: u32 = 14;
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
const DEFAULT: u64 = 0;
const IGNORE: u64 = 1;
/// Flags of an action: on the alternative stack, calls are made again, the signal is not blocked, and the
/// default from the next one on.
pub const ON_STACK: u64 = 0x0800_0000;
const RESTART: u64 = 0x1000_0000;
const NO_DEFER: u64 = 0x4000_0000;
const ONCE: u64 = 0x8000_0000;

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
    fn note(&mut self, new: Pending) {
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
    again: Option<u64>,
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

    fn ignores(&self, signal: u32) -> bool {
        match self.actions[signal as usize - 1].handler {
            DEFAULT => bit(signal) & IGNORED != 0,
            handler => handler == IGNORE,
        }
    }
}

impl Process {
    /// Sends a signal to the thread `to`, or to whichever takes it; whether there is such a thread.
    pub fn send_signal(&mut self, to: Option<u32>, new: Pending) -> bool {
        if to.is_some_and(|tid| self.threads.all().all(|thread| thread.tid != tid)) {
            return false;
        }
        let bit = bit(new.signal);
        if let Some((tid, info)) = self.threads.awaits_signal(bit, to) {
            self.tell_signal(new, info);
            self.threads.rouse(tid, new.signal.into());
            return true;
        }
        let takes = |thread: &mut Thread| match to {
            Some(tid) => thread.tid == tid,
            None => thread.signals.mask & bit == 0,
        };
        let ignores = self.signals.ignores(new.signal);
        let Some(thread) = self.threads.all().find_map(|thread| takes(thread).then_some(thread))
        else {
            self.signals.pending.note(new);
            return true;
        };
        let blocks = thread.signals.mask & bit != 0;
        if blocks || !ignores {
            thread.signals.pending.note(new);
        }
        let tid = thread.tid;
        if !blocks && !ignores {
            self.interrupt(tid);
        }
        true
    }

    /// Ends what a thread waits for, if it does, because of a signal.
    fn interrupt(&mut self, tid: u32) {
        let Some(on) = self.threads.waits(tid) else { return };
        let again = match on {
            Wait::Futex { until: None, .. } => Some(syscall::FUTEX),
            Wait::Child(_) => Some(syscall::PROGRAM_WAIT),
            _ => None,
        };
        if let Wait::Sleep { until, left } = on
            && left != 0
        {
            // Where that is no memory of the program's, nobody will miss it.
            let rest = until.saturating_sub(clock::now_ns());
            let _ = self.space.write_words(left, clock::to_timespec(rest));
        }
        let answer = -syscall::errno::EINTR;
        if let Some(thread) = self.threads.rouse(tid, answer as u64) {
            thread.signals.again = again;
        }
    }

    /// Takes a signal of `set` out that waits for the running thread or its program.
    pub fn take_signal(&mut self, set: u64) -> Option<Pending> {
        let own = self.threads.running().signals.pending.take(set);
        own.or_else(|| self.signals.pending.take(set))
    }

    /// Writes what is known of a signal to the program's memory, if `info` is not 0.
    pub fn tell_signal(&mut self, signal: Pending, info: u64) {
        if info != 0 {
            // Where that is no memory of the program's, nobody will miss it.
            let _ = self.space.write_words(info, divert::sender(self.pid, signal));
        }
    }

    /// Lets those go on whose time has come, and sends the timer's signal.
    pub fn expire(&mut self) {
        let now = clock::now_ns();
        self.threads.expire(now);
        if let Some((due, interval)) = self.signals.timer.filter(|(due, _)| *due <= now) {
            let missed = (now - due).checked_div(interval).unwrap_or(0);
            let next = due.saturating_add((missed + 1).saturating_mul(interval));
            self.signals.timer = (interval > 0).then_some((next, interval));
            self.send_signal(None, Pending { signal: SIGALRM, code: FROM_KERNEL });
        }
    }

    /// Whether none of its threads but the running one will go on by itself.
    pub fn is_stuck(&self) -> bool {
        self.signals.timer.is_none() && self.threads.are_stuck()
    }

    /// Whether its timer's signal, when it comes, ends what a thread waits for.
    fn heeds_timer(&mut self) -> bool {
        let alarm = bit(SIGALRM);
        self.signals.timer.is_some()
            && (self.threads.awaits_signal(alarm, None).is_some()
                || !self.signals.ignores(SIGALRM)
                    && self.threads.all().any(|thread| thread.signals.mask & alarm == 0))
    }

    /// Where none of its threads will ever go on, as it was its timer that they were left, or that can do nothing
    /// for them: the first comes onto a CPU once more, and the program ends there ([`deliver`]).
    pub fn find_deadlock(&mut self) {
        let first = self.threads.all().next().map(|thread| thread.tid);
        if self.threads.are_stuck()
            && !self.heeds_timer()
            && let Some(tid) = first
        {
            self.is_deadlocked = self.threads.rouse(tid, -syscall::errno::EINTR as u64).is_some();
        }
    }

    /// When anything of it happens by itself, while all of its threads wait.
    pub fn deadline(&self) -> Option<u64> {
        let timer = self.signals.timer.map(|(due, _)| due);
        self.threads.deadline().into_iter().chain(timer).min()
    }
}

/// Delivers what waits for the thread that the CPU is about to go back to, if it is. Whoever enters the
/// kernel ends with this.
pub fn deliver(cpu: &mut Cpu, frame: &mut Frame) {
    while let Some(process) = cpu.current.as_deref_mut() {
        if process.is_deadlocked {
            super::crash(cpu, frame, Fault::of_kind(super::DEADLOCK, None));
            continue;
        }
        let mask = process.threads.running().signals.mask;
        let Some(pending) = process.take_signal(!mask) else { break };
        let action = *process.signals.action(pending.signal);
        if process.signals.ignores(pending.signal) {
            continue;
        }
        if action.handler == DEFAULT {
            super::exit(cpu, frame, SIGNALLED + pending.signal as i32);
            continue;
        }
        let info = divert::sender(process.pid, pending);
        if let Err(stack) = handle(process, frame, pending.signal, info, &Fault::default()) {
            super::crash(cpu, frame, stack);
        }
    }
    let Some(process) = cpu.current.as_deref_mut() else { return };
    let signals = &mut process.threads.running().signals;
    signals.mask = signals.mask_after.take().unwrap_or(signals.mask);
    if let Some(number) = take(&mut signals.again) {
        again(frame, number);
    }
}

/// The call that the frame returns from is made again.
fn again(frame: &mut Frame, number: u64) {
    frame.rax = number;
    repeat(frame);
}

/// The call that the frame returns from is made again, with RAX as it is.
pub fn repeat(frame: &mut Frame) {
    frame.rip -= SYSCALL_BYTES;
    // Not by SYSRET, which goes by RCX.
    frame.vector = 0;
}

/// A fault of the running thread's own: whether its handler takes it, or why that cannot be.
pub fn catch(process: &mut Process, frame: &mut Frame, fault: &Fault) -> Option<Result<(), Fault>> {
    let signal = fault.signal;
    let blocked = process.threads.running().signals.mask & bit(signal) != 0;
    if blocked || process.signals.action(signal).handler <= IGNORE {
        return None;
    }
    Some(handle(process, frame, signal, divert::fault(fault), fault))
}

/// Diverts the running thread to its program's handler of a signal.
fn handle(
    process: &mut Process,
    frame: &mut Frame,
    signal: u32,
    info: divert::Info,
    fault: &Fault,
) -> Result<(), Fault> {
    let action = *process.signals.action(signal);
    let signals = &mut process.threads.running().signals;
    if let Some(number) = take(&mut signals.again)
        && action.flags & RESTART != 0
    {
        again(frame, number);
    }
    let wants_stack = action.flags & ON_STACK != 0 && signals.stack.1 > 0;
    let top = match wants_stack && !signals.on_stack(frame.rsp) {
        true => signals.stack.0.wrapping_add(signals.stack.1),
        false => divert::below_red_zone(frame.rsp),
    };
    divert::to_signal(process, frame, top, &action, signal, info, fault)?;
    let signals = &mut process.threads.running().signals;
    signals.mask |= blockable(action.mask);
    if action.flags & NO_DEFER == 0 {
        signals.mask |= blockable(bit(signal));
    }
    if action.flags & ONCE != 0 {
        process.signals.action(signal).handler = DEFAULT;
    }
    Ok(())
}
