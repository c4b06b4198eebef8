//! Calls on signals.

use tally_abi::syscall::{
    self,
    errno::{EAGAIN, EINTR, EINVAL, ENOMEM, EPERM, ESRCH},
};

use super::{
    answer::{Answer, Errno},
    time::{deadline_if_any, intervals},
};
use crate::{
    files::expiry::Expiry,
    machine::clock::{self, SECOND_NS},
    task::{
        Process,
        send::SendError,
        signal::{Action, BY_PROGRAM, BY_THREAD, Pending, SIGNALS, Signals, bit, blockable},
        thread::Wait,
    },
};

/// Bytes of a signal set in a call's argument.
const SET_BYTES: u64 = 8;
/// `SIG_BLOCK`, `SIG_UNBLOCK`, `SIG_SETMASK`.
const BLOCK: u64 = 0;
const UNBLOCK: u64 = 1;
const SET_MASK: u64 = 2;
/// `SS_ONSTACK`, `SS_DISABLE`.
const ON_STACK: u64 = 1;
const DISABLE: u64 = 2;
/// `MINSIGSTKSZ`.
const MIN_STACK_BYTES: u64 = 2048;
/// `ITIMER_REAL` and `ITIMER_PROF`; between them is `ITIMER_VIRTUAL`.
const REAL: u64 = 0;
const PROF: u64 = 2;
const MICROSECOND_NS: u64 = 1000;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, c, d, ..]: [u64; 6],
) -> Option<Result<Answer, Errno>> {
    let result = match number {
        syscall::RT_SIGACTION if d != SET_BYTES => Err(Errno(EINVAL)),
        syscall::RT_SIGPROCMASK if d != SET_BYTES => Err(Errno(EINVAL)),
        syscall::RT_SIGACTION => act(process, a, b, c),
        syscall::RT_SIGPROCMASK => mask(process, a, b, c),
        syscall::RT_SIGPENDING => pending(process, a, b),
        syscall::RT_SIGSUSPEND => return Some(suspend(process, a, b)),
        syscall::RT_SIGTIMEDWAIT => return Some(wait(process, [a, b, c, d])),
        syscall::PAUSE => return Some(Ok(Answer::Wait(Wait::HANDLER))),
        syscall::KILL => kill(process, a, b),
        syscall::TKILL => send_to_thread(process, a, b),
        syscall::TGKILL if a != u64::from(process.pid) => Err(Errno(ESRCH)),
        syscall::TGKILL => send_to_thread(process, b, c),
        syscall::RT_SIGQUEUEINFO => queue(process, a, None, [b, c]),
        syscall::RT_TGSIGQUEUEINFO => queue(process, a, Some(b), [c, d]),
        syscall::ALARM => alarm(process, a),
        syscall::SETITIMER | syscall::GETITIMER if a > PROF => Err(Errno(EINVAL)),
        syscall::SETITIMER if a != REAL => set_cpu_timer(process, a, [b, c]),
        syscall::GETITIMER if a != REAL => write_cpu_timer(process, a, b),
        syscall::SETITIMER => set_timer(process, b, c),
        syscall::GETITIMER => write_timer(process, b),
        _ => return None,
    };
    Some(result.map(Answer::Value))
}

/// The number of a signal, 1 to 64.
pub(super) fn number(signal: u64) -> Result<u32, Errno> {
    let signal = u32::try_from(signal).map_err(|_| Errno(EINVAL))?;
    (1..=SIGNALS).contains(&signal).then_some(signal).ok_or(Errno(EINVAL))
}

/// `rt_sigaction`. A pending signal that is ignored from now on is discarded.
fn act(process: &mut Process, signal: u64, new: u64, old: u64) -> Result<u64, Errno> {
    let signal = number(signal)?;
    let wanted = match new {
        0 => None,
        _ if !Signals::can_handle(signal) => return Err(Errno(EINVAL)),
        from => Some(process.memory.read_words(from)?),
    };
    let Action { handler, flags, restorer, mask } = *process.signals.action(signal);
    if old != 0 {
        process.memory.write_words(old, [handler, flags, restorer, mask])?;
    }
    if let Some([handler, flags, restorer, mask]) = wanted {
        *process.signals.action(signal) = Action { handler, flags, restorer, mask };
        if !process.signals.any_acts(bit(signal)) {
            process.signals.pending.discard(signal);
            process.threads.all().for_each(|thread| thread.signals.pending.discard(signal));
        }
    }
    Ok(0)
}

