//! Calls that wait for descriptors. Each that is open is always ready, so what is left to wait for
//! is a time and signals.

use tally_abi::syscall::{
    self,
    errno::{EFAULT, EINVAL},
};

use super::{
    answer::{Answer, Errno},
    signals::swap_mask,
    time::deadline_if_any,
};
use crate::{
    files::open::MAX_DESCRIPTORS,
    machine::clock,
    task::{Process, thread::Wait},
};

/// `POLLIN`, `POLLOUT`, `POLLRDNORM` and `POLLWRNORM`: what Linux says of files, whatever they were
/// opened for.
const READY: u16 = 0x001 | 0x004 | 0x040 | 0x100;
/// `POLLNVAL`: there is no such descriptor.
const NONE_SUCH: u16 = 0x020;
/// Bytes of a `struct pollfd`, and where in it what is told stands.
const ENTRY_BYTES: u64 = 8;
const TOLD: u64 = 6;
const MILLISECOND_NS: u64 = 1_000_000;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    arguments: [u64; 6],
) -> Option<Result<Answer, Errno>> {
    let [list, count, time, mask, set_bytes, _] = arguments;
    match number {
        syscall::POLL => Some(poll(process, list, count, time as i32)),
        syscall::PPOLL => Some(poll_with_mask(process, [list, count, time, mask, set_bytes])),
        _ => None,
    }
}

/// `poll`: of so many milliseconds, or for ever if that is negative.
fn poll(process: &mut Process, list: u64, count: u64, time: i32) -> Result<Answer, Errno> {
    let until = u64::try_from(time).ok().map(|time| clock::now_ns() + time * MILLISECOND_NS);
    match tell(process, list, count)? {
        0 => Ok(wait(until, 0)),
        told => Ok(Answer::Value(told)),
    }
}

/// `ppoll`: what is left of the time is written where that came from.
fn poll_with_mask(
    process: &mut Process,
    [list, count, time, mask, set_bytes]: [u64; 5],
) -> Result<Answer, Errno> {
    let until = deadline_if_any(process, false, time)?;
    let told = tell(process, list, count)?;
    if told > 0 {
        return Ok(Answer::Value(told));
    }
    if mask != 0 {
        swap_mask(process, mask, set_bytes)?;
    }
    if time != 0 {
        // For when it passes; what a signal leaves comes after. Whoever has it where nothing is
        // written is not told, as under Linux.
        let _ = process.memory.space.write_words(time, [0; 2]);
    }
    Ok(wait(until, time))
}

fn wait(until: Option<u64>, left: u64) -> Answer {
    Answer::Wait(until.map_or(Wait::HANDLER, |until| Wait::Sleep { until, left }))
}

/// Tells of each descriptor of a list what is asked: of how many there is anything to tell.
fn tell(process: &mut Process, list: u64, count: u64) -> Result<u64, Errno> {
    if count > MAX_DESCRIPTORS {
        return Err(Errno(EINVAL));
    }
    let mut told = 0;
    for index in 0..count {
        let entry = list.checked_add(ENTRY_BYTES * index).ok_or(Errno(EFAULT))?;
        let [[a, b, c, d, asked @ .., _, _]] =
            process.memory.space.read_words(entry)?.map(u64::to_le_bytes);
        let fd = i32::from_le_bytes([a, b, c, d]);
        let about = match u64::try_from(fd) {
            Err(_) => 0,
            Ok(fd) if process.files.get(fd).is_none() => NONE_SUCH,
            Ok(_) => u16::from_le_bytes(asked) & READY,
        };
        process.memory.space.write(entry + TOLD, &about.to_le_bytes())?;
        told += u64::from(about != 0);
    }
    Ok(told)
}
