//! Calls that transfer bytes between files and programs, or change a file's length: in steps, so
//! that a long call can be preempted (decision 21).
//!
//! The progress of a transfer is the number of bytes done. Between two steps other threads and
//! programs may use the file. A transfer from a stream may be short. A transfer to a blocking
//! stream is complete unless a signal handler ends it.

use alloc::{string::String, sync::Arc};

use tally_abi::{
    syscall::{
        self,
        errno::{EBADF, EFAULT, EINVAL, EISDIR, ENOSPC, ESPIPE},
    },
    wire::{MAX_OUTPUT_BYTES, Message},
};

use super::{
    answer::{Answer, Errno, RETRY},
    files::descriptor,
    length::{self, STEP_BYTES},
    signal_files, streams,
};
use crate::{
    files::{
        open::{Descriptor, OpenFile},
        streams::{Kind, Stream},
        tree::Device,
    },
    machine::serial,
    memory::frames::FRAME_BYTES,
    task::Process,
};

/// Maximum number of buffers of `readv` and `writev` (Linux's `UIO_MAXIOV`).
const MAX_VECTOR: u64 = 1024;
/// Maximum bytes of a call (Linux's `MAX_RW_COUNT`).
pub(super) const MAX_BYTES: u64 = 0x7fff_f000;

/// The offset at which a call reads or writes.
#[derive(Clone, Copy)]
enum At {
    /// The descriptor's position, which the call advances.
    Position,
    /// An offset; the descriptor's position does not change.
    Offset(u64),
}

impl At {
    /// The offset for the rest of a call that has done `done` bytes.
    fn after(self, done: u64) -> At {
        match self {
            At::Position => At::Position,
            At::Offset(offset) => At::Offset(offset.saturating_add(done)),
        }
    }
}

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, c, d, ..]: [u64; 6],
    done: u64,
) -> Option<Result<Answer, Errno>> {
    let offset = At::Offset(d);
    let whole = Part { buffer: b, bytes: c };
    let step = step_bytes(process, number, a);
    Some(match number {
        syscall::PREAD64 | syscall::PWRITE64 | syscall::PREADV | syscall::PWRITEV
            if d > i64::MAX as u64 =>
        {
            Err(Errno(EINVAL))
        }
        syscall::READ => {
            one(process, whole, done, step, |p, part, _| read(p, a, part, At::Position))
        }
        syscall::PREAD64 => {
            one(process, whole, done, step, |p, part, done| read(p, a, part, offset.after(done)))
        }
        syscall::READV => {
            vector(process, b, c, done, step, |p, part, _| read(p, a, part, At::Position))
        }
        syscall::PREADV => {
            vector(process, b, c, done, step, |p, part, done| read(p, a, part, offset.after(done)))
        }
        syscall::PWRITEV => {
            vector(process, b, c, done, step, |p, part, done| write(p, a, part, offset.after(done)))
        }
        syscall::WRITE => {
            one(process, whole, done, step, |p, part, _| write(p, a, part, At::Position))
        }
        syscall::PWRITE64 => {
            one(process, whole, done, step, |p, part, done| write(p, a, part, offset.after(done)))
        }
        syscall::WRITEV => {
            vector(process, b, c, done, step, |p, part, _| write(p, a, part, At::Position))
        }
        syscall::FTRUNCATE => length::truncate_descriptor(process, a, b),
        syscall::TRUNCATE => length::truncate_path(process, a, b),
        _ => return None,
    })
}

/// Maximum bytes of a step. A write to a device reads nothing from the program, so one step is
/// enough.
fn step_bytes(process: &mut Process, number: u64, fd: u64) -> u64 {
    let writes =
        matches!(number, syscall::WRITE | syscall::PWRITE64 | syscall::WRITEV | syscall::PWRITEV);
    match writes.then(|| descriptor(process, fd)) {
        Some(Ok(Descriptor::Device(_))) => MAX_BYTES,
        _ => STEP_BYTES,
    }
}

/// A part of the program's memory.
#[derive(Clone, Copy)]
struct Part {
    buffer: u64,
    bytes: u64,
}

impl Part {
    /// The rest after the first `done` bytes, at most `bytes` of it.
    fn after(self, done: u64, bytes: u64) -> Part {
        // No program's memory reaches the highest address, so nothing saturates.
        let buffer = self.buffer.saturating_add(done);
        Part { buffer, bytes: bytes.min(self.bytes - done) }
    }
}

/// Result of a transfer.
enum Moved {
    /// Bytes moved; the call ends if they are not all.
    Bytes(u64),
    /// Bytes moved; the call continues with the rest.
    Part(u64),
    /// No bytes yet: the file was only extended towards the place.
    Again,
    /// No bytes until another thread has read from the stream.
    Waits,
}

