//! Calls on descriptors, except those that transfer bytes.

use tally_abi::syscall::{
    self,
    errno::{EBADF, EINVAL, EISDIR, EMFILE, ENODEV, ENOSPC, ENOTTY, ESPIPE},
};

use super::{
    answer::Errno,
    stat::{self, APPEND, Info, NONBLOCK, access_flags},
};
use crate::{
    files::{
        inode::Inode,
        open::{Descriptor, MAX_DESCRIPTORS, OpenFile},
        streams::{CHANNEL_BYTES, Kind, Stream},
    },
    memory::{frames::OutOfMemory, heap},
    task::Process,
};

// Commands of `fcntl`.
const DUPLICATE: u64 = 0;
const GET_CLOSING: u64 = 1;
const SET_CLOSING: u64 = 2;
const GET_FLAGS: u64 = 3;
const SET_FLAGS: u64 = 4;
const DUPLICATE_CLOSING: u64 = 1030;
const SET_PIPE_BYTES: u64 = 1031;
const GET_PIPE_BYTES: u64 = 1032;
/// `FIONREAD` and `FIONBIO`, of `ioctl`.
const BYTES_TO_READ: u64 = 0x541b;
const SET_NONBLOCKING: u64 = 0x5421;
/// `FIOCLEX` and `FIONCLEX`, without effect: no program executes another.
const CLOSING: [u64; 2] = [0x5451, 0x5450];
/// `SEEK_DATA` and `SEEK_HOLE`: files have no holes.
const SEEK_DATA: u64 = 3;
const SEEK_HOLE: u64 = 4;
/// `FALLOC_FL_KEEP_SIZE`.
const KEEP_SIZE: u64 = 1;

impl From<OutOfMemory> for Errno {
    fn from(_: OutOfMemory) -> Self {
        Errno(ENOSPC)
    }
}

pub(super) fn call(
    process: &mut Process,
    number: u64,
    [a, b, c, d, ..]: [u64; 6],
) -> Option<Result<u64, Errno>> {
    Some(match number {
        syscall::CLOSE => close(process, a),
        syscall::CLOSE_RANGE if a > b || c & !4 != 0 => Err(Errno(EINVAL)),
        syscall::CLOSE_RANGE => {
            // CLOSE_RANGE_CLOEXEC closes nothing.
            let last = b.min(MAX_DESCRIPTORS - 1);
            (a..=last).filter(|_| c == 0).for_each(|fd| _ = process.files.remove(fd));
            Ok(0)
        }
        syscall::FSTAT => info(process, a).and_then(|info| stat::write_stat(process, b, &info)),
        syscall::FSTATFS => descriptor(process, a).and_then(|_| stat::write_room(process, b)),
        syscall::LSEEK => seek(process, a, b as i64, c),
        syscall::FSYNC | syscall::FDATASYNC | syscall::SYNC_FILE_RANGE => {
            match descriptor(process, a) {
                Ok(Descriptor::File(_) | Descriptor::Folder(_)) => Ok(0),
                other => other.and(Err(Errno(EINVAL))),
            }
        }
        syscall::SYNC => Ok(0),
        syscall::SYNCFS => descriptor(process, a).map(|_| 0),
        syscall::FADVISE64 => match descriptor(process, a) {
            Ok(Descriptor::Stream(_) | Descriptor::Output(_)) => Err(Errno(ESPIPE)),
            other => other.map(|_| 0),
        },
        syscall::DUP => duplicate(process, a, 0),
        syscall::DUP3 if a == b => Err(Errno(EINVAL)),
        syscall::DUP2 | syscall::DUP3 => duplicate_to(process, a, b),
        syscall::IOCTL => io_control(process, a, b, c),
        // Files have no permissions and no owners.
        syscall::FCHMOD | syscall::FCHOWN => descriptor(process, a).map(|_| 0),
        syscall::FALLOCATE => allocate(process, a, b, [c, d]),
        syscall::MEMFD_CREATE => {
            let open = OpenFile::open(Inode::empty(), true, true, false);
            add(process, open)
        }
        _ => return None,
    })
}

