//! `struct stat` and the flags of `open`, for calls by path and by descriptor.

use super::answer::Errno;
use crate::{files::Inode, memory::frames::FRAME_BYTES, task::Process};

/// `S_IFREG`, readable and writable by all.
const REGULAR_FILE: u32 = 0o100_666;
/// `S_IFDIR`, with all permissions for all.
const FOLDER: u32 = 0o040_777;
/// `S_IFCHR`, readable and writable by all.
const CHARACTER_DEVICE: u32 = 0o020_666;
/// `O_WRONLY`.
pub(super) const WRITE_ONLY: u64 = 1;
/// `O_RDWR`.
pub(super) const READ_WRITE: u64 = 2;
/// `O_APPEND`.
pub(super) const APPEND: u64 = 0o2000;

/// `O_RDONLY`, `O_WRONLY` or `O_RDWR` of a descriptor.
pub(super) fn access_flags(reads: bool, writes: bool) -> u64 {
    match (reads, writes) {
        (true, true) => READ_WRITE,
        (false, true) => WRITE_ONLY,
        _ => 0,
    }
}

/// Writes the `struct stat` of a file, or of a character device if there is none.
pub(super) fn write_stat(
    process: &mut Process,
    to: u64,
    file: Option<&Inode>,
) -> Result<u64, Errno> {
    match file {
        Some(file) => write(process, to, REGULAR_FILE, (file.number, file.lock().len())),
        None => write(process, to, CHARACTER_DEVICE, (0, 0)),
    }
}

/// Writes the `struct stat` of a folder.
pub(super) fn write_folder_stat(process: &mut Process, to: u64) -> Result<u64, Errno> {
    write(process, to, FOLDER, (0, 0))
}

/// Linux's `struct stat` for x86-64, 144 bytes; the fields that files here do not have are 0.
fn write(
    process: &mut Process,
    to: u64,
    mode: u32,
    (number, bytes): (u64, u64),
) -> Result<u64, Errno> {
    let mut stat = [0; 144];
    let mut put = |at: usize, value: u64| stat[at..at + 8].copy_from_slice(&value.to_le_bytes());
    put(8, number);
    put(16, 1); // links
    put(24, mode.into()); // and user 0
    put(48, bytes);
    put(56, FRAME_BYTES);
    put(64, bytes.div_ceil(512));
    process.memory.write(to, &stat)?;
    Ok(0)
}