/// The call's answer after the transfer of `part`, preceded by `done` bytes; `None` if the whole
/// part was moved.
fn ended(moved: Result<Moved, Errno>, part: Part, done: u64) -> Option<Result<Answer, Errno>> {
    match moved {
        Ok(Moved::Again) => Some(Ok(Answer::continue_at(done))),
        Ok(Moved::Waits) if done == 0 => Some(Err(Errno(RETRY))),
        Ok(Moved::Waits) => Some(Ok(Answer::Partial(done))),
        Ok(Moved::Part(moved)) if moved < part.bytes => Some(Ok(Answer::continue_at(done + moved))),
        Ok(Moved::Bytes(moved)) if moved < part.bytes => Some(Ok(Answer::Value(done + moved))),
        Ok(Moved::Bytes(_) | Moved::Part(_)) => None,
        Err(error) if done == 0 => Some(Err(error)),
        // The program gets the error from its next call.
        Err(_) => Some(Ok(Answer::Value(done))),
    }
}

/// Makes a step, of at most `step_bytes`, of a call with one buffer.
fn one(
    process: &mut Process,
    whole: Part,
    done: u64,
    step_bytes: u64,
    transfer: impl FnOnce(&mut Process, Part, u64) -> Result<Moved, Errno>,
) -> Result<Answer, Errno> {
    let whole = Part { bytes: whole.bytes.min(MAX_BYTES), ..whole };
    let part = whole.after(done, step_bytes);
    let moved = transfer(process, part, done);
    if let Some(answer) = ended(moved, part, done) {
        return answer;
    }
    let done = done + part.bytes;
    Ok(if done == whole.bytes { Answer::Value(done) } else { Answer::continue_at(done) })
}

/// Makes a step, of at most `step_bytes`, of `readv` or `writev`, over one buffer or several.
fn vector(
    process: &mut Process,
    parts: u64,
    count: u64,
    mut done: u64,
    step_bytes: u64,
    mut transfer: impl FnMut(&mut Process, Part, u64) -> Result<Moved, Errno>,
) -> Result<Answer, Errno> {
    if count > MAX_VECTOR {
        return Err(Errno(EINVAL));
    }
    let step_end = done + step_bytes;
    // Bytes of the earlier buffers.
    let mut before = 0_u64;
    for index in 0..count {
        let at = parts.checked_add(16 * index).ok_or(Errno(EFAULT));
        let read = at.and_then(|at| Ok(process.memory.read_words(at)?));
        let [buffer, bytes] = match (read, done) {
            (Ok(words), _) => words,
            (Err(error), 0) => return Err(error),
            (Err(_), _) => return Ok(Answer::Value(done)),
        };
        let whole = Part { buffer, bytes: bytes.min(MAX_BYTES - before) };
        let end = before + whole.bytes;
        while done < end {
            if done >= step_end {
                return Ok(Answer::continue_at(done));
            }
            let part = whole.after(done - before, step_end - done);
            let moved = transfer(process, part, done);
            if let Some(answer) = ended(moved, part, done) {
                return answer;
            }
            done += part.bytes;
        }
        before = end;
    }
    Ok(Answer::Value(done))
}

/// The number of the `bytes` at an address that are in its page: the next page may be unmapped.
fn in_page(address: u64, bytes: u64) -> u64 {
    bytes.min(FRAME_BYTES - address % FRAME_BYTES)
}

