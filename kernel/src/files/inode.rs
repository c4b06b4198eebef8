//! A file: its content, its names, and the locks on it.

use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicU64, Ordering};

use spin::{Mutex, MutexGuard};

use super::{content::Content, locks::Locks, pages::Pages, ramdisk};
use crate::machine::clock;

/// Highest inode number. The first ones are those of devices and outputs. Relaxed order is enough:
/// each number is given once.
static LAST: AtomicU64 = AtomicU64::new(64);

/// A new inode number.
pub(super) fn new_number() -> u64 {
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// A reference to a file, independent of its names.
pub type FileRef = Arc<Inode>;

/// A file. Without a name it exists while it is open or mapped.
pub struct Inode {
    /// Inode number, by which programs distinguish files.
    pub number: u64,
    /// Number of names. Relaxed order is enough: nothing but the number depends on it.
    names: AtomicU64,
    content: Mutex<Content>,
    /// Date of the last change, in nanoseconds since 1970. Relaxed order is enough: nothing but the
    /// date depends on it.
    modified: AtomicU64,
    /// Content that it had at the start, if it is a file of the ramdisk.
    initial: Option<&'static [u8]>,
    /// The locks that programs have on it.
    pub locks: Mutex<Locks>,
}

impl Inode {
    fn new(content: Content, modified: u64) -> FileRef {
        let initial = match content {
            Content::Ramdisk(bytes) => Some(bytes),
            Content::Written(_) => None,
        };
        let (names, locks) = (AtomicU64::new(1), Mutex::new(Vec::new()));
        let (number, content) = (new_number(), Mutex::new(content));
        let modified = AtomicU64::new(modified);
        Arc::new(Inode { number, names, content, modified, initial, locks })
    }

    /// A file of the ramdisk, with the date that it has there.
    pub fn of_ramdisk(bytes: &'static [u8]) -> FileRef {
        Inode::new(Content::Ramdisk(bytes), ramdisk::modified_ns(bytes))
    }

    /// A new, empty file.
    pub fn empty() -> FileRef {
        Inode::new(Content::Written(Pages::default()), clock::date_ns())
    }

    /// The offset in the ramdisk of the content that it had at the start, if it is a file of the
    /// ramdisk.
    pub fn ramdisk_offset(&self) -> Option<u64> {
        self.initial.map(ramdisk::offset)
    }

    /// Locks the content.
    pub fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock()
    }

    /// Locks the content for a change, which gets the present date.
    pub fn change(&self) -> MutexGuard<'_, Content> {
        self.set_modified_ns(clock::date_ns());
        self.content.lock()
    }

    /// Date of the last change, in nanoseconds since 1970.
    pub fn modified_ns(&self) -> u64 {
        self.modified.load(Ordering::Relaxed)
    }

    /// Sets the date of the last change, in nanoseconds since 1970.
    pub fn set_modified_ns(&self, date: u64) {
        self.modified.store(date, Ordering::Relaxed);
    }

    /// Number of names.
    pub fn names(&self) -> u64 {
        self.names.load(Ordering::Relaxed)
    }

    /// Counts a new name.
    pub fn add_name(&self) {
        self.names.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a removed name.
    pub fn remove_name(&self) {
        self.names.fetch_sub(1, Ordering::Relaxed);
    }
}