/// The process's descriptor with this number.
pub(super) fn descriptor(process: &Process, fd: u64) -> Result<Descriptor, Errno> {
    process.files.get(fd).cloned().ok_or(Errno(EBADF))
}

/// Adds a descriptor. Returns its number.
pub(super) fn add(process: &mut Process, new: Descriptor) -> Result<u64, Errno> {
    if !heap::has_room() {
        return Err(Errno(ENOSPC));
    }
    let fd = process.files.free(0).ok_or(Errno(EMFILE))?;
    process.files.put(fd, new);
    Ok(fd)
}

/// The metadata that `fstat` writes.
pub(super) fn info(process: &Process, fd: u64) -> Result<Info, Errno> {
    Ok(match descriptor(process, fd)? {
        Descriptor::File(open) => Info::of_file(&open.lock().file),
        Descriptor::Folder(open) => {
            let folder = open.lock().base.folder.clone();
            Info::of(process, &crate::files::tree::Node::Folder(folder))
        }
        Descriptor::Device(device) => Info::of_device(device),
        Descriptor::Output(number) => Info::of_output(number),
        Descriptor::Stream(stream) => match &stream.kind {
            Kind::Channel(channel) if channel.is_socket => Info::of_socket(),
            Kind::Channel(_) => Info::of_pipe(),
            _ => Info::of_object(),
        },
        Descriptor::Epoll(_) => Info::of_object(),
    })
}

fn close(process: &mut Process, fd: u64) -> Result<u64, Errno> {
    if process.files.remove(fd) { Ok(0) } else { Err(Errno(EBADF)) }
}

fn seek(process: &mut Process, fd: u64, offset: i64, whence: u64) -> Result<u64, Errno> {
    let open = match descriptor(process, fd)? {
        Descriptor::Device(_) => return Ok(0),
        Descriptor::Output(_) | Descriptor::Stream(_) | Descriptor::Epoll(_) => {
            return Err(Errno(ESPIPE));
        }
        Descriptor::Folder(open) => {
            // A folder's position can only be set to the beginning or to the present position.
            let mut open = open.lock();
            return match (offset, whence) {
                (0, 0) => {
                    (open.listed, open.last) = (0, Default::default());
                    Ok(0)
                }
                (0, 1) => Ok(open.listed),
                (offset, 0) if offset as u64 == open.listed => Ok(open.listed),
                _ => Err(Errno(EINVAL)),
            };
        }
        Descriptor::File(open) => open,
    };
    let mut open = open.lock();
    let len = open.file.lock().len();
    let base = match whence {
        0 => 0,
        1 => open.position,
        2 => len,
        SEEK_DATA | SEEK_HOLE => {
            let inside = u64::try_from(offset).is_ok_and(|offset| offset < len);
            let position = if whence == SEEK_DATA { offset as u64 } else { len };
            open.position = if inside { position } else { open.position };
            return if inside { Ok(position) } else { Err(Errno(syscall::errno::ENXIO)) };
        }
        _ => return Err(Errno(EINVAL)),
    };
    let position = (base as i64).checked_add(offset).filter(|p| *p >= 0).ok_or(Errno(EINVAL))?;
    open.position = position as u64;
    Ok(open.position)
}

/// `dup2` and `dup3`.
fn duplicate_to(process: &mut Process, fd: u64, to: u64) -> Result<u64, Errno> {
    let copy = descriptor(process, fd)?;
    if fd == to || process.files.put(to, copy) { Ok(to) } else { Err(Errno(EBADF)) }
}

/// `dup`, and `fcntl`'s `F_DUPFD`.
fn duplicate(process: &mut Process, fd: u64, from: u64) -> Result<u64, Errno> {
    let copy = descriptor(process, fd)?;
    let to = process.files.free(from).ok_or(Errno(EMFILE))?;
    process.files.put(to, copy);
    Ok(to)
}

