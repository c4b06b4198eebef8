//! `struct stat`, `struct statx`, `struct statfs`, and the flags of `open`, for calls by path and
//! by descriptor.

use super::answer::Errno;
use crate::{
    files::{
        inode::Inode,
        ramdisk,
        tree::{Device, Node},
    },
    machine::clock,
    memory::frames::{self, FRAME_BYTES},
    task::Process,
};

/// `S_IFREG`, readable and writable by all.
const REGULAR_FILE: u32 = 0o100_666;
/// `S_IFREG`, readable by all.
const TEXT: u32 = 0o100_444;
/// `S_IFDIR`, with all permissions for all.
const FOLDER: u32 = 0o040_777;
/// `S_IFLNK`, with all permissions for all.
const LINK: u32 = 0o120_777;
/// `S_IFCHR`, readable and writable by all.
const CHARACTER_DEVICE: u32 = 0o020_666;
/// `S_IFIFO`, readable and writable by its owner.
const PIPE: u32 = 0o010_600;
/// `S_IFSOCK`, with all permissions for all.
const SOCKET: u32 = 0o140_777;
/// An object without a file type: readable and writable by its owner.
const OBJECT: u32 = 0o600;
/// Inode number of output 0. It and the minor numbers of devices are below those of files.
const FIRST_OUTPUT: u64 = 16;
/// Number of the device that contains files and generated texts.
const DEVICE: u64 = 1;
/// `O_WRONLY`.
pub(super) const WRITE_ONLY: u64 = 1;
/// `O_RDWR`.
pub(super) const READ_WRITE: u64 = 2;
/// `O_APPEND`.
pub(super) const APPEND: u64 = 0o2000;
/// `O_NONBLOCK`.
pub(super) const NONBLOCK: u64 = 0o4000;
/// `TMPFS_MAGIC`.
const TMPFS: u64 = 0x0102_1994;
/// `STATX_BASIC_STATS`.
const BASIC: u32 = 0x7ff;

/// `O_RDONLY`, `O_WRONLY` or `O_RDWR` for a descriptor.
pub(super) fn access_flags(reads: bool, writes: bool) -> u64 {
    match (reads, writes) {
        (true, true) => READ_WRITE,
        (false, true) => WRITE_ONLY,
        _ => 0,
    }
}

/// Metadata of a file.
pub(super) struct Info {
    number: u64,
    mode: u32,
    bytes: u64,
    links: u64,
    /// Date of the last change, in nanoseconds since 1970; 0 for what is no file.
    modified_ns: u64,
    /// The device's number, for a device file.
    device: u64,
}

impl Info {
    /// Metadata of a node of the tree, as the program sees it.
    pub(super) fn of(process: &Process, node: &Node) -> Info {
        let number = node.number();
        let info =
            |mode, bytes, links| Info { number, mode, bytes, links, modified_ns: 0, device: 0 };
        match node {
            Node::File(file) => Info::of_file(file),
            Node::Folder(_) => info(FOLDER, 0, 2),
            Node::Link(_, target) => info(LINK, target.len() as u64, 1),
            Node::Program => {
                let file = ramdisk::file(&process.name).unwrap_or_default();
                info(REGULAR_FILE | 0o111, file.len() as u64, 1)
            }
            Node::Device(device) => Info::of_device(*device),
            Node::Text(_) => info(TEXT, 0, 1),
        }
    }

    /// Metadata of a file.
    pub(super) fn of_file(file: &Inode) -> Info {
        let (number, bytes, links) = (file.number, file.lock().len(), file.names());
        let modified_ns = file.modified_ns();
        Info { number, mode: REGULAR_FILE, bytes, links, modified_ns, device: 0 }
    }

    /// Metadata of a device, with Linux's numbers.
    pub(super) fn of_device(device: Device) -> Info {
        let minor = match device {
            Device::Null | Device::Descriptor(_) => 3,
            Device::Zero => 5,
            Device::Random => 9,
        };
        let mode = CHARACTER_DEVICE;
        Info { number: minor, mode, device: 1 << 8 | minor, ..Info::of_pipe() }
    }