/// `rt_sigprocmask`.
fn mask(process: &mut Process, how: u64, new: u64, old: u64) -> Result<u64, Errno> {
    let before = process.threads.running().signals.mask;
    let after = match new {
        0 => before,
        from => {
            let [set] = process.memory.read_words(from)?;
            match how {
                BLOCK => before | set,
                UNBLOCK => before & !set,
                SET_MASK => set,
                _ => return Err(Errno(EINVAL)),
            }
        }
    };
    if old != 0 {
        process.memory.write_words(old, [before])?;
    }
    process.threads.running().signals.mask = blockable(after);
    Ok(0)
}

/// `rt_sigpending`.
fn pending(process: &mut Process, to: u64, set_bytes: u64) -> Result<u64, Errno> {
    if set_bytes > SET_BYTES {
        return Err(Errno(EINVAL));
    }
    let set = process.pending_signals().to_le_bytes();
    process.memory.write(to, &set[..set_bytes as usize])?;
    Ok(0)
}

/// `rt_sigsuspend`: waits for a signal with another mask.
fn suspend(process: &mut Process, from: u64, set_bytes: u64) -> Result<Answer, Errno> {
    swap_mask(process, from, set_bytes)?;
    Ok(Answer::Wait(Wait::HANDLER))
}

/// Sets another mask for the running thread, until its call ends.
///
/// # Errors
/// The mask is not in the program's memory; or EINTR: a signal that it does not block is pending.
pub(super) fn swap_mask(process: &mut Process, from: u64, set_bytes: u64) -> Result<(), Errno> {
    if set_bytes != SET_BYTES {
        return Err(Errno(EINVAL));
    }
    let [mask] = process.memory.read_words(from)?;
    let signals = &mut process.threads.running().signals;
    signals.mask_after = Some(core::mem::replace(&mut signals.mask, blockable(mask)));
    let due = process.pending_signals() & !blockable(mask);
    if process.signals.any_acts(due) { Err(Errno(EINTR)) } else { Ok(()) }
}

/// `rt_sigtimedwait`: consumes a signal without its handler.
fn wait(process: &mut Process, [set, info, timeout, set_bytes]: [u64; 4]) -> Result<Answer, Errno> {
    if set_bytes != SET_BYTES {
        return Err(Errno(EINVAL));
    }
    let [set] = process.memory.read_words(set)?;
    let set = blockable(set);
    let until = deadline_if_any(process, None, timeout)?;
    if let Some(signal) = process.take_signal(set) {
        process.write_signal_info(signal, info);
        return Ok(Answer::Value(signal.signal.into()));
    }
    match until {
        Some(until) if until <= clock::now_ns() => Err(Errno(EAGAIN)),
        until => Ok(Answer::Wait(Wait::Signal { set, info, until })),
    }
}

/// `sigaltstack` of the running thread, whose stack pointer is `rsp`.
pub(super) fn stack(process: &mut Process, rsp: u64, new: u64, old: u64) -> Result<u64, Errno> {
    let signals = &mut process.threads.running().signals;
    let (start, bytes) = signals.stack;
    let on_it = signals.on_stack(rsp);
    let wanted: Option<[u64; 3]> = match new {
        0 => None,
        _ if on_it => return Err(Errno(EPERM)),
        from => Some(process.memory.read_words(from)?),
    };
    if old != 0 {
        let state = if bytes == 0 { DISABLE } else { u64::from(on_it) * ON_STACK };
        process.memory.write_words(old, [start, state, bytes])?;
    }
    let signals = &mut process.threads.running().signals;
    match wanted {
        None => {}
        // The flags are an `int`, the lower half of the word.
        Some([_, flags, _]) if flags as u32 == DISABLE as u32 => signals.stack = (0, 0),
        Some([_, flags, _]) if flags as u32 & !(ON_STACK as u32) != 0 => return Err(Errno(EINVAL)),
        Some([_, _, bytes]) if bytes < MIN_STACK_BYTES => return Err(Errno(ENOMEM)),
        Some([start, _, bytes]) => signals.stack = (start, bytes),
    }
    Ok(0)
}

/// `kill`: a program can send signals only to itself.
fn kill(process: &mut Process, to: u64, signal: u64) -> Result<u64, Errno> {
    if ![0, u64::from(process.pid)].contains(&to) {
        return Err(Errno(ESRCH));
    }
    if signal != 0 {
        let signal = Pending::sent(number(signal)?, BY_PROGRAM, process.pid);
        process.send_signal(None, signal)?;
    }
    Ok(0)
}

impl From<SendError> for Errno {
    fn from(error: SendError) -> Self {
        Errno(match error {
            SendError::NoThread => ESRCH,
            SendError::Full => EAGAIN,
        })
    }
}

