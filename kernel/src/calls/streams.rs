//! Calls that make streams: pipes, socket pairs, event counters, timers; and the calls on sockets
//! for such pairs. There is no network: `socket` is refused.

use alloc::sync::Arc;

use tally_abi::syscall::{
    self,
    errno::{
        EAFNOSUPPORT, EAGAIN, EBADF, EINVAL, EMFILE, ENOMEM, ENOTSOCK, EPIPE, EPROTONOSUPPORT,
    },
};

use super::{
    answer::{Answer, Errno, RETRY},
    files::{add, descriptor},
    stat::NONBLOCK,
    time,
};
use crate::{
    files::{
        expiry::Expiry,
        open::Descriptor,
        streams::{Channel, EventCounter, Kind, Stream, StreamError, Timer},
    },
    machine::clock,
    task::{
        Process,
        signal::{Pending, SIGPIPE},
        vdso::CLOCKS,
    },
};

/// `O_CLOEXEC`, which has no effect.
pub(super) const CLOSING: u64 = 0o2_000_000;
/// `EFD_SEMAPHORE`.
const SEMAPHORE: u64 = 1;
/// `TFD_TIMER_ABSTIME`.
const ABSOLUTE: u64 = 1;
/// `AF_UNIX`, and the types `SOCK_STREAM` and `SOCK_SEQPACKET`.
const UNIX: u64 = 1;
const STREAM: u64 = 1;
/// `MSG_DONTWAIT` and `MSG_NOSIGNAL`, and flags without an effect here: `MSG_WAITALL`,
/// `MSG_CMSG_CLOEXEC`.
const DO_NOT_WAIT: u64 = 0x40;
const NO_SIGNAL: u64 = 0x4000;
const MESSAGE_HINTS: u64 = 0x100 | 0x4000_0000;
/// Maximum bytes of a step of a transfer.
const CHUNK_BYTES: usize = 4096;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    arguments: [u64; 6],
) -> Option<Result<Answer, Errno>> {
    let [a, b, c, d, ..] = arguments;
    let result = match number {
        syscall::PIPE => pair(process, Channel::pipe, 0, a),
        syscall::PIPE2 => pair(process, Channel::pipe, b, a),
        syscall::SOCKETPAIR if a != UNIX => Err(Errno(EAFNOSUPPORT)),
        syscall::SOCKETPAIR if b & 0xf != STREAM => Err(Errno(EPROTONOSUPPORT)),
        syscall::SOCKETPAIR => pair(process, Channel::sockets, b & !0xf, d),
        // There is no network.
        syscall::SOCKET => Err(Errno(EAFNOSUPPORT)),
        syscall::SENDTO => return Some(message(process, arguments, write).map(Answer::Value)),
        syscall::RECVFROM => return Some(message(process, arguments, read).map(Answer::Value)),
        syscall::SHUTDOWN => shut_down(process, a, b),
        syscall::EVENTFD => count_events(process, a, 0),
        syscall::EVENTFD2 => count_events(process, a, b),
        syscall::TIMERFD_CREATE => create_timer(process, a, b),
        syscall::TIMERFD_SETTIME => set_timer(process, [a, b, c, d]),
        syscall::TIMERFD_GETTIME => timer_of(process, a).and_then(|stream| {
            let Kind::Timer(timer) = &stream.kind else { return Err(Errno(EINVAL)) };
            write_rest(process, b, timer.rest(clock::now_ns()))
        }),
        _ => return None,
    };
    Some(result.map(Answer::Value))
}

impl From<StreamError> for Errno {
    fn from(error: StreamError) -> Self {
        Errno(match error {
            StreamError::WouldBlock => EAGAIN,
            StreamError::NoReader => EPIPE,
            StreamError::Direction => EBADF,
            StreamError::Invalid => EINVAL,
            StreamError::OutOfMemory => ENOMEM,
        })
    }
}