/// `ioctl`: no descriptor is a terminal.
fn io_control(process: &mut Process, fd: u64, request: u64, argument: u64) -> Result<u64, Errno> {
    let open = descriptor(process, fd)?;
    match (request as u32 as u64, open) {
        (request, _) if CLOSING.contains(&request) => Ok(0),
        (SET_NONBLOCKING, open) => {
            let mut word = [0; 4];
            process.memory.read(argument, &mut word)?;
            if let Descriptor::Stream(stream) = open {
                stream.set_nonblocking(word != [0; 4]);
            }
            Ok(0)
        }
        (BYTES_TO_READ, Descriptor::Stream(stream)) => match &stream.kind {
            Kind::Channel(channel) => {
                process.memory.write(argument, &(channel.len() as u32).to_le_bytes())?;
                Ok(0)
            }
            _ => Err(Errno(ENOTTY)),
        },
        (BYTES_TO_READ, Descriptor::File(open)) => {
            let open = open.lock();
            let rest = open.file.lock().len().saturating_sub(open.position) as u32;
            process.memory.write(argument, &rest.to_le_bytes())?;
            Ok(0)
        }
        _ => Err(Errno(ENOTTY)),
    }
}

/// `fallocate`: extends the file. All pages of a file are allocated anyway.
fn allocate(process: &mut Process, fd: u64, mode: u64, range: [u64; 2]) -> Result<u64, Errno> {
    let [offset, bytes] = range;
    let open = match descriptor(process, fd)? {
        Descriptor::File(open) => open,
        Descriptor::Folder(_) => return Err(Errno(EISDIR)),
        Descriptor::Stream(_) => return Err(Errno(ESPIPE)),
        _ => return Err(Errno(ENODEV)),
    };
    let open = open.lock();
    let end = offset.checked_add(bytes).filter(|end| *end <= i64::MAX as u64 && bytes > 0);
    let end = end.ok_or(Errno(EINVAL))?;
    if mode & !KEEP_SIZE != 0 {
        return Err(Errno(syscall::errno::EOPNOTSUPP));
    }
    if !open.writes {
        return Err(Errno(EBADF));
    }
    let mut content = open.file.change();
    if end > content.len() {
        if !content.has_room(end) {
            return Err(Errno(ENOSPC));
        }
        if mode & KEEP_SIZE == 0 {
            content.set_len(end)?;
        }
    }
    Ok(0)
}

/// `fcntl` without its locks. `FD_CLOEXEC` has no effect, because no program executes another.
pub(super) fn control(
    process: &mut Process,
    fd: u64,
    what: u64,
    argument: u64,
) -> Result<u64, Errno> {
    let open = descriptor(process, fd)?;
    match what {
        DUPLICATE | DUPLICATE_CLOSING if argument >= process.files.limit => Err(Errno(EINVAL)),
        DUPLICATE | DUPLICATE_CLOSING => duplicate(process, fd, argument),
        GET_CLOSING | SET_CLOSING => Ok(0),
        SET_FLAGS => {
            match open {
                Descriptor::File(open) => open.lock().appends = argument & APPEND != 0,
                Descriptor::Stream(stream) => stream.set_nonblocking(argument & NONBLOCK != 0),
                _ => {}
            }
            Ok(0)
        }
        GET_FLAGS => Ok(flags(&open)),
        GET_PIPE_BYTES | SET_PIPE_BYTES => match open {
            Descriptor::Stream(stream) if matches!(stream.kind, Kind::Channel(_)) => {
                Ok(CHANNEL_BYTES as u64)
            }
            _ => Err(Errno(EBADF)),
        },
        _ => Err(Errno(EINVAL)),
    }
}

/// The flags of `open` that correspond to a descriptor.
fn flags(open: &Descriptor) -> u64 {
    match open {
        Descriptor::File(open) => {
            let open = open.lock();
            access_flags(open.reads, open.writes) | if open.appends { APPEND } else { 0 }
        }
        Descriptor::Device(_) => access_flags(true, true),
        Descriptor::Output(_) => access_flags(false, true),
        Descriptor::Folder(_) | Descriptor::Epoll(_) => 0,
        Descriptor::Stream(stream) => flags_of_stream(stream),
    }
}

fn flags_of_stream(stream: &Stream) -> u64 {
    let (reads, writes) = match &stream.kind {
        Kind::Channel(channel) => channel.directions(),
        Kind::Event(_) | Kind::Timer(_) | Kind::Signals(_) => (true, true),
    };
    access_flags(reads, writes) | if stream.is_nonblocking() { NONBLOCK } else { 0 }
}
