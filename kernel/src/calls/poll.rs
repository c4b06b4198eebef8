//! Calls that wait for descriptors: `poll`, `select` and `epoll`.
//!
//! A call finds descriptors that are ready, or waits and is repeated: when another thread of the
//! program has used a descriptor, when a timer is due, or when its time is over.

use alloc::{sync::Arc, vec::Vec};

use spin::{Mutex, MutexGuard};
use tally_abi::syscall::{
    self,
    errno::{EBADF, EEXIST, EFAULT, EINVAL, ENOENT, EPERM},
};

use super::{
    answer::{Answer, Errno},
    files::{add, descriptor},
    signals::swap_mask,
    time::{deadline_if_any, microseconds},
};
use crate::{
    files::{
        epoll::{Epoll, Interest},
        open::{Descriptor, MAX_DESCRIPTORS},
        streams::{ERROR, HANG_UP, IN, OUT},
    },
    machine::clock,
    task::Process,
};

/// `POLLRDNORM` and `POLLWRNORM`, which accompany `POLLIN` and `POLLOUT`.
const READ_NORMAL: u32 = 0x040;
const WRITE_NORMAL: u32 = 0x100;
/// `POLLNVAL`: the descriptor is not open.
const INVALID: u32 = 0x020;
/// Bytes of a `struct pollfd`.
const ENTRY_BYTES: u64 = 8;
/// Offset of `revents` in a `struct pollfd`.
const RETURNED_EVENTS: u64 = 6;
const MILLISECOND_NS: u64 = 1_000_000;
/// Bytes of a `struct epoll_event`.
const EVENT_BYTES: u64 = 12;
/// Maximum number of events of a call (Linux's `EP_MAX_EVENTS`).
const MAX_EVENTS: usize = i32::MAX as usize / EVENT_BYTES as usize;
// Operations of `epoll_ctl`.
const ADD: u64 = 1;
const REMOVE: u64 = 2;
const CHANGE: u64 = 3;
/// Words of a set of descriptors of `select`.
const SET_WORDS: usize = (MAX_DESCRIPTORS / 64) as usize;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    arguments: [u64; 6],
) -> Option<Result<Answer, Errno>> {
    let [a, b, c, d, e, _] = arguments;
    Some(match number {
        syscall::POLL => until(process, |_| Ok(milliseconds(c)), |p, _| write_events(p, a, b)),
        syscall::PPOLL => {
            let wait = |p: &mut Process| deadline_if_any(p, None, c);
            with_mask(process, c, [d, e], wait, |p, _| write_events(p, a, b))
        }
        syscall::SELECT => {
            let wait = |p: &mut Process| microseconds(p, e);
            until(process, wait, |p, is_over| select(p, a, [b, c, d], is_over))
        }
        syscall::PSELECT6 => select_with_mask(process, arguments),
        syscall::EPOLL_CREATE if a as i32 <= 0 => Err(Errno(EINVAL)),
        syscall::EPOLL_CREATE | syscall::EPOLL_CREATE1 => {
            let epoll = Arc::new(Mutex::new(Epoll::new()));
            add(process, Descriptor::Epoll(epoll)).map(Answer::Value)
        }
        syscall::EPOLL_CTL => register(process, [a, b, c, d]).map(Answer::Value),
        syscall::EPOLL_WAIT => {
            until(process, |_| Ok(milliseconds(d)), |p, _| write_registered(p, a, b, c))
        }
        syscall::EPOLL_PWAIT => {
            let wait = |_: &mut Process| Ok(milliseconds(d));
            with_mask(process, 0, [e, 8], wait, |p, _| write_registered(p, a, b, c))
        }
        syscall::EPOLL_PWAIT2 => {
            let wait = |p: &mut Process| deadline_if_any(p, None, d);
            with_mask(process, 0, [e, 8], wait, |p, _| write_registered(p, a, b, c))
        }
        _ => return None,
    })
}

/// The deadline for a time in milliseconds; `None` if it is negative.
fn milliseconds(time: u64) -> Option<u64> {
    let time = u64::try_from(time as i32).ok()?;
    Some(clock::now_ns() + time * MILLISECOND_NS)
}

/// Answers with the number of descriptors that `find` finds ready, or waits up to a deadline.
/// `find` gets whether the deadline has passed.
fn until(
    process: &mut Process,
    deadline: impl FnOnce(&mut Process) -> Result<Option<u64>, Errno>,
    find: impl FnOnce(&mut Process, bool) -> Result<Found, Errno>,
) -> Result<Answer, Errno> {
    let deadline = match process.threads.running().call.retried {
        Some(deadline) => deadline,
        None => deadline(process)?,
    };
    let is_over = deadline.is_some_and(|at| at <= clock::now_ns());
    match find(process, is_over)? {
        Found { ready: 0, due } if !is_over => Ok(Answer::Retry { deadline, due, left: 0 }),
        Found { ready, .. } => Ok(Answer::Value(ready)),
    }
}

