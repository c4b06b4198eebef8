//! Calls on descriptors, except those that transfer bytes.

use tally_abi::syscall::{
    self,
    errno::{EBADF, EINVAL, EMFILE, ENOSPC, ENOTTY, ESPIPE},
};

use super::{
    answer::Errno,
    stat::{APPEND, access_flags, write_stat},
};
use crate::{
    files::open::{Descriptor, MAX_DESCRIPTORS},
    memory::frames::OutOfMemory,
    task::Process,
};

/// `F_DUPFD`, `F_GETFD`, `F_SETFD`, `F_GETFL`, `F_SETFL` and `F_DUPFD_CLOEXEC` of `fcntl`.
const DUPLICATE: u64 = 0;
const GET_CLOSING: u64 = 1;
const SET_CLOSING: u64 = 2;
const GET_FLAGS: u64 = 3;
const SET_FLAGS: u64 = 4;
const DUPLICATE_CLOSING: u64 = 1030;

impl From<OutOfMemory> for Errno {
    fn from(_: OutOfMemory) -> Self {
        Errno(ENOSPC)
    }
}

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, c, ..]: [u64; 6],
) -> Option<Result<u64, Errno>> {
    Some(match number {
        syscall::CLOSE => close(process, a),
        syscall::FSTAT => stat(process, a, b),
        syscall::LSEEK => seek(process, a, b as i64, c),
        syscall::FSYNC | syscall::FDATASYNC => match descriptor(process, a) {
            Ok(Descriptor::File(_)) => Ok(0),
            other => other.and(Err(Errno(EINVAL))),
        },
        syscall::DUP => duplicate(process, a, 0),
        syscall::DUP3 if a == b => Err(Errno(EINVAL)),
        syscall::DUP2 | syscall::DUP3 => duplicate_to(process, a, b),
        syscall::FCNTL => control(process, a, b, c),
        syscall::IOCTL => descriptor(process, a).and(Err(Errno(ENOTTY))),
        // Programs read and write instead.
        syscall::SENDFILE => descriptor(process, a).and(Err(Errno(EINVAL))),
        // Every file has all permissions.
        syscall::FCHMOD | syscall::FCHOWN => descriptor(process, a).map(|_| 0),
        _ => return None,
    })
}

/// The process's descriptor of that number.
pub(super) fn descriptor(process: &Process, fd: u64) -> Result<Descriptor, Errno> {
    process.files.get(fd).cloned().ok_or(Errno(EBADF))
}

/// `fstat`.
pub(super) fn stat(process: &mut Process, fd: u64, to: u64) -> Result<u64, Errno> {
    let file = match descriptor(process, fd)? {
        Descriptor::File(open) => Some(open.lock().file.clone()),
        Descriptor::Null | Descriptor::Output(_) => None,
    };
    write_stat(process, to, file.as_deref())
}

fn close(process: &mut Process, fd: u64) -> Result<u64, Errno> {
    if process.files.remove(fd) { Ok(0) } else { Err(Errno(EBADF)) }
}

fn seek(process: &mut Process, fd: u64, offset: i64, whence: u64) -> Result<u64, Errno> {
    let open = match descriptor(process, fd)? {
        Descriptor::Null => return Ok(0),
        Descriptor::Output(_) => return Err(Errno(ESPIPE)),
        Descriptor::File(open) => open,
    };
    let mut open = open.lock();
    let base = match whence {
        0 => 0,
        1 => open.position,
        2 => open.file.lock().len(),
        _ => return Err(Errno(EINVAL)),
    };
    let position = (base as i64).checked_add(offset).filter(|p| *p >= 0).ok_or(Errno(EINVAL))?;
    open.position = position as u64;
    Ok(open.position)
}

/// `dup2` and `dup3`.
fn duplicate_to(process: &mut Process, fd: u64, to: u64) -> Result<u64, Errno> {
    let copy = descriptor(process, fd)?;
    if process.files.put(to, copy) { Ok(to) } else { Err(Errno(EBADF)) }
}

/// `dup`, and `fcntl`'s form of it.
fn duplicate(process: &mut Process, fd: u64, from: u64) -> Result<u64, Errno> {
    let copy = descriptor(process, fd)?;
    let to = process.files.free(from).ok_or(Errno(EMFILE))?;
    process.files.put(to, copy);
    Ok(to)
}

/// `fcntl`: `FD_CLOEXEC` has no effect, as no program executes another.
fn control(process: &mut Process, fd: u64, what: u64, argument: u64) -> Result<u64, Errno> {
    let open = descriptor(process, fd)?;
    match what {
        DUPLICATE | DUPLICATE_CLOSING if argument >= MAX_DESCRIPTORS => Err(Errno(EINVAL)),
        DUPLICATE | DUPLICATE_CLOSING => duplicate(process, fd, argument),
        GET_CLOSING | SET_CLOSING => Ok(0),
        SET_FLAGS => {
            if let Descriptor::File(open) = open {
                open.lock().appends = argument & APPEND != 0;
            }
            Ok(0)
        }
        GET_FLAGS => match open {
            Descriptor::File(open) => {
                let open = open.lock();
                let appends = if open.appends { APPEND } else { 0 };
                Ok(access_flags(open.reads, open.writes) | appends)
            }
            Descriptor::Null => Ok(access_flags(true, true)),
            Descriptor::Output(_) => Ok(access_flags(false, true)),
        },
        _ => Err(Errno(EINVAL)),
    }
}
