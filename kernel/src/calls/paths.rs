//! Calls on files by path: opening, metadata, access.

use alloc::{format, string::String, vec, vec::Vec};

use tally_abi::syscall::{
    self,
    errno::{
        EACCES, EFAULT, EINVAL, EISDIR, ELOOP, EMFILE, ENAMETOOLONG, ENOENT, ENOTDIR, EOPNOTSUPP,
        EPERM,
    },
};

use super::{
    answer::Errno,
    files::{self, descriptor},
    stat::{self, APPEND, Info, READ_WRITE, WRITE_ONLY},
    texts,
};
use crate::{
    files::{
        inode::Inode,
        location::{self, Base, Location, MAX_PATH_BYTES},
        open::{Descriptor, OpenFile, OpenFolder},
        ramdisk,
        tree::{Device, Node},
    },
    memory::frames::FRAME_BYTES,
    task::Process,
};

/// Mask of `O_RDONLY`, `O_WRONLY` and `O_RDWR`.
const ACCESS_MODE: u64 = 3;
const CREATE: u64 = 0o100;
const EXCLUSIVE: u64 = 0o200;
const TRUNCATE: u64 = 0o1000;
/// `O_DIRECTORY`.
const FOLDER: u64 = 0o200_000;
/// `O_NOFOLLOW`.
const NO_FOLLOW: u64 = 0o400_000;
/// `O_PATH`.
const PATH_ONLY: u64 = 0o10_000_000;
/// `O_TMPFILE`, without `O_DIRECTORY`.
const UNNAMED: u64 = 0o20_000_000;
/// `AT_FDCWD`.
pub(super) const HERE: u64 = -100_i64 as u64;
/// `AT_EMPTY_PATH`.
const EMPTY_PATH: u64 = 0x1000;
/// `AT_SYMLINK_NOFOLLOW`.
pub(super) const LINK_ITSELF: u64 = 0x100;
/// `X_OK`.
const EXECUTE: u64 = 1;

pub(super) fn call(
    process: &mut Process,
    number: u64,
    arguments: [u64; 6],
) -> Option<Result<u64, Errno>> {
    let result = answer(process, number, arguments)?;
    if let Err(Errno(ENOENT)) = result {
        note_missing(process, number, arguments);
    }
    Some(result)
}

/// Notes the path of a call that asks for a file in order to read or execute it.
fn note_missing(process: &mut Process, number: u64, [a, b, ..]: [u64; 6]) {
    let path = match number {
        syscall::OPEN | syscall::STAT | syscall::LSTAT | syscall::ACCESS => a,
        syscall::OPENAT
        | syscall::NEWFSTATAT
        | syscall::STATX
        | syscall::FACCESSAT
        | syscall::FACCESSAT2 => b,
        _ => return,
    };
    if let Ok(path) = read_path(process, path) {
        process.missing.note(path);
    }
}

fn answer(
    process: &mut Process,
    number: u64,
    [a, b, c, d, e, _]: [u64; 6],
) -> Option<Result<u64, Errno>> {
    Some(match number {
        syscall::OPEN => open(process, HERE, a, b),
        syscall::CREAT => open(process, HERE, a, CREATE | TRUNCATE | WRITE_ONLY),
        syscall::OPENAT => open(process, a, b, c),
        syscall::STAT => stat_of(process, [HERE, a, b, 0]),
        syscall::LSTAT => stat_of(process, [HERE, a, b, LINK_ITSELF]),
        syscall::NEWFSTATAT => stat_of(process, [a, b, c, d]),
        syscall::STATX => statx(process, [a, b, c, e]),
        syscall::ACCESS => access(process, HERE, a, b),
        syscall::FACCESSAT | syscall::FACCESSAT2 => access(process, a, b, c),
        syscall::STATFS => find(process, HERE, a).and_then(|_| stat::write_room(process, b)),
        syscall::READLINK => read_link(process, [HERE, a, b, c]),
        syscall::READLINKAT => read_link(process, [a, b, c, d]),
        // Files have no permissions or owners.
        syscall::CHMOD | syscall::CHOWN | syscall::LCHOWN => find(process, HERE, a).map(|_| 0),
        syscall::FCHMODAT | syscall::FCHOWNAT => find(process, a, b).map(|_| 0),
        syscall::SETXATTR..=syscall::FREMOVEXATTR => no_attribute(process, number, a),
        _ => return None,
    })
}

