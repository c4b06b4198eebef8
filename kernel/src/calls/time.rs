//! Calls on time. The machine's date is not read: real time begins in 1970.

use tally_abi::syscall::{self, errno::EINVAL};

use super::answer::{Answer, Errno};
use crate::{
    machine::clock::{self, SECOND_NS},
    task::{Process, thread::Wait},
};

/// The clocks of `clock_gettime` for real time and for time since the start, coarse or not.
const CLOCKS: [u64; 6] = [0, 1, 4, 5, 6, 7];
/// `CLOCK_PROCESS_CPUTIME_ID` and `CLOCK_THREAD_CPUTIME_ID`.
const OF_PROGRAM: u64 = 2;
const OF_THREAD: u64 = 3;
/// `TIMER_ABSTIME`.
const ABSOLUTE: u64 = 1;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, c, d, ..]: [u64; 6],
) -> Option<Result<Answer, Errno>> {
    let result = match number {
        syscall::NANOSLEEP => return Some(sleep(process, false, a, b)),
        syscall::CLOCK_GETTIME if counts_time(process, a) => {
            let ran = process.ran_ns();
            write_time(process, b, ran, 1)
        }
        syscall::CLOCK_GETRES if counts_time(process, a) => write_words(process, b, [0, 1]),
        syscall::CLOCK_NANOSLEEP | syscall::CLOCK_GETTIME | syscall::CLOCK_GETRES
            if !CLOCKS.contains(&a) =>
        {
            Err(Errno(EINVAL))
        }
        syscall::CLOCK_NANOSLEEP => return Some(sleep(process, b & ABSOLUTE != 0, c, d)),
        syscall::CLOCK_GETRES => write_words(process, b, [0, 1]),
        syscall::CLOCK_GETTIME => write_time(process, b, clock::now_ns(), 1),
        syscall::GETTIMEOFDAY => write_time(process, a, clock::now_ns(), 1000),
        syscall::TIME => time(process, a),
        _ => return None,
    };
    Some(result.map(Answer::Value))
}

/// Returns whether a clock is the program's CPU time. A single thread's is not measured.
fn counts_time(process: &Process, clock: u64) -> bool {
    clock == OF_PROGRAM || clock == OF_THREAD && process.threads.len() == 1
}

/// Writes a time in nanoseconds as seconds and a rest in units of `unit_ns` nanoseconds.
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
    let seconds = clock::now_ns() / SECOND_NS;
    if to != 0 {
        process.memory.write_words(to, [seconds])?;
    }
    Ok(seconds)
}

/// `nanosleep` and `clock_nanosleep`.
fn sleep(process: &mut Process, is_absolute: bool, from: u64, left: u64) -> Result<Answer, Errno> {
    let until = deadline(process, is_absolute, from)?;
    Ok(Answer::Wait(Wait::Sleep { until, left: if is_absolute { 0 } else { left } }))
}

/// As [`deadline`], but none if the address is 0: the call has no timeout.
pub(super) fn deadline_if_any(
    process: &mut Process,
    is_absolute: bool,
    from: u64,
) -> Result<Option<u64>, Errno> {
    match from {
        0 => Ok(None),
        from => deadline(process, is_absolute, from).map(Some),
    }
}

/// The time, in [`clock`]'s nanoseconds, of a `struct timespec` of the program.
fn deadline(process: &mut Process, is_absolute: bool, from: u64) -> Result<u64, Errno> {
    let [seconds, rest] = process.memory.read_words(from)?;
    if rest >= SECOND_NS || seconds > i64::MAX as u64 {
        return Err(Errno(EINVAL));
    }
    let wanted = seconds.saturating_mul(SECOND_NS).saturating_add(rest);
    Ok(if is_absolute { wanted } else { clock::now_ns().saturating_add(wanted) })
}
