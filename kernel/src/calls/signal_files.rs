//! `signalfd`: descriptors from which a program reads its pending signals.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use tally_abi::syscall::{self, errno::EINVAL};

use super::{
    answer::Errno,
    files::{add, descriptor},
    stat::NONBLOCK,
    streams::{CLOSING, may_wait},
};
use crate::{
    files::{
        open::Descriptor,
        streams::{Kind, Stream, StreamError},
    },
    task::{
        Process,
        signal::{Pending, blockable},
    },
};

/// Words of a `struct signalfd_siginfo`.
const WORDS: usize = 16;
const BYTES: u64 = 8 * WORDS as u64;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, c, d, ..]: [u64; 6],
) -> Option<Result<u64, Errno>> {
    match number {
        syscall::SIGNALFD => Some(open(process, [a, b, c, 0])),
        syscall::SIGNALFD4 => Some(open(process, [a, b, c, d])),
        _ => None,
    }
}

/// `signalfd` and `signalfd4`: makes a descriptor for the set at `from`, or changes a descriptor's
/// set.
fn open(process: &mut Process, [fd, from, set_bytes, flags]: [u64; 4]) -> Result<u64, Errno> {
    if set_bytes != 8 || flags & !(NONBLOCK | CLOSING) != 0 {
        return Err(Errno(EINVAL));
    }
    let [set] = process.memory.read_words(from)?;
    let set = blockable(set);
    if fd as i32 == -1 {
        let stream = Stream::new(Kind::Signals(AtomicU64::new(set)), flags & NONBLOCK != 0);
        return add(process, Descriptor::Stream(stream));
    }
    match descriptor(process, fd)? {
        Descriptor::Stream(stream) => match &stream.kind {
            Kind::Signals(signals) => signals.store(set, Ordering::Relaxed),
            _ => return Err(Errno(EINVAL)),
        },
        _ => return Err(Errno(EINVAL)),
    }
    Ok(fd)
}

/// Reads the pending signals of `set` that fit into the buffer.
pub(super) fn read(
    process: &mut Process,
    stream: &Arc<Stream>,
    set: u64,
    [to, bytes]: [u64; 2],
) -> Result<u64, Errno> {
    if bytes < BYTES {
        return Err(Errno(EINVAL));
    }
    let mut done = 0;
    while bytes - done >= BYTES {
        let Some(signal) = process.take_signal(set) else { break };
        process.memory.write_words(to.saturating_add(done), record(signal))?;
        done += BYTES;
    }
    if done == 0 { Err(may_wait(stream, StreamError::WouldBlock)) } else { Ok(done) }
}

/// A `struct signalfd_siginfo`.
fn record(signal: Pending) -> [u64; WORDS] {
    let [low, value] = signal.words;
    let (first, second) = (low & u64::from(u32::MAX), low >> 32);
    let mut words = [0; WORDS];
    words[0] = signal.signal.into();
    words[1] = u64::from(signal.code as u32);
    match signal.timer {
        // The timer's number and its overruns.
        Some(_) => (words[3], words[4]) = (first, second),
        // The sender's program and user.
        None => {
            words[1] |= first << 32;
            words[2] = second;
        }
    }
    // The value's lower half, as `ssi_int`, and the value.
    words[5] = value << 32;
    words[6] = value;
    words
}