/// Adds the two ends of a channel. Writes their descriptors.
fn pair(
    process: &mut Process,
    make: fn() -> [Channel; 2],
    flags: u64,
    to: u64,
) -> Result<u64, Errno> {
    if flags & !(NONBLOCK | CLOSING) != 0 {
        return Err(Errno(EINVAL));
    }
    // Both descriptors must be free, or none is used.
    let first = process.files.free(0).ok_or(Errno(EMFILE))?;
    process.files.free(first + 1).ok_or(Errno(EMFILE))?;
    process.memory.write(to, &[0; 8])?;
    let mut words = [[0; 4]; 2];
    for (word, end) in words.iter_mut().zip(make()) {
        let stream = Stream::new(Kind::Channel(end), flags & NONBLOCK != 0);
        *word = (add(process, Descriptor::Stream(stream))? as u32).to_le_bytes();
    }
    process.memory.write(to, words.as_flattened())?;
    Ok(0)
}

/// Moves bytes between a stream and the program's memory, given by address and length; the last
/// argument suppresses signals.
type Transfer = fn(&mut Process, &Arc<Stream>, u64, u64, bool) -> Result<u64, Errno>;

/// Handles a call on a connected socket with a part of the program's memory, without an address.
fn message(
    process: &mut Process,
    [fd, at, bytes, flags, ..]: [u64; 6],
    transfer: Transfer,
) -> Result<u64, Errno> {
    let stream = match descriptor(process, fd)? {
        Descriptor::Stream(stream) => stream,
        _ => return Err(Errno(ENOTSOCK)),
    };
    if !matches!(&stream.kind, Kind::Channel(channel) if channel.is_socket) {
        return Err(Errno(ENOTSOCK));
    }
    if flags & !(DO_NOT_WAIT | NO_SIGNAL | MESSAGE_HINTS) != 0 {
        return Err(Errno(EINVAL));
    }
    match transfer(process, &stream, at, bytes, flags & NO_SIGNAL != 0) {
        Err(Errno(RETRY)) if flags & DO_NOT_WAIT != 0 => Err(Errno(EAGAIN)),
        result => result,
    }
}

/// Reads the available bytes of a stream. [`RETRY`] if there are none and the call may wait.
pub(super) fn read(
    process: &mut Process,
    stream: &Arc<Stream>,
    to: u64,
    bytes: u64,
    _: bool,
) -> Result<u64, Errno> {
    let mut done = 0;
    while done < bytes {
        let mut chunk = [0; CHUNK_BYTES];
        let room = (bytes - done).min(CHUNK_BYTES as u64) as usize;
        match stream.read(&mut chunk[..room], clock::now_ns()) {
            Ok(0) => break,
            Ok(read) => {
                process.memory.write(to.saturating_add(done), &chunk[..read])?;
                done += read as u64;
                if read < room {
                    break;
                }
            }
            Err(_) if done > 0 => break,
            Err(error) => return Err(may_wait(stream, error)),
        }
        if !matches!(stream.kind, Kind::Channel(_)) {
            break;
        }
    }
    Ok(done)
}

/// Writes as many bytes to a stream as it has room for. [`RETRY`] if there is no room and the call
/// may wait. Sends SIGPIPE if there is no reader, unless `is_quiet`.
pub(super) fn write(
    process: &mut Process,
    stream: &Arc<Stream>,
    from: u64,
    bytes: u64,
    is_quiet: bool,
) -> Result<u64, Errno> {
    let mut done = 0;
    while done < bytes {
        let mut chunk = [0; CHUNK_BYTES];
        let part = &mut chunk[..(bytes - done).min(CHUNK_BYTES as u64) as usize];
        process.memory.read(from.saturating_add(done), part)?;
        match put(process, stream, part, is_quiet || done > 0) {
            Ok(written) => done += written,
            Err(_) if done > 0 => break,
            Err(error) => return Err(error),
        }
        if !matches!(stream.kind, Kind::Channel(_)) {
            break;
        }
    }
    Ok(done)
}

