//! Calls on files: the ramdisk's, for reading, and the two outputs.

use alloc::{string::String, vec};

use tally_abi::{
    syscall::errno::{EACCES, EBADF, EFAULT, EINVAL, EMFILE, ENOENT},
    wire::{MAX_OUTPUT_BYTES, Message},
};

use super::Errno;
use crate::{
    machine::serial,
    task::{Process, ramdisk},
};

/// The longest path, in bytes, as in the ramdisk's format.
const MAX_PATH_BYTES: u64 = 100;
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
