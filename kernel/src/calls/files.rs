//! Calls on descriptors: reading, writing, seeking.

use alloc::string::String;

use tally_abi::{
    syscall::{
        self,
        errno::{EBADF, EFAULT, EINVAL, EMFILE, ENOSPC, ENOTTY, ESPIPE},
    },
    wire::{MAX_OUTPUT_BYTES, Message},
};

use super::{
    answer::Errno,
    stat::{APPEND, access_flags, write_stat},
};
use crate::{
    files::open::{Descriptor, MAX_DESCRIPTORS},
    machine::serial,
    memory::frames::{FRAME_BYTES, OutOfMemory},
    task::Process,
};

/// The most parts of one `readv` or `writev` (Linux's `UIO_MAXIOV`).
const MAX_VECTOR: u64 = 1024;
/// The most bytes of one call (Linux's `MAX_RW_COUNT`).
const MOST_BYTES: u64 = 0x7fff_f000;
/// Bytes after which a call that may do less than asked ends: interrupts are off while it runs.
const ENOUGH_BYTES: u64 = 1 << 20;
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

/// The offset at which a call reads or writes.
#[derive(Clone, Copy)]
enum At {
    /// The descriptor's position, which the call advances.
    Position,
    /// This offset; the descriptor's position does not change.
    Offset(u64),
}

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, c, d, ..]: [u64; 6],
) -> Option<Result<u64, Errno>> {
    Some(match number {
        syscall::READ => read(process, a, b, c, At::Position),
        syscall::PREAD64 | syscall::PWRITE64 if d > i64::MAX as u64 => Err(Errno(EINVAL)),
        syscall::PREAD64 => read(process, a, b, c, At::Offset(d)),
        syscall::READV => {
            vector(process, b, c, |process, to, bytes| read(process, a, to, bytes, At::Position))
        }
        syscall::WRITE => write(process, a, b, c, At::Position),
        syscall::PWRITE64 => write(process, a, b, c, At::Offset(d)),
        syscall::WRITEV => vector(process, b, c, |process, from, bytes| {
            write(process, a, from, bytes, At::Position)
        }),
        syscall::CLOSE => close(process, a),
        syscall::FSTAT => stat(process, a, b),
        syscall::LSEEK => seek(process, a, b as i64, c),
        syscall::FTRUNCATE => set_length(process, a, b),
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

fn descriptor(process: &Process, fd: u64) -> Result<Descriptor, Errno> {
    process.files.get(fd).cloned().ok_or(Errno(EBADF))
}

/// How many of `bytes` at an address are in the address's page: the next page may be unmapped.
fn in_page(address: u64, bytes: u64) -> u64 {
    bytes.min(FRAME_BYTES - address % FRAME_BYTES)
}

/// `read` and `pread64`.
fn read(process: &mut Process, fd: u64, buffer: u64, bytes: u64, at: At) -> Result<u64, Errno> {
    let open = match descriptor(process, fd)? {
        Descriptor::Null => return Ok(0),
        Descriptor::Output(_) => return Err(Errno(EBADF)),
        Descriptor::File(open) => open,
    };
    let mut open = open.lock();
    if !open.reads {
        return Err(Errno(EBADF));
    }
    let start = match at {
        At::Position => open.position,
        At::Offset(offset) => offset,
    };
    let file = open.file.clone();
    let content = file.lock();
    let mut done = 0;
    while done < bytes {
        let to = buffer.checked_add(done).ok_or(Errno(EFAULT))?;
        let piece = content.piece(start + done);
        let part = &piece[..piece.len().min(in_page(to, bytes - done) as usize)];
        if part.is_empty() {
            break;
        }
        match process.memory.space.write(to, part) {
            Ok(()) => done += part.len() as u64,
            Err(error) if done == 0 => return Err(error.into()),
            Err(_) => break,
        }
    }
    if let At::Position = at {
        open.position += done;
    }
    Ok(done)
}

/// `write` and `pwrite64`.
fn write(process: &mut Process, fd: u64, buffer: u64, bytes: u64, at: At) -> Result<u64, Errno> {
    match descriptor(process, fd)? {
        Descriptor::Null => Ok(bytes.min(MOST_BYTES)),
        Descriptor::Output(fd) => {
            in_pieces(process, buffer, bytes.min(ENOUGH_BYTES), |process, _, part| {
                emit(process, fd, part);
                Ok(part.len())
            })
        }
        Descriptor::File(open) => {
            let mut open = open.lock();
            if !open.writes {
                return Err(Errno(EBADF));
            }
            let file = open.file.clone();
            let mut content = file.lock();
            let start = match at {
                At::Offset(offset) => offset,
                At::Position if open.appends => content.len(),
                At::Position => open.position,
            };
            start.checked_add(bytes).filter(|end| *end <= i64::MAX as u64).ok_or(Errno(EINVAL))?;
            let done = in_pieces(process, buffer, bytes, |_, done, part| {
                match content.write(start + done, part) {
                    0 => Err(Errno(ENOSPC)),
                    taken => Ok(taken),
                }
            })?;
            if let At::Position = at {
                open.position = start + done;
            }
            Ok(done)
        }
    }
}

/// Calls `take` with the program's bytes piece by piece, and with the number of bytes before the
/// piece, until it takes less than a piece. Returns how many bytes it took. An error counts only if
/// it took none.
fn in_pieces(
    process: &mut Process,
    buffer: u64,
    bytes: u64,
    mut take: impl FnMut(&mut Process, u64, &[u8]) -> Result<usize, Errno>,
) -> Result<u64, Errno> {
    let mut chunk = [0; MAX_OUTPUT_BYTES];
    let mut done = 0;
    while done < bytes {
        let from = buffer.checked_add(done).ok_or(Errno(EFAULT))?;
        let part = &mut chunk[..in_page(from, bytes - done).min(MAX_OUTPUT_BYTES as u64) as usize];
        let read = process.memory.space.read(from, part).map_err(Errno::from);
        match read.and_then(|()| take(process, done, part)) {
            Ok(taken) => {
                done += taken as u64;
                if taken < part.len() {
                    break;
                }
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// `readv` and `writev`: calls `each` for each part, until a part is short or [`ENOUGH_BYTES`] are
/// done.
fn vector(
    process: &mut Process,
    parts: u64,
    count: u64,
    mut each: impl FnMut(&mut Process, u64, u64) -> Result<u64, Errno>,
) -> Result<u64, Errno> {
    if count > MAX_VECTOR {
        return Err(Errno(EINVAL));
    }
    let mut done = 0_u64;
    for index in 0..count {
        let part = parts.checked_add(16 * index).ok_or(Errno(EFAULT));
        let part = part.and_then(|at| Ok(process.memory.space.read_words(at)?));
        let moved = part.and_then(|[base, bytes]| Ok((each(process, base, bytes)?, bytes)));
        match moved {
            Ok((now, bytes)) => {
                done += now;
                if now < bytes || done >= ENOUGH_BYTES {
                    break;
                }
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// Sends output to the host, or to the log of a machine without a wire.
fn emit(process: &Process, fd: u8, bytes: &[u8]) {
    if serial::has_wire() {
        serial::send(&Message::Output { pid: process.pid, fd, bytes });
    } else {
        for line in String::from_utf8_lossy(bytes).lines() {
            log::info!("{}: {line}", process.name);
        }
    }
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

/// `ftruncate`.
fn set_length(process: &mut Process, fd: u64, bytes: u64) -> Result<u64, Errno> {
    let Descriptor::File(open) = descriptor(process, fd)? else { return Err(Errno(EINVAL)) };
    let open = open.lock();
    if !open.writes || bytes > i64::MAX as u64 {
        return Err(Errno(EINVAL));
    }
    open.file.lock().set_len(bytes)?;
    Ok(0)
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