/// [`until`], with another signal mask while the call waits (0: no other mask). Writes the
/// remaining time to `rest` unless that is 0.
fn with_mask(
    process: &mut Process,
    rest: u64,
    [mask, bytes]: [u64; 2],
    deadline: impl FnOnce(&mut Process) -> Result<Option<u64>, Errno>,
    find: impl FnOnce(&mut Process, bool) -> Result<Found, Errno>,
) -> Result<Answer, Errno> {
    let mut answer = until(process, deadline, find)?;
    match &mut answer {
        Answer::Retry { left, .. } => {
            *left = rest;
            if mask != 0 {
                swap_mask(process, mask, bytes)?;
            }
        }
        _ if rest != 0 => {
            let deadline = process.threads.running().call.retried.flatten().unwrap_or_default();
            let rest_ns = deadline.saturating_sub(clock::now_ns());
            // As under Linux, an address that the program cannot write is no error.
            let _ = process.memory.write_words(rest, clock::to_timespec(rest_ns));
        }
        _ => {}
    }
    Ok(answer)
}

/// Result of a search for ready descriptors.
#[derive(Default)]
struct Found {
    /// Descriptors that are ready.
    ready: u64,
    /// The earliest time at which one becomes ready by itself, in nanoseconds.
    due: Option<u64>,
}

impl Found {
    /// Counts a ready descriptor and keeps the earliest time at which one becomes ready.
    fn add(&mut self, is_ready: bool, due: Option<u64>) {
        self.ready += u64::from(is_ready);
        self.due = self.due.into_iter().chain(due).min();
    }
}

/// The events for which a descriptor is ready, and the time at which that changes by itself.
fn readiness(process: &Process, open: &Descriptor) -> (u32, Option<u64>) {
    let now = clock::now_ns();
    let (events, due) = match open {
        Descriptor::File(_) | Descriptor::Device(_) | Descriptor::Folder(_) => (IN | OUT, None),
        Descriptor::Output(_) => (OUT, None),
        Descriptor::Stream(stream) => (stream.ready(now, process.pending_signals()), stream.due()),
        Descriptor::Epoll(epoll) => {
            let mut found = Found::default();
            for (fd, interest) in epoll.lock().iter() {
                let (events, _, due) = registered(process, *fd, interest);
                found.add(events != 0, due);
            }
            (if found.ready > 0 { IN } else { 0 }, found.due)
        }
    };
    let normal = |from, to| if events & from != 0 { to } else { 0 };
    (events | normal(IN, READ_NORMAL) | normal(OUT, WRITE_NORMAL), due)
}

/// Writes the events of each descriptor of a list of `struct pollfd`.
fn write_events(process: &mut Process, list: u64, count: u64) -> Result<Found, Errno> {
    if count > MAX_DESCRIPTORS {
        return Err(Errno(EINVAL));
    }
    let mut found = Found::default();
    for index in 0..count {
        let entry = list.checked_add(ENTRY_BYTES * index).ok_or(Errno(EFAULT))?;
        let [[a, b, c, d, requested @ .., _, _]] =
            process.memory.read_words(entry)?.map(u64::to_le_bytes);
        let fd = i32::from_le_bytes([a, b, c, d]);
        let wanted = u32::from(u16::from_le_bytes(requested)) | ERROR | HANG_UP;
        let (events, due) = match u64::try_from(fd).map(|fd| process.files.get(fd).cloned()) {
            Err(_) => (0, None),
            Ok(None) => (INVALID, None),
            Ok(Some(open)) => {
                let (ready, due) = readiness(process, &open);
                (ready & wanted, due)
            }
        };
        process.memory.write(entry + RETURNED_EVENTS, &(events as u16).to_le_bytes())?;
        found.add(events != 0, due);
    }
    Ok(found)
}

/// Finds the ready descriptors below `count` in three sets: to read, to write, and with errors. If
/// there are any, or the wait is over, overwrites the sets with the ready ones.
fn select(
    process: &mut Process,
    count: u64,
    sets: [u64; 3],
    is_over: bool,
) -> Result<Found, Errno> {
    let count = u64::try_from(count as i32).map_err(|_| Errno(EINVAL))?.min(MAX_DESCRIPTORS);
    let words = count.div_ceil(64) as usize;
    let mut wanted = [[0; SET_WORDS]; 3];
    for (set, at) in wanted.iter_mut().zip(sets).filter(|(_, at)| *at != 0) {
        for (word, at) in set.iter_mut().take(words).zip((at..).step_by(8)) {
            [*word] = process.memory.read_words(at)?;
        }
    }
    let (mut found, mut ready) = (Found::default(), [[0_u64; SET_WORDS]; 3]);
    for fd in 0..count {
        let (word, bit) = ((fd / 64) as usize, 1 << (fd % 64));
        if wanted.iter().all(|set| set[word] & bit == 0) {
            continue;
        }
        let open = descriptor(process, fd).map_err(|_| Errno(EBADF))?;
        let (events, due) = readiness(process, &open);
        let of_set = [IN | HANG_UP | ERROR, OUT | ERROR, 0].map(|of| events & of != 0);
        for ((set, of_set), ready) in wanted.iter().zip(of_set).zip(&mut ready) {
            if set[word] & bit != 0 && of_set {
                ready[word] |= bit;
            }
        }
        let of_it = ready.iter().filter(|set| set[word] & bit != 0).count();
        found.add(false, due);
        found.ready += of_it as u64;
    }
    if found.ready > 0 || is_over {
        for (set, at) in ready.iter().zip(sets).filter(|(_, at)| *at != 0) {
            for (word, at) in set.iter().take(words).zip((at..).step_by(8)) {
                process.memory.write_words(at, [*word])?;
            }
        }
    }
    Ok(found)
}

