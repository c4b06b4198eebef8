//! Calls that wait for descriptors. Every open descriptor is ready, so a wait ends by its timeout
//! or by a signal.

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

/// `POLLIN`, `POLLOUT`, `POLLRDNORM` and `POLLWRNORM`: Linux reports these for files, whatever they
/// were opened for.
const READY: u16 = 0x001 | 0x004 | 0x040 | 0x100;
/// `POLLNVAL`: the descriptor is not open.
const INVALID: u16 = 0x020;
/// Bytes of a `struct pollfd`.
const ENTRY_BYTES: u64 = 8;
/// Offset of `revents` in a `struct pollfd`.
const RETURNED_EVENTS: u64 = 6;
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

/// `poll`; `time` is in milliseconds, and negative for no timeout.
fn poll(process: &mut Process, list: u64, count: u64, time: i32) -> Result<Answer, Errno> {
    let until = u64::try_from(time).ok().map(|time| clock::now_ns() + time * MILLISECOND_NS);
    match write_events(process, list, count)? {
        0 => Ok(wait(until, 0)),
        ready => Ok(Answer::Value(ready)),
    }
}

/// `ppoll`: writes the rest of the time over the timeout.
fn poll_with_mask(
    process: &mut Process,
    [list, count, time, mask, set_bytes]: [u64; 5],
) -> Result<Answer, Errno> {
    let until = deadline_if_any(process, false, time)?;
    let ready = write_events(process, list, count)?;
    if ready > 0 {
        return Ok(Answer::Value(ready));
    }
    if mask != 0 {
        swap_mask(process, mask, set_bytes)?;
    }
    if time != 0 {
        // The rest if the wait times out; `interrupt` overwrites it if a signal ends the wait. As
        // under Linux, an address that is not the program's to write is no error.
        let _ = process.memory.write_words(time, [0; 2]);
    }
    Ok(wait(until, time))
}

fn wait(until: Option<u64>, left: u64) -> Answer {
    Answer::Wait(until.map_or(Wait::HANDLER, |until| Wait::Sleep { until, left }))
}

/// Writes the events of each descriptor of a list of `struct pollfd`. Returns how many descriptors
/// have any.
fn write_events(process: &mut Process, list: u64, count: u64) -> Result<u64, Errno> {
    if count > MAX_DESCRIPTORS {
        return Err(Errno(EINVAL));
    }
    let mut ready = 0;
    for index in 0..count {
        let entry = list.checked_add(ENTRY_BYTES * index).ok_or(Errno(EFAULT))?;
        let [[a, b, c, d, requested @ .., _, _]] =
            process.memory.read_words(entry)?.map(u64::to_le_bytes);
        let fd = i32::from_le_bytes([a, b, c, d]);
        let events = match u64::try_from(fd) {
            Err(_) => 0,
            Ok(fd) if process.files.get(fd).is_none() => INVALID,
            Ok(_) => u16::from_le_bytes(requested) & READY,
        };
        process.memory.write(entry + RETURNED_EVENTS, &events.to_le_bytes())?;
        ready += u64::from(events != 0);
    }
    Ok(ready)
}
