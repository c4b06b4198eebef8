//! Calls on time. The kernel does not read the machine's date: the command line has the date of its
//! start.

use tally_abi::syscall::{self, errno::EINVAL};

use super::answer::{Answer, Errno};
use crate::{
    machine::clock::{self, SECOND_NS},
    task::{
        Process,
        thread::Wait,
        timers::Measured,
        vdso::{CLOCKS, DATES},
    },
};

/// `CLOCK_REALTIME` and `CLOCK_MONOTONIC`.
pub(super) const REAL: u64 = 0;
pub(super) const SINCE_BOOT: u64 = 1;
/// `CLOCK_PROCESS_CPUTIME_ID` and `CLOCK_THREAD_CPUTIME_ID`.
const OF_PROGRAM: i32 = 2;
const OF_THREAD: i32 = 3;
/// Bit that makes a negative clock number a thread's (`CPUCLOCK_PERTHREAD_MASK`).
const IS_THREAD: i32 = 4;
/// `TIMER_ABSTIME`.
pub(super) const ABSOLUTE: u64 = 1;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, c, d, ..]: [u64; 6],
) -> Option<Result<Answer, Errno>> {
    let result = match number {
        syscall::NANOSLEEP => return Some(sleep(process, None, a, b)),
        syscall::CLOCK_GETTIME | syscall::CLOCK_GETRES if !CLOCKS.contains(&a) => {
            match ran_ns(process, a) {
                Some(ran) if number == syscall::CLOCK_GETTIME => write_time(process, b, ran, 1),
                Some(_) => write_words(process, b, [0, 1]),
                None => Err(Errno(EINVAL)),
            }
        }
        syscall::CLOCK_NANOSLEEP if !CLOCKS.contains(&a) => Err(Errno(EINVAL)),
        syscall::CLOCK_NANOSLEEP => {
            let clock = (b & ABSOLUTE != 0).then_some(a);
            return Some(sleep(process, clock, c, d));
        }
        syscall::CLOCK_GETRES => write_words(process, b, [0, 1]),
        syscall::CLOCK_GETTIME => write_time(process, b, now(a), 1),
        syscall::GETTIMEOFDAY => write_time(process, a, clock::date_ns(), 1000),
        syscall::TIME => time(process, a),
        _ => return None,
    };
    Some(result.map(Answer::Value))
}

/// A clock's time, in nanoseconds.
fn now(which: u64) -> u64 {
    if DATES.contains(&which) { clock::date_ns() } else { clock::now_ns() }
}

/// Converts a clock's time to [`clock`]'s, in nanoseconds.
pub(super) fn since_boot(which: u64, time: u64) -> u64 {
    let before = if DATES.contains(&which) { clock::date_at_start_ns() } else { 0 };
    time.saturating_sub(before)
}

/// The time of a CPU-time clock, in nanoseconds; `None` for other clocks.
fn ran_ns(process: &mut Process, clock: u64) -> Option<u64> {
    cpu_time(process, clock)?.now_ns(&process.threads)
}

/// The program or thread of a CPU-time clock; `None` for other clocks. Negative clock numbers
/// contain the inverted number of a program or a thread.
pub(super) fn cpu_time(process: &mut Process, clock: u64) -> Option<Measured> {
    let (own, clock) = (process.threads.running().tid, clock as i32);
    let number = !(clock >> 3) as u32;
    Some(match clock {
        OF_PROGRAM => Measured::Program,
        OF_THREAD => Measured::Thread(own),
        0.. => return None,
        _ if clock & 3 == 3 => return None,
        _ if clock & IS_THREAD != 0 && number == 0 => Measured::Thread(own),
        _ if clock & IS_THREAD != 0 => Measured::Thread(number),
        _ if number == 0 || number == process.pid => Measured::Program,
        _ => return None,
    })
}

/// Writes a time in nanoseconds as seconds and the remainder in units of `unit_ns` nanoseconds.
fn write_time(process: &mut Process, to: u64, time: u64, unit_ns: u64) -> Result<u64, Errno> {
    let [seconds, rest] = clock::to_timespec(time);
    write_words(process, to, [seconds, rest / unit_ns])
}

fn write_words(process: &mut Process, to: u64, words: [u64; 2]) -> Result<u64, Errno> {
    if to != 0 {
        process.memory.write_words(to, words)?;
    }
    Ok(0)
}

fn time(process: &mut Process, to: u64) -> Result<u64, Errno> {
    let seconds = clock::date_ns() / SECOND_NS;
    if to != 0 {
        process.memory.write_words(to, [seconds])?;
    }
    Ok(seconds)
}

/// `nanosleep` and `clock_nanosleep`: sleeps until a time of the clock `until`, or for a time if
/// that is `None`.
fn sleep(process: &mut Process, until: Option<u64>, from: u64, left: u64) -> Result<Answer, Errno> {
    let left = if until.is_some() { 0 } else { left };
    let until = deadline(process, until, from)?;
    Ok(Answer::Wait(Wait::Sleep { until, left }))
}

/// [`deadline`], or `None` if the address is 0: the call has no timeout.
pub(super) fn deadline_if_any(
    process: &mut Process,
    of_clock: Option<u64>,
    from: u64,
) -> Result<Option<u64>, Errno> {
    match from {
        0 => Ok(None),
        from => deadline(process, of_clock, from).map(Some),
    }
}

/// The time of a `struct timespec` of the program, in [`clock`]'s nanoseconds: a time of the clock
/// `of_clock`, or relative to now if that is `None`.
fn deadline(process: &mut Process, of_clock: Option<u64>, from: u64) -> Result<u64, Errno> {
    let [seconds, rest] = process.memory.read_words(from)?;
    let wanted = nanoseconds(seconds, rest, 1)?;
    Ok(match of_clock {
        Some(which) => since_boot(which, wanted),
        None => clock::now_ns().saturating_add(wanted),
    })
}

/// The deadline for the time of a `struct timeval`; `None` if the address is 0.
pub(super) fn microseconds(process: &mut Process, from: u64) -> Result<Option<u64>, Errno> {
    if from == 0 {
        return Ok(None);
    }
    let [seconds, rest] = process.memory.read_words(from)?;
    let time = nanoseconds(seconds, rest, 1000)?;
    Ok(Some(clock::now_ns().saturating_add(time)))
}

/// The interval and the first time, in nanoseconds, of a `struct itimerspec`, or of a `struct
/// itimerval` with units of 1,000 nanoseconds.
pub(super) fn intervals(
    process: &mut Process,
    from: u64,
    unit_ns: u64,
) -> Result<(u64, u64), Errno> {
    let [a, b, c, d] = process.memory.read_words(from)?;
    Ok((nanoseconds(a, b, unit_ns)?, nanoseconds(c, d, unit_ns)?))
}

/// Converts seconds and a remainder in units of `unit_ns` nanoseconds to nanoseconds.
fn nanoseconds(seconds: u64, rest: u64, unit_ns: u64) -> Result<u64, Errno> {
    if rest >= SECOND_NS / unit_ns || seconds > i64::MAX as u64 {
        return Err(Errno(EINVAL));
    }
    Ok(seconds.saturating_mul(SECOND_NS).saturating_add(rest * unit_ns))
}
