//! Calls on files: the ramdisk's, for reading, and the two outputs.

use alloc::{string::String, vec};

use tally_abi::{
    syscall::errno::{EACCES, EBADF, EFAULT, EINVAL, EMFILE, ENOENT},
    wire::{MAX_OUTPUT_BYTES, Message},
};

use super::Errno;
use crate::{
    machine::serial,
    memory::frames::FRAME_BYTES,
    task::{Process, ramdisk},
};

/// The longest path, in bytes, as in the ramdisk's format.
const MAX_PATH_BYTES: u64 = 100;
/// The most parts of one `writev`, as Linux has it (`UIO_MAXIOV`).
const MAX_VECTOR: u64 = 1024;
/// `S_IFREG` that everybody may read.
const REGULAR_FILE: u32 = 0o100_444;
/// `S_IFCHR` that its owner may write.
const CHARACTER_DEVICE: u32 = 0o020_620;
/// `O_RDONLY | O_WRONLY | O_RDWR`: the bits that say what a file is opened for.
const ACCESS_MODE: u64 = 3;

pub(super) fn read(process: &mut Process, fd: u64, buffer: u64, bytes: u64) -> Result<u64, Errno> {
    let file = process.files.get_mut(&fd).ok_or(Errno(EBADF))?;
    let rest = file.bytes.get(file.position..).unwrap_or_default();
    let part = &rest[..rest.len().min(bytes as usize)];
    process.space.write(buffer, part)?;
    file.position += part.len();
    Ok(part.len() as u64)
}

pub(super) fn write(process: &mut Process, fd: u64, buffer: u64, bytes: u64) -> Result<u64, Errno> {
    if !(1..=2).contains(&fd) {
        return Err(Errno(EBADF));
    }
    let mut chunk = [0; MAX_OUTPUT_BYTES];
    let mut done = 0;
    while done < bytes {
        let part = &mut chunk[..(bytes - done).min(MAX_OUTPUT_BYTES as u64) as usize];
        let from = buffer.checked_add(done).ok_or(Errno(EFAULT))?;
        process.space.read(from, part)?;
        emit(process, fd as u8, part);
        done += part.len() as u64;
    }
    Ok(bytes)
}

/// `writev`: each part as [`write`] takes it.
pub(super) fn write_vector(
    process: &mut Process,
    fd: u64,
    vector: u64,
    count: u64,
) -> Result<u64, Errno> {
    if count > MAX_VECTOR {
        return Err(Errno(EINVAL));
    }
    let mut written = 0;
    for index in 0..count {
        let mut words = [0; 16];
        let at = vector.checked_add(16 * index).ok_or(Errno(EFAULT))?;
        process.space.read(at, &mut words)?;
        let [base, bytes] =
            [0, 8].map(|i| u64::from_le_bytes(core::array::from_fn(|b| words[i + b])));
        written += write(process, fd, base, bytes)?;
    }
    Ok(written)
}

/// `fstat`.
pub(super) fn stat(process: &mut Process, fd: u64, to: u64) -> Result<u64, Errno> {
    let file = process.files.get(&fd).map(|file| file.bytes.len());
    match (fd, file) {
        (0..=2, _) => write_stat(process, to, CHARACTER_DEVICE, 0),
        (_, Some(bytes)) => write_stat(process, to, REGULAR_FILE, bytes),
        _ => Err(Errno(EBADF)),
    }
}

/// `newfstatat`: of a path, or of the descriptor if that is empty.
pub(super) fn stat_at(process: &mut Process, arguments: [u64; 3]) -> Result<u64, Errno> {
    let [fd, path, to] = arguments;
    let path = read_path(process, path)?;
    if path.is_empty() {
        return stat(process, fd, to);
    }
    let bytes = ramdisk::file(&path).ok_or(Errno(ENOENT))?.len();
    write_stat(process, to, REGULAR_FILE, bytes)
}

/// Linux's `struct stat` for x86-64, 144 bytes, with what there is to say of a file here.
fn write_stat(process: &mut Process, to: u64, mode: u32, bytes: usize) -> Result<u64, Errno> {
    let mut stat = [0; 144];
    stat[24..28].copy_from_slice(&mode.to_le_bytes());
    stat[48..56].copy_from_slice(&(bytes as u64).to_le_bytes());
    stat[56..64].copy_from_slice(&FRAME_BYTES.to_le_bytes());
    process.space.write(to, &stat)?;
    Ok(0)
}

/// `readlink`: the program's own name is the one link that there is.
pub(super) fn read_link(
    process: &mut Process,
    path: u64,
    buffer: u64,
    bytes: u64,
) -> Result<u64, Errno> {
    if read_path(process, path)? != "/proc/self/exe" {
        return Err(Errno(ENOENT));
    }
    let name = alloc::format!("/{}", process.name);
    let part = &name.as_bytes()[..name.len().min(bytes as usize)];
    process.space.write(buffer, part)?;
    Ok(part.len() as u64)
}

/// Sends output to the host; where nobody listens, it goes to the log.
fn emit(process: &Process, fd: u8, bytes: &[u8]) {
    if serial::has_wire() {
        serial::send(&Message::Output { pid: process.pid, fd, bytes });
    } else {
        for line in String::from_utf8_lossy(bytes).lines() {
            log::info!("{}: {line}", process.name);
        }
    }
}

pub(super) fn open(process: &mut Process, path: u64, flags: u64) -> Result<u64, Errno> {
    let path = read_path(process, path)?;
    let bytes = ramdisk::file(&path).ok_or(Errno(ENOENT))?;
    if flags & ACCESS_MODE != 0 {
        return Err(Errno(EACCES));
    }
    process.open(bytes).ok_or(Errno(EMFILE))
}

fn read_path(process: &mut Process, address: u64) -> Result<String, Errno> {
    let mut path = vec![];
    for offset in 0..MAX_PATH_BYTES {
        let mut byte = [0];
        process.space.read(address.checked_add(offset).ok_or(Errno(EFAULT))?, &mut byte)?;
        if byte[0] == 0 {
            return String::from_utf8(path).map_err(|_| Errno(ENOENT));
        }
        path.push(byte[0]);
    }
    Err(Errno(ENOENT))
}

pub(super) fn close(process: &mut Process, fd: u64) -> Result<u64, Errno> {
    process.files.remove(&fd).map(|_| 0).ok_or(Errno(EBADF))
}

pub(super) fn seek(process: &mut Process, fd: u64, offset: i64, whence: u64) -> Result<u64, Errno> {
    let file = process.files.get_mut(&fd).ok_or(Errno(EBADF))?;
    let base = match whence {
        0 => 0,
        1 => file.position,
        2 => file.bytes.len(),
        _ => return Err(Errno(EINVAL)),
    };
    let position = (base as i64).checked_add(offset).filter(|p| *p >= 0).ok_or(Errno(EINVAL))?;
    file.position = position as usize;
    Ok(position as u64)
}