/// The calls of extended attributes, by path, by link and by descriptor in turn: no file has any.
fn no_attribute(process: &mut Process, number: u64, a: u64) -> Result<u64, Errno> {
    match (number - syscall::SETXATTR) % 3 {
        0 => find(process, HERE, a).map(drop)?,
        1 => place(process, HERE, a, false)?.existing().map(drop)?,
        _ => descriptor(process, a).map(drop)?,
    }
    Err(Errno(EOPNOTSUPP))
}

/// The folder to which a path is relative: that of the descriptor `fd`, or the program's
/// (`AT_FDCWD`).
fn base(process: &Process, fd: u64, path: &str) -> Result<Base, Errno> {
    if fd as i32 == HERE as i32 || path.starts_with('/') {
        return Ok(process.folder.clone());
    }
    match descriptor(process, u64::from(fd as u32))? {
        Descriptor::Folder(open) => Ok(open.lock().base.clone()),
        _ => Err(Errno(ENOTDIR)),
    }
}

/// The location of the path at an address.
pub(super) fn place(
    process: &mut Process,
    fd: u64,
    path: u64,
    follows: bool,
) -> Result<Location, Errno> {
    let path = read_path(process, path)?;
    if path.is_empty() {
        return Err(Errno(ENOENT));
    }
    let base = base(process, fd, &path)?;
    Ok(location::locate(&base, &path, follows)?)
}

/// The node at the path; follows links.
pub(super) fn find(process: &mut Process, fd: u64, path: u64) -> Result<Node, Errno> {
    Ok(place(process, fd, path, true)?.existing()?)
}

/// `open` and `openat`.
fn open(process: &mut Process, at: u64, path: u64, flags: u64) -> Result<u64, Errno> {
    // Reserves the descriptor first: a call that fails must neither create nor truncate a file.
    let fd = process.files.free(0).ok_or(Errno(EMFILE))?;
    let follows = flags & NO_FOLLOW == 0 && flags & (CREATE | EXCLUSIVE) != CREATE | EXCLUSIVE;
    let place = place(process, at, path, follows)?;
    let opened = open_at(process, place, flags)?;
    process.files.put(fd, opened);
    Ok(fd)
}

fn open_at(process: &mut Process, place: Location, flags: u64) -> Result<Descriptor, Errno> {
    let (reads, writes) = match flags & ACCESS_MODE {
        _ if flags & PATH_ONLY != 0 => (false, false),
        WRITE_ONLY => (false, true),
        READ_WRITE => (true, true),
        0 => (true, false),
        _ => return Err(Errno(EINVAL)),
    };
    let path = place.path();
    let node = if flags & CREATE == 0 {
        place.existing()?
    } else if flags & EXCLUSIVE != 0 {
        place.new_file()?
    } else {
        place.file_or_new()?
    };
    match node {
        Node::Folder(_) if flags & UNNAMED != 0 && writes => {
            Ok(OpenFile::open(Inode::empty(), reads, true, false))
        }
        Node::Folder(_) if writes => Err(Errno(EISDIR)),
        Node::Folder(folder) => Ok(OpenFolder::open(Base { path, folder })),
        _ if flags & FOLDER != 0 => Err(Errno(ENOTDIR)),
        Node::File(file) => {
            if flags & TRUNCATE != 0 && writes {
                file.lock().set_len(0)?;
            }
            Ok(OpenFile::open(file, reads, writes, flags & APPEND != 0))
        }
        node => open_special(process, node, writes),
    }
}

