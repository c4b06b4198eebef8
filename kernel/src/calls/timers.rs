//! The timers of `timer_create`.

use tally_abi::syscall::{
    self,
    errno::{EAGAIN, EINVAL, ESRCH},
};

use super::{
    answer::{Answer, Errno},
    signals,
    streams::write_rest,
    time::{self, ABSOLUTE},
};
use crate::{
    files::expiry::Expiry,
    task::{
        Process,
        signal::SIGALRM,
        timers::{Measured, Timer},
    },
};

/// `SIGEV_NONE` and `SIGEV_THREAD_ID`, in `sigev_notify`.
const NONE: u32 = 1;
const TO_THREAD: u32 = 4;
/// `SIGEV_THREAD`, which the kernel treats as a signal.
const BY_LIBRARY: u32 = 2;
/// The clocks of `clock_nanosleep`, without the coarse ones.
const CLOCKS: [u64; 6] = [0, 1, 7, 8, 9, 11];

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, c, d, ..]: [u64; 6],
) -> Option<Result<Answer, Errno>> {
    let result = match number {
        syscall::TIMER_CREATE => create(process, [a, b, c]),
        syscall::TIMER_SETTIME => set(process, [a, b, c, d]),
        syscall::TIMER_GETTIME => {
            let timer = timer(process, a).copied();
            timer.and_then(|timer| write_rest(process, b, timer.rest(&process.threads)))
        }
        syscall::TIMER_GETOVERRUN => timer(process, a).map(|timer| timer.overruns.into()),
        syscall::TIMER_DELETE => process.delete_timer(a).then_some(0).ok_or(Errno(EINVAL)),
        _ => return None,
    };
    Some(result.map(Answer::Value))
}

fn timer(process: &mut Process, number: u64) -> Result<&mut Timer, Errno> {
    process.timers.get(number).ok_or(Errno(EINVAL))
}

/// `timer_create`: the signal is in the `struct sigevent` at `event`; if that is 0, SIGALRM with
/// the timer's number.
fn create(process: &mut Process, [clock, event, to]: [u64; 3]) -> Result<u64, Errno> {
    let of = match clock {
        clock if CLOCKS.contains(&clock) => Measured::Time(clock),
        clock => time::cpu_time(process, clock).ok_or(Errno(EINVAL))?,
    };
    of.now_ns(&process.threads).ok_or(Errno(EINVAL))?;
    let sends = match event {
        0 => Some((SIGALRM, 0, None)),
        from => wanted(process, from)?,
    };
    process.memory.write(to, &[0; 4])?;
    let timer = Timer { of, sends, due: None, overruns: 0 };
    let number = process.timers.add(timer).ok_or(Errno(EAGAIN))?;
    if event == 0 {
        let with_number = timer.sends.map(|(signal, _, to)| (signal, number.into(), to));
        self::timer(process, number.into())?.sends = with_number;
    }
    process.memory.write(to, &number.to_le_bytes())?;
    Ok(0)
}

/// The signal, the value and the thread of a `struct sigevent`; `None` if it requests no signal.
fn wanted(process: &mut Process, from: u64) -> Result<Option<(u32, u64, Option<u32>)>, Errno> {
    let [value, words, thread] = process.memory.read_words(from)?;
    let (signal, how, thread) = (words as u32, (words >> 32) as u32, thread as u32);
    let to = match how {
        NONE => return Ok(None),
        0 | BY_LIBRARY => None,
        TO_THREAD => Some(thread),
        _ => return Err(Errno(EINVAL)),
    };
    if to.is_some_and(|tid| process.threads.ran(Some(tid)).is_none()) {
        return Err(Errno(EINVAL));
    }
    Ok(Some((signals::number(signal.into())?, value, to)))
}

/// `timer_settime`.
fn set(process: &mut Process, [number, flags, new, old]: [u64; 4]) -> Result<u64, Errno> {
    let set = *timer(process, number)?;
    if new == 0 {
        return Err(Errno(EINVAL));
    }
    let (interval, first) = time::intervals(process, new, 1)?;
    // The thread whose time the timer measures may have ended.
    let now = set.of.now_ns(&process.threads).ok_or(Errno(ESRCH))?;
    let at_ns = match (flags & ABSOLUTE, set.of) {
        (0, _) => now.saturating_add(first),
        (_, Measured::Time(clock)) => time::since_boot(clock, first),
        _ => first,
    };
    let before = set.rest(&process.threads);
    let timer = timer(process, number)?;
    timer.due = (first > 0).then_some(Expiry { at_ns, interval_ns: interval });
    timer.overruns = 0;
    if old != 0 {
        write_rest(process, old, before)?;
    }
    Ok(0)
}
