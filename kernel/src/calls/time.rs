//! Calls on time. Nobody asks the machine for the date: it begins at 1970.

use tally_abi::syscall::{self, errno::EINVAL};

use super::{Answer, Errno};
use crate::{
    machine::clock::{self, SECOND_NS},
    task::{Process, thread::Wait},
};

/// The clocks of `clock_gettime` that tell real time or time since the start, coarse or not.
const CLOCKS: [u64; 6] = [0, 1, 4, 5, 6, 7];
/// `TIMER_ABSTIME`.
const ABSOLUTE: u64 = 1;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, c, d, ..]: [u64; 6],
) -> Option<Result<Answer, Errno>> {
    let told = match number {
        syscall::NANOSLEEP => return Some(sleep(process, false, a, b)),
        syscall::CLOCK_NANOSLEEP | syscall::CLOCK_GETTIME | syscall::CLOCK_GETRES
            if !CLOCKS.contains(&a) =>
        {
            Err(Errno(EINVAL))
        }
        syscall::CLOCK_NANOSLEEP => return Some(sleep(process, b & ABSOLUTE != 0, c, d)),
        syscall::CLOCK_GETRES => write_words(process, b, [0, 1]),
        syscall::CLOCK_GETTIME => write_time(process, b, 1),
        syscall::GETTIMEOFDAY => write_time(process, a, 1000),
        syscall::TIME => time(process, a),
        _ => return None,
    };
    Some(told.map(Answer::Value))
}

/// Seconds, and the rest in units of so many nanoseconds.
fn write_time(process: &mut Process, to: u64, unit_ns: u64) -> Result<u64, Errno> {
    let [seconds, rest] = clock::to_timespec(clock::now_ns());
    write_words(process, to, [seconds, rest / unit_ns])
}

fn write_words(process: &mut Process, to: u64, words: [u64; 2]) -> Result<u64, Errno> {
    if to != 0 {
        process.space.write_words(to, words)?;
    }
    Ok(0)
}

fn time(process: &mut Process, to: u64) -> Result<u64, Errno> {
    let seconds = clock::now_ns() / SECOND_NS;
    if to != 0 {
        process.space.write_words(to, [seconds])?;
    }
    Ok(seconds)
}

/// `nanosleep` and `clock_nanosleep`.
fn sleep(process: &mut Process, is_absolute: bool, from: u64, left: u64) -> Result<Answer, Errno> {
    let until = deadline(process, is_absolute, from)?;
    Ok(Answer::Wait(Wait::Sleep { until, left: if is_absolute { 0 } else { left } }))
}

/// The time, in [`clock`]'s nanoseconds, that a `struct timespec` of the program's means.
pub(super) fn deadline(process: &mut Process, is_absolute: bool, from: u64) -> Result<u64, Errno> {
    let [seconds, rest] = process.space.read_words(from)?;
    if rest >= SECOND_NS || seconds > i64::MAX as u64 {
        return Err(Errno(EINVAL));
    }
    let wanted = seconds.saturating_mul(SECOND_NS).saturating_add(rest);
    Ok(if is_absolute { wanted } else { clock::now_ns().saturating_add(wanted) })
}