    /// Metadata of the output of this number: a pipe's, which differs from the null device, as
    /// programs print nothing there.
    pub(super) fn of_output(number: u8) -> Info {
        Info { number: FIRST_OUTPUT + u64::from(number), ..Info::of_pipe() }
    }

    /// Metadata of a pipe.
    pub(super) fn of_pipe() -> Info {
        Info { number: 1, mode: PIPE, bytes: 0, links: 1, modified_ns: 0, device: 0 }
    }

    /// Metadata of a socket.
    pub(super) fn of_socket() -> Info {
        Info { mode: SOCKET, ..Info::of_pipe() }
    }

    /// Metadata of an object without a file type.
    pub(super) fn of_object() -> Info {
        Info { mode: OBJECT, ..Info::of_pipe() }
    }

    fn blocks(&self) -> u64 {
        self.bytes.div_ceil(FRAME_BYTES) * (FRAME_BYTES / 512)
    }
}

/// `DT_…` of a node, the type bits of its mode.
pub(super) fn kind_of(node: &Node) -> u8 {
    let mode = match node {
        Node::File(_) | Node::Text(_) => REGULAR_FILE,
        Node::Folder(_) => FOLDER,
        Node::Link(..) | Node::Program => LINK,
        Node::Device(_) => CHARACTER_DEVICE,
    };
    (mode >> 12) as u8
}

/// Writes Linux's `struct stat` for x86-64, 144 bytes; fields without a meaning for Tally's files
/// are 0.
pub(super) fn write_stat(process: &mut Process, to: u64, info: &Info) -> Result<u64, Errno> {
    let mut stat = [0; 144];
    let mut put = |at: usize, value: u64| stat[at..at + 8].copy_from_slice(&value.to_le_bytes());
    put(0, DEVICE);
    put(8, info.number);
    put(16, info.links);
    put(24, info.mode.into()); // and user 0
    put(40, info.device);
    put(48, info.bytes);
    put(56, FRAME_BYTES);
    put(64, info.blocks());
    let [seconds, nanoseconds] = clock::to_timespec(info.modified_ns);
    for at in [72, 88, 104] {
        put(at, seconds);
        put(at + 8, nanoseconds);
    }
    process.memory.write(to, &stat)?;
    Ok(0)
}

/// Writes Linux's `struct statx`, 256 bytes.
pub(super) fn write_statx(process: &mut Process, to: u64, info: &Info) -> Result<u64, Errno> {
    let mut stat = [0; 256];
    let mut put = |at: usize, bytes: &[u8]| stat[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &BASIC.to_le_bytes());
    put(4, &(FRAME_BYTES as u32).to_le_bytes());
    put(16, &(info.links as u32).to_le_bytes());
    put(28, &(info.mode as u16).to_le_bytes());
    put(32, &info.number.to_le_bytes());
    put(40, &info.bytes.to_le_bytes());
    put(48, &info.blocks().to_le_bytes());
    // The dates of access, birth, change of the metadata and change of the content are one.
    let [seconds, nanoseconds] = clock::to_timespec(info.modified_ns);
    for at in [64, 80, 96, 112] {
        put(at, &seconds.to_le_bytes());
        put(at + 8, &(nanoseconds as u32).to_le_bytes());
    }
    put(128, &((info.device >> 8) as u32).to_le_bytes());
    put(132, &((info.device & 0xff) as u32).to_le_bytes());
    put(140, &(DEVICE as u32).to_le_bytes());
    process.memory.write(to, &stat)?;
    Ok(0)
}

/// `statfs` and `fstatfs`: files are in memory and may take up to half of it.
pub(super) fn write_room(process: &mut Process, to: u64) -> Result<u64, Errno> {
    let memory = frames::usage();
    let (all, free) = (memory.all / 2 / FRAME_BYTES, memory.free / 2 / FRAME_BYTES);
    let names = 16 << 10;
    let words = [TMPFS, FRAME_BYTES, all, free, free, names, names, 0, 255, FRAME_BYTES];
    process.memory.write_words(to, words)?;
    process.memory.write_words(to + 80, [0; 5])?;
    Ok(0)
}
