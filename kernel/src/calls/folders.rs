//! Calls on folders and names: creating, removing, renaming and listing them.

use alloc::{string::String, vec::Vec};

use tally_abi::syscall::{
    self,
    errno::{EBUSY, EINVAL, ENOENT, ENOTDIR, ENOTEMPTY, EPERM, ERANGE},
};

use super::{
    answer::Errno,
    files::descriptor,
    paths::{HERE, place, read_path},
    stat::kind_of,
};
use crate::{
    files::{
        location::{self, Base},
        open::{Descriptor, OpenFolder},
        tree::Node,
    },
    memory::heap,
    task::Process,
};

/// `AT_REMOVEDIR`.
const OF_FOLDER: u64 = 0x200;
/// `AT_SYMLINK_FOLLOW`.
const FOLLOW: u64 = 0x400;
/// `RENAME_NOREPLACE`.
const NO_REPLACE: u64 = 1;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, c, d, e, _]: [u64; 6],
) -> Option<Result<u64, Errno>> {
    Some(match number {
        syscall::MKDIR => make_folder(process, HERE, a),
        syscall::MKDIRAT => make_folder(process, a, b),
        syscall::RMDIR => remove(process, HERE, a, true),
        syscall::UNLINK => remove(process, HERE, a, false),
        syscall::UNLINKAT if c & !OF_FOLDER != 0 => Err(Errno(EINVAL)),
        syscall::UNLINKAT => remove(process, a, b, c == OF_FOLDER),
        syscall::RENAME => rename(process, (HERE, a), (HERE, b), 0),
        syscall::RENAMEAT => rename(process, (a, b), (c, d), 0),
        syscall::RENAMEAT2 => rename(process, (a, b), (c, d), e),
        syscall::LINK => link(process, (HERE, a), (HERE, b), 0),
        syscall::LINKAT => link(process, (a, b), (c, d), e),
        syscall::SYMLINK => make_link(process, a, HERE, b),
        syscall::SYMLINKAT => make_link(process, a, b, c),
        syscall::CHDIR => enter(process, a),
        syscall::FCHDIR => match descriptor(process, a) {
            Ok(Descriptor::Folder(open)) => {
                process.folder = open.lock().base.clone();
                Ok(0)
            }
            other => other.and(Err(Errno(ENOTDIR))),
        },
        syscall::GETCWD => folder(process, a, b),
        syscall::GETDENTS64 => list(process, a, b, c),
        _ => return None,
    })
}

/// Fails if the kernel has no memory for another name.
fn has_room() -> Result<(), Errno> {
    if heap::has_room() { Ok(()) } else { Err(Errno(syscall::errno::ENOSPC)) }
}

/// `mkdir` and `mkdirat`.
fn make_folder(process: &mut Process, at: u64, path: u64) -> Result<u64, Errno> {
    has_room()?;
    place(process, at, path, false)?.make_folder()?;
    Ok(0)
}