/// `tkill` and `tgkill`.
fn send_to_thread(process: &mut Process, to: u64, signal: u64) -> Result<u64, Errno> {
    let to = u32::try_from(to).map_err(|_| Errno(ESRCH))?;
    if signal == 0 {
        let is_there = process.threads.all().any(|thread| thread.tid == to);
        return is_there.then_some(0).ok_or(Errno(ESRCH));
    }
    let signal = Pending::sent(number(signal)?, BY_THREAD, process.pid);
    process.send_signal(Some(to), signal)?;
    Ok(0)
}

/// `rt_sigqueueinfo` and `rt_tgsigqueueinfo`: sends a signal with the description at `info`. The
/// kernel keeps its code, sender and value.
fn queue(
    process: &mut Process,
    program: u64,
    thread: Option<u64>,
    [signal, info]: [u64; 2],
) -> Result<u64, Errno> {
    let [_, code, sender, value] = process.memory.read_words(info)?;
    if program != u64::from(process.pid) {
        return Err(Errno(ESRCH));
    }
    let thread = thread.map(u32::try_from).transpose().map_err(|_| Errno(ESRCH))?;
    if signal == 0 {
        let is_there = thread.is_none_or(|tid| process.threads.ran(Some(tid)).is_some());
        return is_there.then_some(0).ok_or(Errno(ESRCH));
    }
    let (signal, code, words) = (number(signal)?, code as i32, [sender, value]);
    process.send_signal(thread, Pending { signal, code, words, timer: None })?;
    Ok(0)
}

/// The timer's remaining time, and its interval, in nanoseconds.
fn timer(process: &Process) -> (u64, u64) {
    let left = |due: u64| due.saturating_sub(clock::now_ns()).max(1);
    process.signals.timer.map_or((0, 0), |(due, interval)| (left(due), interval))
}

/// `alarm`.
fn alarm(process: &mut Process, seconds: u64) -> Result<u64, Errno> {
    let (left, _) = timer(process);
    let due = clock::now_ns() + u64::from(seconds as u32) * SECOND_NS;
    process.signals.timer = (seconds as u32 > 0).then_some((due, 0));
    Ok(left.div_ceil(SECOND_NS))
}

/// `setitimer`.
fn set_timer(process: &mut Process, new: u64, old: u64) -> Result<u64, Errno> {
    let (interval, first) = match new {
        0 => (0, 0),
        from => intervals(process, from, MICROSECOND_NS)?,
    };
    if old != 0 {
        write_timer(process, old)?;
    }
    process.signals.timer = (first > 0).then(|| (clock::now_ns().saturating_add(first), interval));
    Ok(0)
}

/// `setitimer` of `ITIMER_VIRTUAL` or `ITIMER_PROF`.
fn set_cpu_timer(process: &mut Process, which: u64, [new, old]: [u64; 2]) -> Result<u64, Errno> {
    let (interval, first) = match new {
        0 => (0, 0),
        from => intervals(process, from, MICROSECOND_NS)?,
    };
    if old != 0 {
        write_cpu_timer(process, which, old)?;
    }
    let at_ns = ran_ns(process, which).saturating_add(first);
    let due = Expiry { at_ns, interval_ns: interval };
    process.timers.intervals[which as usize - 1] = (first > 0).then_some(due);
    Ok(0)
}

/// `getitimer` of `ITIMER_VIRTUAL` or `ITIMER_PROF`.
fn write_cpu_timer(process: &mut Process, which: u64, to: u64) -> Result<u64, Errno> {
    let timer = process.timers.intervals[which as usize - 1];
    let (left, interval) = timer.map_or((0, 0), |due| due.rest(ran_ns(process, which)));
    write_interval(process, to, (left, interval))
}

/// The time that `ITIMER_VIRTUAL` or `ITIMER_PROF` measures.
fn ran_ns(process: &Process, which: u64) -> u64 {
    let ran = process.ran();
    if which == PROF { ran.all_ns() } else { ran.user_ns() }
}

/// `getitimer`.
fn write_timer(process: &mut Process, to: u64) -> Result<u64, Errno> {
    let rest = timer(process);
    write_interval(process, to, rest)
}

/// Writes a `struct itimerval`.
fn write_interval(
    process: &mut Process,
    to: u64,
    (left, interval): (u64, u64),
) -> Result<u64, Errno> {
    let [[a, b], [c, d]] = [interval, left].map(clock::to_timespec);
    process.memory.write_words(to, [a, b / MICROSECOND_NS, c, d / MICROSECOND_NS])?;
    Ok(0)
}
