//! Locks on files: `fcntl` and `flock`.
//!
//! A call that waits for a lock is repeated at every tick of the scheduler, because another program
//! may release the lock.

use core::ops::Range;

use tally_abi::syscall::errno::{EAGAIN, EBADF, EINVAL, ENOLCK, EOVERFLOW};

use super::{
    answer::{Answer, Errno},
    files::{self, descriptor},
};
use crate::{
    files::{
        locks::{self, Holder, Lock},
        open::{Descriptor, OpenFile},
    },
    machine::clock,
    task::Process,
};

// Commands of `fcntl`: for the program's locks and for an open file's.
const GET: [u64; 2] = [5, 36];
const SET: [u64; 2] = [6, 37];
const SET_OR_WAIT: [u64; 2] = [7, 38];
/// `F_RDLCK`, `F_WRLCK` and `F_UNLCK`.
const SHARED: u16 = 0;
const EXCLUSIVE: u16 = 1;
const NONE: u16 = 2;
// Operations of `flock`.
const WHOLE_SHARED: u64 = 1;
const WHOLE_EXCLUSIVE: u64 = 2;
const WHOLE_NONE: u64 = 8;
const DO_NOT_WAIT: u64 = 4;
/// Time after which a waiting call is repeated.
const RETRY_NS: u64 = 10_000_000;

/// `fcntl`.
pub(super) fn fcntl(process: &mut Process, [fd, what, at, ..]: [u64; 6]) -> Result<Answer, Errno> {
    let kind =
        [GET, SET, SET_OR_WAIT].iter().find_map(|all| all.iter().position(|one| *one == what));
    let answer = match kind {
        None => files::control(process, fd, what, at),
        Some(kind) => control(process, (fd, kind), what, at),
    };
    match answer {
        Err(Errno(EAGAIN)) if SET_OR_WAIT.contains(&what) => Ok(retry()),
        answer => answer.map(Answer::Value),
    }
}

fn retry() -> Answer {
    Answer::Retry { deadline: None, due: Some(clock::now_ns() + RETRY_NS), left: 0 }
}

/// `fcntl`'s commands for locks: the program's (kind 0) or the open file's.
fn control(
    process: &mut Process,
    (fd, kind): (u64, usize),
    what: u64,
    at: u64,
) -> Result<u64, Errno> {
    let Descriptor::File(open) = descriptor(process, fd)? else { return Err(Errno(EBADF)) };
    let open = open.lock();
    let holder =
        if kind == 0 { Holder::Program(process.pid) } else { Holder::OpenFile(open.number) };
    let [word, start, bytes, _]: [u64; 4] = process.memory.read_words(at)?;
    let (lock_kind, whence) = (word as u16, (word >> 16) as u16);
    let bytes = range(&open, whence, start as i64, bytes as i64)?;
    let lock = Lock { holder, bytes, shared: lock_kind == SHARED };
    let mut all = open.file.locks.lock();
    if GET.contains(&what) {
        let found = locks::conflict(&all, &lock).cloned();
        drop(all);
        return write_conflict(process, at, found);
    }
    match lock_kind {
        SHARED if !open.reads => Err(Errno(EBADF)),
        EXCLUSIVE if !open.writes => Err(Errno(EBADF)),
        SHARED | EXCLUSIVE if locks::conflict(&all, &lock).is_some() => Err(Errno(EAGAIN)),
        SHARED | EXCLUSIVE => locks::add(&mut all, lock).map(|()| 0).map_err(|_| Errno(ENOLCK)),
        NONE => {
            locks::release(&mut all, holder, &lock.bytes).map(|()| 0).map_err(|_| Errno(ENOLCK))
        }
        _ => Err(Errno(EINVAL)),
    }
}

/// Range of bytes of a `struct flock`.
fn range(open: &OpenFile, whence: u16, start: i64, bytes: i64) -> Result<Range<u64>, Errno> {
    let base = match whence {
        0 => 0,
        1 => open.position,
        2 => open.file.lock().len(),
        _ => return Err(Errno(EINVAL)),
    };
    let start = (base as i64).checked_add(start).ok_or(Errno(EINVAL))?;
    let first = if bytes < 0 { start.saturating_add(bytes) } else { start };
    let first = u64::try_from(first).map_err(|_| Errno(EINVAL))?;
    match bytes {
        0 => Ok(first..u64::MAX),
        // The last byte's offset must have at most 63 bits.
        1.. if first + (bytes as u64 - 1) > i64::MAX as u64 => Err(Errno(EOVERFLOW)),
        _ => Ok(first..first + bytes.unsigned_abs()),
    }
}

/// Writes the conflicting lock to the `struct flock`, or that there is none.
fn write_conflict(process: &mut Process, at: u64, found: Option<Lock>) -> Result<u64, Errno> {
    let Some(Lock { holder, bytes, shared }) = found else {
        process.memory.write(at, &NONE.to_le_bytes())?;
        return Ok(0);
    };
    let len = if bytes.end == u64::MAX { 0 } else { bytes.end - bytes.start };
    let pid = match holder {
        Holder::Program(pid) => u64::from(pid),
        Holder::OpenFile(_) | Holder::Whole(_) => u64::from(u32::MAX),
    };
    let kind = if shared { SHARED } else { EXCLUSIVE };
    process.memory.write_words(at, [kind.into(), bytes.start, len])?;
    process.memory.write(at + 24, &(pid as u32).to_le_bytes())?;
    Ok(0)
}

/// `flock`: locks the whole file for an open file.
pub(super) fn flock(process: &mut Process, fd: u64, what: u64) -> Result<Answer, Errno> {
    let open = match descriptor(process, fd)? {
        Descriptor::File(open) => open,
        _ => return Ok(Answer::Value(0)),
    };
    let open = open.lock();
    let holder = Holder::Whole(open.number);
    let whole = 0..u64::MAX;
    let mut all = open.file.locks.lock();
    let shared = match what & !DO_NOT_WAIT {
        WHOLE_SHARED => true,
        WHOLE_EXCLUSIVE => false,
        WHOLE_NONE => {
            locks::release_all(&mut all, holder);
            return Ok(Answer::Value(0));
        }
        _ => return Err(Errno(EINVAL)),
    };
    let lock = Lock { holder, bytes: whole, shared };
    match locks::conflict(&all, &lock) {
        Some(_) if what & DO_NOT_WAIT != 0 => Err(Errno(EAGAIN)),
        Some(_) => Ok(retry()),
        None => locks::add(&mut all, lock).map(|()| Answer::Value(0)).map_err(|_| Errno(ENOLCK)),
    }
}
