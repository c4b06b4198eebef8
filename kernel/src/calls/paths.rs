//! Calls on files by their names.

use alloc::{string::String, sync::Arc, vec};

use spin::Mutex;
use tally_abi::syscall::{
    self,
    errno::{EEXIST, EFAULT, EINVAL, EISDIR, EMFILE, ENAMETOOLONG, ENOENT, ERANGE},
};

use super::{
    answer::Errno,
    files,
    stat::{APPEND, READ_WRITE, WRITE_ONLY, write_folder_stat, write_stat},
};
use crate::{
    files::{
        self as store,
        open::{Descriptor, OpenFile},
    },
    task::Process,
};

/// The longest path, in bytes.
const MAX_PATH_BYTES: u64 = 255;
/// `O_RDONLY | O_WRONLY | O_RDWR`: the bits that say what a file is opened for.
const ACCESS_MODE: u64 = 3;
const CREATE: u64 = 0o100;
const EXCLUSIVE: u64 = 0o200;
const TRUNCATE: u64 = 0o1000;
/// `AT_EMPTY_PATH`.
const EMPTY_PATH: u64 = 0x1000;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, c, d, ..]: [u64; 6],
) -> Option<Result<u64, Errno>> {
    Some(match number {
        syscall::OPEN => open(process, a, b),
        syscall::OPENAT => open(process, b, c),
        syscall::STAT | syscall::LSTAT => stat(process, a, b),
        syscall::NEWFSTATAT => stat_at(process, [a, b, c, d]),
        syscall::ACCESS => access(process, a),
        syscall::FACCESSAT => access(process, b),
        syscall::TRUNCATE => set_length(process, a, b),
        syscall::UNLINK => remove(process, a),
        syscall::UNLINKAT => remove(process, b),
        syscall::RENAME => rename(process, a, b),
        syscall::RENAMEAT => rename(process, b, d),
        syscall::READLINK => read_link(process, a, b, c),
        syscall::READLINKAT => read_link(process, b, c, d),
        syscall::GETCWD => folder(process, a, b),
        // Everybody may do everything with every file, and none has a date.
        syscall::CHMOD | syscall::CHOWN => access(process, a),
        syscall::UTIMENSAT if b == 0 => Ok(0),
        syscall::UTIMENSAT => access(process, b),
        syscall::UMASK => Ok(0),
        _ => return None,
    })
}

/// What a path names that is no file.
fn special(path: &str) -> Option<Descriptor> {
    match path {
        "/dev/null" => Some(Descriptor::Null),
        "/dev/stdout" | "/dev/fd/1" => Some(Descriptor::Output(1)),
        "/dev/stderr" | "/dev/fd/2" => Some(Descriptor::Output(2)),
        _ => None,
    }
}

/// Folders are not kept: those that every program knows are there.
fn is_folder(path: &str) -> bool {
    matches!(path, "." | ".." | "/" | "/tmp" | "/tmp/" | "./")
}

/// `open` and `openat`.
fn open(process: &mut Process, path: u64, flags: u64) -> Result<u64, Errno> {
    let path = read_path(process, path)?;
    // First: whoever gets none has neither made a file nor emptied one.
    let fd = process.files.free(0).ok_or(Errno(EMFILE))?;
    let descriptor = match special(&path) {
        Some(descriptor) => descriptor,
        None => open_file(&path, flags)?,
    };
    process.files.put(fd, descriptor);
    Ok(fd)
}

fn open_file(path: &str, flags: u64) -> Result<Descriptor, Errno> {
    let (reads, writes) = match flags & ACCESS_MODE {
        WRITE_ONLY => (false, true),
        READ_WRITE => (true, true),
        0 => (true, false),
        _ => return Err(Errno(EINVAL)),
    };
    if is_folder(path) {
        return Err(Errno(EISDIR));
    }
    let file = match flags & CREATE != 0 && !path.is_empty() {
        true => store::find_or_create(path, flags & EXCLUSIVE != 0)?.ok_or(Errno(EEXIST))?,
        false => store::find(path).ok_or(Errno(ENOENT))?,
    };
    if flags & TRUNCATE != 0 && writes {
        file.lock().set_len(0)?;
    }
    let appends = flags & APPEND != 0;
    Ok(Descriptor::File(Arc::new(Mutex::new(OpenFile {
        file,
        position: 0,
        reads,
        writes,
        appends,
    }))))
}

