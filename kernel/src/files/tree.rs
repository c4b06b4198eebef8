//! The tree of files: folders, files, links, devices, and texts that are generated when a program
//! opens them.
//!
//! The tree has the ramdisk's files, a few folders and texts that programs expect, and the files
//! that programs create. One lock guards all folders.

use alloc::{string::String, sync::Arc};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spin::{Mutex, MutexGuard, Once};

use super::{
    inode::{FileRef, new_number},
    names::Names,
};

/// Maximum number of names in the tree: they take memory of the kernel.
const MAX_NAMES: u64 = 16 << 10;

static ROOT: Once<Arc<Folder>> = Once::new();
static LOCK: Mutex<()> = Mutex::new(());
/// Number of names in all folders. Relaxed order is enough: nothing but the number depends on it.
static NAMES: AtomicU64 = AtomicU64::new(0);

/// A node, to which a name in a folder refers.
#[derive(Clone)]
pub enum Node {
    /// A file.
    File(FileRef),
    /// A folder.
    Folder(Arc<Folder>),
    /// A symbolic link: its inode number and its target.
    Link(u64, Arc<str>),
    /// The file of the program that opens it.
    Program,
    /// A device.
    Device(Device),
    /// A text about the program that opens it, or about the machine.
    Text(Text),
}

/// A device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// Reads are empty, writes are discarded.
    Null,
    /// Reads are zeros, writes are discarded.
    Zero,
    /// Reads are random numbers, writes are discarded.
    Random,
    /// The opening program's descriptor of this number.
    Descriptor(u64),
}

/// A text that is generated when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// `/proc/self/maps`.
    Maps,
    /// `/proc/self/stat`.
    Stat,
    /// `/proc/self/statm`.
    Statm,
    /// `/proc/self/status`.
    Status,
    /// `/proc/self/cmdline`.
    CommandLine,
    /// `/proc/self/environ`.
    Environment,
    /// `/proc/self/comm`.
    Name,
    /// `/proc/cpuinfo`.
    Processors,
    /// `/proc/meminfo`.
    Memory,
    /// `/proc/uptime`.
    Uptime,
    /// `/proc/loadavg`.
    Load,
    /// `/proc/stat`.
    Machine,
    /// `/sys/devices/system/cpu/online`.
    Online,
    /// `/sys/devices/system/cpu/possible`.
    Possible,
}

/// A folder.
pub struct Folder {
    /// Inode number.
    pub number: u64,
    /// Whether the folder has lost its name: then nothing can be added to it, although a program
    /// may still have it open or as its working folder. Changes only while the tree is locked.
    is_removed: AtomicBool,
    nodes: Mutex<Names<Node>>,
}

/// Reason why there is no node at a path, or why the tree cannot change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// The name does not exist.
    Missing,
    /// A part of the path is not a folder.
    NotFolder,
    /// The path is a folder.
    IsFolder,
    /// The name exists.
    Exists,
    /// The folder is not empty.
    NotEmpty,
    /// There are too many links in the path.
    Links,
    /// A name or the path is too long.
    TooLong,
    /// A folder cannot be moved into itself; `.` and `..` cannot be removed.
    Invalid,
    /// Another program has changed the name in the meantime: the path must be walked again.
    Changed,
    /// The tree has no room for more names.
    Full,
    /// The kernel owns the name: a device or a generated text.
    Fixed,
}

impl Folder {
    pub(super) fn new() -> Arc<Folder> {
        Arc::new(Folder {
            number: new_number(),
            is_removed: AtomicBool::new(false),
            nodes: Mutex::new(Names::new()),
        })
    }

    pub(super) fn get(&self, name: &str) -> Option<Node> {
        self.nodes.lock().get(name).cloned()
    }

    /// The first name after `name`, and its node.
    pub fn next(&self, name: &str) -> Option<(String, Node)> {
        let nodes = self.nodes.lock();
        let (name, node) = nodes.next(name)?;
        Some((name.clone(), node.clone()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.lock().is_empty()
    }

    /// Fails if the folder was removed.
    pub(super) fn check_there(&self) -> Result<(), PathError> {
        // Relaxed order: the caller has locked the tree.
        if self.is_removed.load(Ordering::Relaxed) { Err(PathError::Missing) } else { Ok(()) }
    }

    /// Adds a name that the folder does not have.
    pub(super) fn add(&self, name: &str, node: Node) -> Result<(), PathError> {
        self.check_there()?;
        let fits = |names: u64| (names < MAX_NAMES).then_some(names + 1);
        NAMES
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map_err(|_| PathError::Full)?;
        self.nodes.lock().insert(name, node);
        Ok(())
    }

    /// Adds a name that the kernel owns.
    fn count(&self, name: &str, node: Node) {
        NAMES.fetch_add(1, Ordering::Relaxed);
        self.nodes.lock().insert(name, node);
    }

    /// Removes a name that the folder has.
    pub(super) fn remove(&self, name: &str) -> Option<Node> {
        let removed = self.nodes.lock().remove(name)?;
        NAMES.fetch_sub(1, Ordering::Relaxed);
        Some(removed)
    }

    /// Removes a name for good, and counts one name less of its node.
    pub(super) fn unlink(&self, name: &str) {
        match self.remove(name) {
            Some(Node::File(file)) => file.remove_name(),
            Some(Node::Folder(folder)) => folder.is_removed.store(true, Ordering::Relaxed),
            _ => {}
        }
    }
}

impl Node {
    /// Returns whether two names refer to the same file or folder.
    pub(super) fn is(&self, other: &Node) -> bool {
        match (self, other) {
            (Node::File(a), Node::File(b)) => Arc::ptr_eq(a, b),
            (Node::Folder(a), Node::Folder(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Inode number.
    pub fn number(&self) -> u64 {
        match self {
            Node::File(file) => file.number,
            Node::Folder(folder) => folder.number,
            Node::Link(number, _) => *number,
            Node::Program | Node::Device(_) | Node::Text(_) => 1,
        }
    }
}

/// The root of the tree.
pub(super) fn root() -> &'static Arc<Folder> {
    ROOT.call_once(Folder::new)
}

/// Locks all folders.
pub(super) fn lock() -> MutexGuard<'static, ()> {
    LOCK.lock()
}

/// Adds a node that the kernel owns, with the folders above it, unless the path exists.
pub(super) fn plant(path: &str, node: Node) {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut at = root().clone();
    for folder in folders.split('/').filter(|part| !part.is_empty()) {
        let next = at.get(folder).unwrap_or_else(|| {
            let new = Node::Folder(Folder::new());
            at.count(folder, new.clone());
            new
        });
        match next {
            Node::Folder(next) => at = next,
            _ => return log::error!("{path}: {folder} is a file of the ramdisk too"),
        }
    }
    match name {
        "" => {}
        _ if at.get(name).is_some() => {}
        _ => at.count(name, node),
    }
}

/// Adds an empty folder that the kernel owns.
pub(super) fn plant_folder(path: &str) {
    plant(&alloc::format!("{path}/"), Node::Device(Device::Null));
}