/// The last part of a path.
fn last_part(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// `unlink`, `rmdir` and `unlinkat`.
fn remove(process: &mut Process, at: u64, path: u64, of_folder: bool) -> Result<u64, Errno> {
    let text = read_path(process, path)?;
    match last_part(&text) {
        "." if of_folder => return Err(Errno(EINVAL)),
        ".." if of_folder => {
            place(process, at, path, false)?.existing()?;
            return Err(Errno(ENOTEMPTY));
        }
        _ => {}
    }
    place(process, at, path, false)?.remove(of_folder)?;
    Ok(0)
}

/// `rename`, `renameat` and `renameat2`.
fn rename(
    process: &mut Process,
    (from_at, from): (u64, u64),
    (to_at, to): (u64, u64),
    flags: u64,
) -> Result<u64, Errno> {
    if flags & !NO_REPLACE != 0 {
        return Err(Errno(EINVAL));
    }
    has_room()?;
    // "." and ".." name a folder by no name of its own, so it cannot be renamed by them.
    let is_name = |path: &str| !matches!(last_part(path), "." | "..");
    let are_names = is_name(&read_path(process, from)?) && is_name(&read_path(process, to)?);
    let old = place(process, from_at, from, false)?;
    let new = place(process, to_at, to, false)?;
    if !are_names {
        return Err(Errno(EBUSY));
    }
    old.rename(new, flags == 0)?;
    Ok(0)
}

/// `link` and `linkat`.
fn link(
    process: &mut Process,
    (from_at, from): (u64, u64),
    (to_at, to): (u64, u64),
    flags: u64,
) -> Result<u64, Errno> {
    has_room()?;
    let node = place(process, from_at, from, flags & FOLLOW != 0)?.existing()?;
    let to = place(process, to_at, to, false)?;
    match &node {
        Node::File(file) => {
            let file = file.clone();
            to.add(node)?;
            file.add_name();
            Ok(0)
        }
        Node::Link(..) => Ok(to.add(node).map(|()| 0)?),
        _ => Err(Errno(EPERM)),
    }
}

/// `symlink` and `symlinkat`.
fn make_link(process: &mut Process, target: u64, at: u64, path: u64) -> Result<u64, Errno> {
    has_room()?;
    let target = read_path(process, target)?;
    if target.is_empty() {
        return Err(Errno(ENOENT));
    }
    place(process, at, path, false)?.make_link(&target)?;
    Ok(0)
}

/// `chdir`.
fn enter(process: &mut Process, path: u64) -> Result<u64, Errno> {
    let place = place(process, HERE, path, true)?;
    let path = place.path();
    match place.existing()? {
        Node::Folder(folder) => {
            process.folder = Base { path, folder };
            Ok(0)
        }
        _ => Err(Errno(ENOTDIR)),
    }
}

/// `getcwd`.
fn folder(process: &mut Process, to: u64, bytes: u64) -> Result<u64, Errno> {
    let path: Vec<u8> = process.folder.path.bytes().chain([0]).collect();
    if !process.folder.is_there() {
        return Err(Errno(ENOENT));
    }
    if bytes < path.len() as u64 {
        return Err(Errno(ERANGE));
    }
    process.memory.write(to, &path)?;
    Ok(path.len() as u64)
}

/// `getdents64`: writes as many names as fit into the buffer.
fn list(process: &mut Process, fd: u64, to: u64, bytes: u64) -> Result<u64, Errno> {
    let open = match descriptor(process, fd)? {
        Descriptor::Folder(open) => open,
        _ => return Err(Errno(ENOTDIR)),
    };
    let mut open = open.lock();
    let mut done = 0;
    // Limits a call to a few pages.
    let bytes = bytes.min(32 << 10);
    while let Some((name, node)) = next(&open) {
        let record = record(&name, &node, open.listed + 1);
        if done + record.len() as u64 > bytes {
            if done == 0 {
                return Err(Errno(EINVAL));
            }
            break;
        }
        process.memory.write(to.saturating_add(done), &record)?;
        done += record.len() as u64;
        open.listed += 1;
        if open.listed > 2 {
            open.last = name;
        }
    }
    Ok(done)
}

/// The next entry of an open folder's list.
fn next(open: &OpenFolder) -> Option<(String, Node)> {
    match open.listed {
        0 => Some((String::from("."), Node::Folder(open.base.folder.clone()))),
        1 => {
            let parent =
                location::locate(&open.base, "..", true).and_then(|place| place.existing());
            Some((String::from(".."), parent.unwrap_or(Node::Folder(open.base.folder.clone()))))
        }
        _ => open.base.folder.next(&open.last),
    }
}

/// A `struct linux_dirent64`.
fn record(name: &str, node: &Node, next: u64) -> Vec<u8> {
    const HEAD_BYTES: usize = 19;
    let bytes = (HEAD_BYTES + name.len() + 1).next_multiple_of(8);
    let mut record = Vec::with_capacity(bytes);
    record.extend(node.number().to_le_bytes());
    record.extend(next.to_le_bytes());
    record.extend((bytes as u16).to_le_bytes());
    record.push(kind_of(node));
    record.extend(name.bytes());
    record.resize(bytes, 0);
    record
}