/// `stat`, `lstat`, and `newfstatat` with a path.
fn stat(process: &mut Process, path: u64, to: u64) -> Result<u64, Errno> {
    let path = read_path(process, path)?;
    stat_of(process, &path, to)
}

fn stat_of(process: &mut Process, path: &str, to: u64) -> Result<u64, Errno> {
    if is_folder(path) {
        return write_folder_stat(process, to);
    }
    let file = match special(path) {
        Some(_) => None,
        None => Some(store::find(path).ok_or(Errno(ENOENT))?),
    };
    write_stat(process, to, file.as_deref())
}

/// `newfstatat`: of a path, or of the descriptor if that is empty and the flags say so.
fn stat_at(process: &mut Process, arguments: [u64; 4]) -> Result<u64, Errno> {
    let [fd, path, to, flags] = arguments;
    let path = read_path(process, path)?;
    match path.is_empty() && flags & EMPTY_PATH != 0 {
        true => files::stat(process, fd, to),
        false => stat_of(process, &path, to),
    }
}

/// `access` and `faccessat`: whoever can see a file may do everything with it.
fn access(process: &mut Process, path: u64) -> Result<u64, Errno> {
    let path = read_path(process, path)?;
    let is_there = is_folder(&path) || special(&path).is_some() || store::find(&path).is_some();
    if is_there { Ok(0) } else { Err(Errno(ENOENT)) }
}

/// `truncate`.
fn set_length(process: &mut Process, path: u64, bytes: u64) -> Result<u64, Errno> {
    let path = read_path(process, path)?;
    let file = store::find(&path).ok_or(Errno(ENOENT))?;
    if bytes > i64::MAX as u64 {
        return Err(Errno(EINVAL));
    }
    file.lock().set_len(bytes)?;
    Ok(0)
}

/// `unlink` and `unlinkat`.
fn remove(process: &mut Process, path: u64) -> Result<u64, Errno> {
    let path = read_path(process, path)?;
    if store::remove(&path) { Ok(0) } else { Err(Errno(ENOENT)) }
}

/// `rename` and `renameat`.
fn rename(process: &mut Process, from: u64, to: u64) -> Result<u64, Errno> {
    let (from, to) = (read_path(process, from)?, read_path(process, to)?);
    if is_folder(&to) {
        return Err(Errno(EISDIR));
    }
    if store::rename(&from, &to)? { Ok(0) } else { Err(Errno(ENOENT)) }
}

/// `readlink` and `readlinkat`: the program's own name is the one link that there is.
fn read_link(process: &mut Process, path: u64, buffer: u64, bytes: u64) -> Result<u64, Errno> {
    let path = read_path(process, path)?;
    if path != "/proc/self/exe" {
        let is_there = is_folder(&path) || store::find(&path).is_some();
        return Err(Errno(if is_there { EINVAL } else { ENOENT }));
    }
    let name = alloc::format!("/{}", process.name);
    let part = &name.as_bytes()[..name.len().min(bytes as usize)];
    process.memory.space.write(buffer, part)?;
    Ok(part.len() as u64)
}

/// `getcwd`: there is one folder.
fn folder(process: &mut Process, buffer: u64, bytes: u64) -> Result<u64, Errno> {
    let path = b"/\0";
    if bytes < path.len() as u64 {
        return Err(Errno(ERANGE));
    }
    process.memory.space.write(buffer, path)?;
    Ok(path.len() as u64)
}

fn read_path(process: &mut Process, address: u64) -> Result<String, Errno> {
    let mut path = vec![];
    for offset in 0..=MAX_PATH_BYTES {
        let mut byte = [0];
        process.memory.space.read(address.checked_add(offset).ok_or(Errno(EFAULT))?, &mut byte)?;
        if byte[0] == 0 {
            return String::from_utf8(path).map_err(|_| Errno(ENOENT));
        }
        path.push(byte[0]);
    }
    Err(Errno(ENAMETOOLONG))
}