/// `pselect6`: its last argument is the address of the mask's address and length.
fn select_with_mask(process: &mut Process, arguments: [u64; 6]) -> Result<Answer, Errno> {
    let [count, read, write, errors, time, mask] = arguments;
    let mask = match mask {
        0 => [0, 8],
        at => process.memory.read_words(at)?,
    };
    let wait = |p: &mut Process| deadline_if_any(p, None, time);
    with_mask(process, time, mask, wait, |p, is_over| {
        select(p, count, [read, write, errors], is_over)
    })
}

/// The registrations of an `epoll` descriptor.
fn registrations(process: &Process, fd: u64) -> Result<Arc<Mutex<Epoll>>, Errno> {
    match descriptor(process, fd)? {
        Descriptor::Epoll(epoll) => Ok(epoll),
        _ => Err(Errno(EINVAL)),
    }
}

/// `epoll_ctl`.
fn register(process: &mut Process, [epoll, what, fd, event]: [u64; 4]) -> Result<u64, Errno> {
    let all = registrations(process, epoll)?;
    match descriptor(process, fd)? {
        Descriptor::Epoll(_) => return Err(Errno(EINVAL)),
        // Files, folders and devices are always ready; Linux refuses them too.
        Descriptor::File(_) | Descriptor::Folder(_) | Descriptor::Device(_) => {
            return Err(Errno(EPERM));
        }
        Descriptor::Stream(_) | Descriptor::Output(_) => {}
    }
    let interest = match what {
        REMOVE => None,
        ADD | CHANGE => {
            let mut bytes = [0; EVENT_BYTES as usize];
            process.memory.read(event, &mut bytes)?;
            let [a, b, c, d, data @ ..] = bytes;
            Some(Interest::new(u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(data)))
        }
        _ => return Err(Errno(EINVAL)),
    };
    let mut all: MutexGuard<Epoll> = all.lock();
    match (interest, all.contains_key(&fd)) {
        (Some(_), true) if what == ADD => return Err(Errno(EEXIST)),
        (Some(_), false) if what == CHANGE => return Err(Errno(ENOENT)),
        (None, false) => return Err(Errno(ENOENT)),
        (Some(interest), _) => _ = all.insert(fd, interest),
        (None, true) => _ = all.remove(&fd),
    }
    Ok(0)
}

/// The events to report for a registered descriptor, the number of its changes so far, and the time
/// at which it becomes ready by itself.
fn registered(process: &Process, fd: u64, interest: &Interest) -> (u32, u64, Option<u64>) {
    let Some(open) = process.files.get(fd) else { return (0, 0, None) };
    let (now, signals) = (clock::now_ns(), process.pending_signals());
    let (changes, due) = match open {
        Descriptor::Stream(stream) => (stream.changes(now, signals), stream.due()),
        _ => (0, None),
    };
    let ready = match open {
        Descriptor::Stream(stream) => stream.ready(now, signals),
        _ => OUT,
    };
    (interest.due(ready, changes), changes, due)
}

/// Writes the events of registered descriptors to up to `count` of `struct epoll_event`.
fn write_registered(
    process: &mut Process,
    epoll: u64,
    to: u64,
    count: u64,
) -> Result<Found, Errno> {
    let all = registrations(process, epoll)?;
    let count = usize::try_from(count as i32).ok().filter(|count| (1..=MAX_EVENTS).contains(count));
    let count = count.ok_or(Errno(EINVAL))?;
    let (mut found, mut reports) = (Found::default(), Vec::new());
    for (fd, interest) in all.lock().iter_mut() {
        let (events, changes, due) = registered(process, *fd, interest);
        let is_reported = events != 0 && reports.len() < count;
        found.add(is_reported, due.filter(|due| *due > clock::now_ns()));
        if is_reported {
            interest.reported(changes);
            reports.push((events, interest.data));
        }
    }
    for (index, (events, data)) in (0..).zip(reports) {
        let at = to.checked_add(EVENT_BYTES * index).ok_or(Errno(EFAULT))?;
        process.memory.write(at, &events.to_le_bytes())?;
        process.memory.write_words(at + 4, [data])?;
    }
    Ok(found)
}