/// Opens a node that is neither a file nor a folder.
fn open_special(process: &mut Process, node: Node, writes: bool) -> Result<Descriptor, Errno> {
    match node {
        Node::Program => {
            let file = ramdisk::file(&process.name).ok_or(Errno(ENOENT))?;
            Ok(OpenFile::open(Inode::of_ramdisk(file), true, false, false))
        }
        Node::Device(Device::Descriptor(fd)) => descriptor(process, fd),
        Node::Device(device) => Ok(Descriptor::Device(device)),
        Node::Text(_) if writes => Err(Errno(EACCES)),
        Node::Text(text) => {
            let text = texts::generate(process, text);
            let file = Inode::empty();
            file.lock().write(0, text.as_bytes());
            Ok(OpenFile::open(file, true, false, false))
        }
        // The link's target is missing, or the link may not be followed.
        Node::Link(..) | Node::File(_) | Node::Folder(_) => Err(Errno(ELOOP)),
    }
}

/// The metadata of a path, or of a descriptor if the path is empty and the flags allow it.
fn info(process: &mut Process, [fd, path, flags]: [u64; 3]) -> Result<Info, Errno> {
    // Linux permits address 0 for an empty path.
    let is_empty = path == 0 || read_path(process, path)?.is_empty();
    if is_empty && flags & EMPTY_PATH != 0 {
        if fd as i32 != HERE as i32 {
            return files::info(process, u64::from(fd as u32));
        }
        let here = location::locate(&process.folder, ".", true)?;
        return Ok(Info::of(process, &here.existing()?));
    }
    let node = place(process, fd, path, flags & LINK_ITSELF == 0)?.existing()?;
    if let (Node::Device(Device::Descriptor(fd)), 0) = (&node, flags & LINK_ITSELF) {
        return files::info(process, *fd);
    }
    Ok(Info::of(process, &node))
}

/// `stat`, `lstat` and `newfstatat`.
fn stat_of(process: &mut Process, [fd, path, to, flags]: [u64; 4]) -> Result<u64, Errno> {
    let info = info(process, [fd, path, flags])?;
    stat::write_stat(process, to, &info)
}

/// `statx`.
fn statx(process: &mut Process, [fd, path, flags, to]: [u64; 4]) -> Result<u64, Errno> {
    let info = info(process, [fd, path, flags])?;
    stat::write_statx(process, to, &info)
}

/// `access` and `faccessat`: everything may be read and written, and files, folders and the program
/// may be executed; devices and generated texts may not.
fn access(process: &mut Process, at: u64, path: u64, mode: u64) -> Result<u64, Errno> {
    let node = find(process, at, path)?;
    let may_execute = matches!(node, Node::Folder(_) | Node::File(_) | Node::Program);
    if mode & EXECUTE != 0 && !may_execute { Err(Errno(EACCES)) } else { Ok(0) }
}

/// `readlink` and `readlinkat`.
fn read_link(process: &mut Process, [at, path, to, bytes]: [u64; 4]) -> Result<u64, Errno> {
    if bytes as i32 <= 0 {
        return Err(Errno(EINVAL));
    }
    let target: Vec<u8> = match place(process, at, path, false)?.existing()? {
        Node::Link(_, target) => target.as_bytes().into(),
        Node::Program => format!("/{}", process.name).into_bytes(),
        _ => return Err(Errno(EINVAL)),
    };
    let part = &target[..target.len().min(bytes as usize)];
    process.memory.write(to, part)?;
    Ok(part.len() as u64)
}

/// Reads a path of the program, without its zero byte.
pub(super) fn read_path(process: &mut Process, address: u64) -> Result<String, Errno> {
    let mut path = vec![];
    let mut at = address;
    while path.len() <= MAX_PATH_BYTES {
        let mut part = [0; 64];
        let room = (FRAME_BYTES - at % FRAME_BYTES).min(part.len() as u64) as usize;
        let part = &mut part[..room];
        process.memory.read(at, part)?;
        if let Some(end) = part.iter().position(|byte| *byte == 0) {
            path.extend_from_slice(&part[..end]);
            return String::from_utf8(path).map_err(|_| Errno(EPERM));
        }
        path.extend_from_slice(part);
        at = at.checked_add(room as u64).ok_or(Errno(EFAULT))?;
    }
    Err(Errno(ENAMETOOLONG))
}
