//! Calls on time. Nobody asks the machine for the date: it begins at 1970.

use tally_abi::syscall::{self, errno::EINVAL};

use super::Errno;
use crate::{machine::clock, task::Process};

const SECOND_NS: u64 = 1_000_000_000;
/// The clocks of `clock_gettime` that tell real time or time since the start, coarse or not.
const CLOCKS: [u64; 6] = [0, 1, 4, 5, 6, 7];
/// `TIMER_ABSTIME`.
const ABSOLUTE: u64 = 1;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, ..]: [u64; 6],
) -> Option<Result<u64, Errno>> {
    Some(match number {
        syscall::CLOCK_GETTIME if !CLOCKS.contains(&a) => Err(Errno(EINVAL)),
        syscall::CLOCK_GETTIME => write_time(process, b, 1),
        syscall::GETTIMEOFDAY => write_time(process, a, 1000),
        syscall::TIME => time(process, a),
        _ => return None,
    })
}

/// Seconds, and the rest in units of so many nanoseconds.
fn write_time(process: &mut Process, to: u64, unit_ns: u64) -> Result<u64, Errno> {
    let now = clock::now_ns();
    let words = [now / SECOND_NS, now % SECOND_NS / unit_ns];
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

/// When a program that asks for `nanosleep` or `clock_nanosleep` wants to go on, in [`clock`]'s
/// nanoseconds.
pub(super) fn wake_time(
    process: &mut Process,
    number: u64,
    [a, b, c, ..]: [u64; 6],
) -> Result<u64, Errno> {
    let (is_absolute, from) = match number {
        syscall::NANOSLEEP => (false, a),
        _ if CLOCKS.contains(&a) => (b & ABSOLUTE != 0, c),
        _ => return Err(Errno(EINVAL)),
    };
    let [seconds, rest] = process.space.read_words(from)?;
    if rest >= SECOND_NS {
        return Err(Errno(EINVAL));
    }
    let wanted = seconds.saturating_mul(SECOND_NS).saturating_add(rest);
    Ok(if is_absolute { wanted } else { clock::now_ns().saturating_add(wanted) })
}