/// `read` and `pread64`.
fn read(process: &mut Process, fd: u64, to: Part, at: At) -> Result<Moved, Errno> {
    let open = match descriptor(process, fd)? {
        Descriptor::Device(device) => return read_device(process, device, to).map(Moved::Bytes),
        Descriptor::Output(_) => return Err(Errno(EBADF)),
        Descriptor::Folder(_) => return Err(Errno(EISDIR)),
        Descriptor::Epoll(_) => return Err(Errno(EINVAL)),
        Descriptor::Stream(_) if !matches!(at, At::Position) => return Err(Errno(ESPIPE)),
        Descriptor::Stream(stream) => return read_stream(process, &stream, to).map(Moved::Bytes),
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
    let mut chunk = [0; MAX_OUTPUT_BYTES];
    let mut done = 0;
    while done < to.bytes {
        let address = to.buffer.checked_add(done).ok_or(Errno(EFAULT))?;
        let most = chunk.len().min(in_page(address, to.bytes - done) as usize);
        // The lock is not held while the program's memory is accessed, which may map this file.
        let bytes = file.lock().copy_to(start + done, &mut chunk[..most]);
        let part = &chunk[..bytes];
        if part.is_empty() {
            break;
        }
        match process.memory.write(address, part) {
            Ok(()) => done += part.len() as u64,
            Err(error) if done == 0 => return Err(error.into()),
            Err(_) => break,
        }
    }
    if let At::Position = at {
        open.position += done;
    }
    Ok(Moved::Bytes(done))
}

/// Reads the available bytes of a stream.
fn read_stream(process: &mut Process, stream: &Arc<Stream>, to: Part) -> Result<u64, Errno> {
    match stream.signals() {
        Some(set) => signal_files::read(process, stream, set, [to.buffer, to.bytes]),
        None => streams::read(process, stream, to.buffer, to.bytes, false),
    }
}

/// Reads from a device.
fn read_device(process: &mut Process, device: Device, to: Part) -> Result<u64, Errno> {
    let mut done = 0;
    while device != Device::Null && done < to.bytes {
        let mut chunk = [0; 256];
        if device == Device::Random {
            chunk
                .as_chunks_mut::<8>()
                .0
                .iter_mut()
                .for_each(|word| *word = process.random().to_le_bytes());
        }
        let part = &chunk[..(to.bytes - done).min(chunk.len() as u64) as usize];
        match process.memory.write(to.buffer.saturating_add(done), part) {
            Ok(()) => done += part.len() as u64,
            Err(error) if done == 0 => return Err(error.into()),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// `write` and `pwrite64`.
fn write(process: &mut Process, fd: u64, from: Part, at: At) -> Result<Moved, Errno> {
    match descriptor(process, fd)? {
        Descriptor::Device(_) => Ok(Moved::Bytes(from.bytes)),
        Descriptor::Folder(_) => Err(Errno(EBADF)),
        Descriptor::Epoll(_) => Err(Errno(EINVAL)),
        Descriptor::Stream(_) | Descriptor::Output(_) if !matches!(at, At::Position) => {
            Err(Errno(ESPIPE))
        }
        Descriptor::Stream(stream) => {
            match streams::write(process, &stream, from.buffer, from.bytes, false) {
                Err(Errno(RETRY)) => Ok(Moved::Waits),
                written if matches!(stream.kind, Kind::Channel(_)) => written.map(Moved::Part),
                written => written.map(Moved::Bytes),
            }
        }
        Descriptor::Output(fd) => {
            let emitted = in_pieces(process, from, |process, _, part| {
                emit(process, fd, part);
                Ok(part.len())
            });
            emitted.map(Moved::Bytes)
        }
        Descriptor::File(open) => write_file(process, &mut open.lock(), from, at),
    }
}

/// Writes to a file.
fn write_file(
    process: &mut Process,
    open: &mut OpenFile,
    from: Part,
    at: At,
) -> Result<Moved, Errno> {
    if !open.writes {
        return Err(Errno(EBADF));
    }
    let file = open.file.clone();
    let appends = open.appends && matches!(at, At::Position);
    let mut place = match at {
        At::Offset(offset) => offset,
        At::Position if appends => file.lock().len(),
        At::Position => open.position,
    };
    if place.checked_add(from.bytes).is_none_or(|end| end > i64::MAX as u64) {
        return Err(Errno(EINVAL));
    }
    if let Answer::Continue(_) = length::extend(&mut file.change(), place)? {
        return Ok(Moved::Again);
    }
    let done = in_pieces(process, from, |_, _, part| {
        // The lock is not held while the program's memory is accessed, which may map this file.
        let mut content = file.change();
        place = if appends { content.len() } else { place };
        let taken = content.write(place, part);
        place += taken as u64;
        if taken == 0 { Err(Errno(ENOSPC)) } else { Ok(taken) }
    })?;
    if let At::Position = at {
        open.position = place;
    }
    Ok(Moved::Bytes(done))
}

/// Passes the program's bytes to `take` in pieces, with the number of bytes before each, until it
/// takes fewer than offered. Returns the number taken; an error only if none were taken.
fn in_pieces(
    process: &mut Process,
    from: Part,
    mut take: impl FnMut(&mut Process, u64, &[u8]) -> Result<usize, Errno>,
) -> Result<u64, Errno> {
    let mut chunk = [0; MAX_OUTPUT_BYTES];
    let mut done = 0;
    while done < from.bytes {
        let address = from.buffer.checked_add(done).ok_or(Errno(EFAULT))?;
        let bytes = in_page(address, from.bytes - done).min(MAX_OUTPUT_BYTES as u64);
        let part = &mut chunk[..bytes as usize];
        let read = process.memory.read(address, part).map_err(Errno::from);
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

/// Sends output to the host, and to the log if the machine has no wire.
pub(super) fn emit(process: &Process, fd: u8, bytes: &[u8]) {
    serial::send(&Message::Output { pid: process.pid, fd, bytes });
    if !serial::has_wire() {
        for line in String::from_utf8_lossy(bytes).lines() {
            log::info!("{}: {line}", process.name);
        }
    }
}
