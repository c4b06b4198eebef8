//! Calls on files by path.

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
/// The bits of `O_RDONLY`, `O_WRONLY` and `O_RDWR`.
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
        syscall::UNLINK => remove(process, a),
        syscall::UNLINKAT => remove(process, b),
        syscall::RENAME => rename(process, a, b),
        syscall::RENAMEAT => rename(process, b, d),
        syscall::READLINK => read_link(process, a, b, c),
        syscall::READLINKAT => read_link(process, b, c, d),
        syscall::GETCWD => folder(process, a, b),
        // Every file has all permissions, and no date.
        syscall::CHMOD | syscall::CHOWN => access(process, a),
        syscall::UTIMENSAT if b == 0 => Ok(0),
        syscall::UTIMENSAT => access(process, b),
        syscall::UMASK => Ok(0),
        _ => return None,
    })
}

/// The descriptor of a path that is not a file.
fn special(path: &str) -> Option<Descriptor> {
    match path {
        "/dev/null" => Some(Descriptor::Null),
        "/dev/stdout" | "/dev/fd/1" => Some(Descriptor::Output(1)),
        "/dev/stderr" | "/dev/fd/2" => Some(Descriptor::Output(2)),
        _ => None,
    }
}

/// Returns whether a path is one of the folders that programs expect; there are no others.
fn is_folder(path: &str) -> bool {
    matches!(path, "." | ".." | "/" | "/tmp" | "/tmp/" | "./")
}

/// `open` and `openat`.
fn open(process: &mut Process, path: u64, flags: u64) -> Result<u64, Errno> {
    let path = read_path(process, path)?;
    // First: a call that fails must neither create nor truncate a file.
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
    let file = if flags & CREATE != 0 && !path.is_empty() {
        store::find_or_create(path, flags & EXCLUSIVE != 0)?.ok_or(Errno(EEXIST))?
    } else {
        store::find(path).ok_or(Errno(ENOENT))?
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

/// `newfstatat`: of a path, or of the descriptor if the path is empty and the flags allow it.
fn stat_at(process: &mut Process, arguments: [u64; 4]) -> Result<u64, Errno> {
    let [fd, path, to, flags] = arguments;
    let path = read_path(process, path)?;
    if path.is_empty() && flags & EMPTY_PATH != 0 {
        return files::stat(process, fd, to);
    }
    stat_of(process, &path, to)
}

/// `access` and `faccessat`: every file has all permissions.
fn access(process: &mut Process, path: u64) -> Result<u64, Errno> {
    let path = read_path(process, path)?;
    let is_there = is_folder(&path) || special(&path).is_some() || store::find(&path).is_some();
    if is_there { Ok(0) } else { Err(Errno(ENOENT)) }
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

/// `readlink` and `readlinkat`: `/proc/self/exe` is the only link.
fn read_link(process: &mut Process, path: u64, buffer: u64, bytes: u64) -> Result<u64, Errno> {
    let path = read_path(process, path)?;
    if path != "/proc/self/exe" {
        let is_there = is_folder(&path) || store::find(&path).is_some();
        return Err(Errno(if is_there { EINVAL } else { ENOENT }));
    }
    let name = alloc::format!("/{}", process.name);
    let part = &name.as_bytes()[..name.len().min(bytes as usize)];
    process.memory.write(buffer, part)?;
    Ok(part.len() as u64)
}

/// `getcwd`: always `/`.
fn folder(process: &mut Process, buffer: u64, bytes: u64) -> Result<u64, Errno> {
    let path = b"/\0";
    if bytes < path.len() as u64 {
        return Err(Errno(ERANGE));
    }
    process.memory.write(buffer, path)?;
    Ok(path.len() as u64)
}

pub(super) fn read_path(process: &mut Process, address: u64) -> Result<String, Errno> {
    let mut path = vec![];
    for offset in 0..=MAX_PATH_BYTES {
        let mut byte = [0];
        process.memory.read(address.checked_add(offset).ok_or(Errno(EFAULT))?, &mut byte)?;
        if byte[0] == 0 {
            return String::from_utf8(path).map_err(|_| Errno(ENOENT));
        }
        path.push(byte[0]);
    }
    Err(Errno(ENAMETOOLONG))
}