/// Writes the kernel's bytes to a stream, as [`write`] does the program's.
pub(super) fn put(
    process: &mut Process,
    stream: &Arc<Stream>,
    bytes: &[u8],
    is_quiet: bool,
) -> Result<u64, Errno> {
    stream.write(bytes).map(|written| written as u64).map_err(|error| {
        if error == StreamError::NoReader && !is_quiet {
            let tid = process.threads.running().tid;
            let _ = process.send_signal(Some(tid), Pending::of_kernel(SIGPIPE));
        }
        may_wait(stream, error)
    })
}

/// The time at which a descriptor's stream becomes ready by itself.
pub(super) fn due(process: &Process, fd: u64) -> Option<u64> {
    match process.files.get(fd)? {
        Descriptor::Stream(stream) => stream.due(),
        _ => None,
    }
}

pub(super) fn may_wait(stream: &Stream, error: StreamError) -> Errno {
    match error {
        StreamError::WouldBlock if !stream.is_nonblocking() => Errno(RETRY),
        error => error.into(),
    }
}

fn shut_down(process: &mut Process, fd: u64, how: u64) -> Result<u64, Errno> {
    match descriptor(process, fd)? {
        Descriptor::Stream(stream) => match &stream.kind {
            Kind::Channel(channel) if channel.is_socket && how <= 2 => {
                channel.shut_down(how != 1, how != 0);
                Ok(0)
            }
            Kind::Channel(channel) if channel.is_socket => Err(Errno(EINVAL)),
            _ => Err(Errno(ENOTSOCK)),
        },
        _ => Err(Errno(ENOTSOCK)),
    }
}

/// `eventfd` and `eventfd2`.
fn count_events(process: &mut Process, count: u64, flags: u64) -> Result<u64, Errno> {
    if flags & !(NONBLOCK | CLOSING | SEMAPHORE) != 0 {
        return Err(Errno(EINVAL));
    }
    let counter = EventCounter::new(u64::from(count as u32), flags & SEMAPHORE != 0);
    let stream = Stream::new(Kind::Event(counter), flags & NONBLOCK != 0);
    add(process, Descriptor::Stream(stream))
}

/// `timerfd_create`.
fn create_timer(process: &mut Process, which: u64, flags: u64) -> Result<u64, Errno> {
    if !CLOCKS.contains(&which) || flags & !(NONBLOCK | CLOSING) != 0 {
        return Err(Errno(EINVAL));
    }
    let stream = Stream::new(Kind::Timer(Timer::new(which)), flags & NONBLOCK != 0);
    add(process, Descriptor::Stream(stream))
}

/// The timer of a descriptor.
fn timer_of(process: &Process, fd: u64) -> Result<Arc<Stream>, Errno> {
    match descriptor(process, fd)? {
        Descriptor::Stream(stream) => Ok(stream),
        _ => Err(Errno(EINVAL)),
    }
}

/// `timerfd_settime`.
fn set_timer(process: &mut Process, [fd, flags, new, old]: [u64; 4]) -> Result<u64, Errno> {
    let stream = timer_of(process, fd)?;
    let Kind::Timer(timer) = &stream.kind else { return Err(Errno(EINVAL)) };
    // `TFD_TIMER_CANCEL_ON_SET` has no effect: the clock is never set.
    if flags & !(ABSOLUTE | 2) != 0 {
        return Err(Errno(EINVAL));
    }
    let (interval, first) = time::intervals(process, new, 1)?;
    let now = clock::now_ns();
    let at_ns = match flags & ABSOLUTE {
        0 => now.saturating_add(first),
        _ => time::since_boot(timer.clock, first),
    };
    let before = timer.set((first > 0).then_some(Expiry { at_ns, interval_ns: interval }), now);
    if old != 0 {
        write_rest(process, old, before)?;
    }
    Ok(0)
}

/// Writes a `struct itimerspec` with a timer's remaining time and its interval.
pub(super) fn write_rest(
    process: &mut Process,
    to: u64,
    (rest, interval): (u64, u64),
) -> Result<u64, Errno> {
    let [[a, b], [c, d]] = [interval, rest].map(clock::to_timespec);
    process.memory.write_words(to, [a, b, c, d])?;
    Ok(0)
}
