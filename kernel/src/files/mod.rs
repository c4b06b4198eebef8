//! Files: the ramdisk's, and those that programs create, which stay in memory until the machine
//! ends.
//!
//! There are no folders: a path is a name, and `/tmp/a`, `./tmp/a` and `tmp/a` are one file. A file
//! without a name exists while it is open. A page of a ramdisk file is copied when it is first
//! written to; the ramdisk does not change.

mod mapping;
pub mod open;
mod pages;
pub mod ramdisk;

use alloc::{collections::BTreeMap, string::String, sync::Arc};
use core::sync::atomic::{AtomicU64, Ordering};

use spin::{Mutex, MutexGuard};

pub use self::mapping::map_file;
use self::{pages::Pages, ramdisk::plain};
use crate::memory::frames::OutOfMemory;

/// The most names of files that were opened or created: they take memory of the kernel's.
const MAX_NAMES: usize = 1024;

/// Files that were opened or created, by name; none for a ramdisk file that was removed.
static NAMED: Mutex<Names> = Mutex::new(BTreeMap::new());
type Names = BTreeMap<String, Option<FileRef>>;

/// The highest inode number. Relaxed order is enough: each number is given once.
static LAST: AtomicU64 = AtomicU64::new(0);

/// A reference to a file, independent of its name.
pub type FileRef = Arc<Inode>;

/// A file: its number and content.
pub struct Inode {
    /// Its number, from 1, by which programs distinguish files.
    pub number: u64,
    content: Mutex<Content>,
}

impl Inode {
    fn new(content: Content) -> FileRef {
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Arc::new(Inode { number, content: Mutex::new(content) })
    }

    /// Locks its content.
    pub fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock()
    }
}

/// A file's content.
pub enum Content {
    /// The ramdisk's, unchanged.
    Ramdisk(&'static [u8]),
    /// Written by programs.
    Written(Pages),
}

impl Content {
    /// Its length, in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Content::Ramdisk(bytes) => bytes.len() as u64,
            Content::Written(pages) => pages.len(),
        }
    }

    /// The bytes from `at` on that are contiguous in memory; none at its end.
    pub fn piece(&self, at: u64) -> &[u8] {
        match self {
            Content::Ramdisk(bytes) => bytes.get(at as usize..).unwrap_or_default(),
            Content::Written(pages) => pages.piece(at),
        }
    }

    /// Writes bytes at `at`, as far as there is memory for them. Returns how many. The bytes
    /// between its end and `at` become zeros.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> usize {
        self.pages().map_or(0, |pages| pages.write(at, bytes))
    }

    /// Truncates it to `len` bytes, or extends it with zeros.
    ///
    /// # Errors
    /// No memory is left.
    pub fn set_len(&mut self, len: u64) -> Result<(), OutOfMemory> {
        if len == 0 && matches!(self, Content::Ramdisk(_)) {
            *self = Content::Written(Pages::default());
        }
        self.pages()?.set_len(len)
    }

    /// Returns whether there is memory for a length of `len` bytes.
    pub fn has_room(&self, len: u64) -> bool {
        match self {
            Content::Ramdisk(bytes) => {
                Pages::of_ramdisk(bytes).is_ok_and(|pages| pages.has_room(len))
            }
            Content::Written(pages) => pages.has_room(len),
        }
    }

    /// Its pages, of which a ramdisk file's are copied as they are written to.
    pub(super) fn pages(&mut self) -> Result<&mut Pages, OutOfMemory> {
        if let Content::Ramdisk(bytes) = *self {
            *self = Content::Written(Pages::of_ramdisk(bytes)?);
        }
        match self {
            Content::Written(pages) => Ok(pages),
            Content::Ramdisk(_) => unreachable!("it was copied above"),
        }
    }
}

/// The file of that name.
pub fn find(path: &str) -> Option<FileRef> {
    find_in(&mut NAMED.lock(), plain(path))
}

fn find_in(named: &mut Names, name: &str) -> Option<FileRef> {
    if let Some(known) = named.get(name) {
        return known.clone();
    }
    let file = Inode::new(Content::Ramdisk(ramdisk::file(name)?));
    named.insert(name.into(), Some(file.clone()));
    Some(file)
}

/// The file of that name, or a new empty one; none if it exists and `only_new` is set.
///
/// # Errors
/// There are too many names.
pub fn find_or_create(path: &str, only_new: bool) -> Result<Option<FileRef>, OutOfMemory> {
    let mut named = NAMED.lock();
    let name = plain(path);
    if let Some(file) = find_in(&mut named, name) {
        return Ok(Some(file).filter(|_| !only_new));
    }
    if named.len() >= MAX_NAMES {
        return Err(OutOfMemory);
    }
    let file = Inode::new(Content::Written(Pages::default()));
    named.insert(name.into(), Some(file.clone()));
    Ok(Some(file))
}

/// Removes a name.
fn remove_in(named: &mut Names, name: &str) {
    match ramdisk::file(name) {
        Some(_) => named.insert(name.into(), None),
        None => named.remove(name).flatten().map(Some),
    };
}

/// Removes a file's name. Returns whether there was a file of that name.
pub fn remove(path: &str) -> bool {
    let mut named = NAMED.lock();
    let name = plain(path);
    let is_there = find_in(&mut named, name).is_some();
    if is_there {
        remove_in(&mut named, name);
    }
    is_there
}

/// Renames a file, over any file of the new name. Returns whether there was a file of the old name.
///
/// # Errors
/// There are too many names.
pub fn rename(from: &str, to: &str) -> Result<bool, OutOfMemory> {
    let mut named = NAMED.lock();
    let (from, to) = (plain(from), plain(to));
    let file = find_in(&mut named, from);
    let is_there = file.is_some();
    if is_there && from != to {
        // Besides the new name, a removed ramdisk file keeps an entry for the old one.
        if named.len() >= MAX_NAMES && !named.contains_key(to) {
            return Err(OutOfMemory);
        }
        named.insert(to.into(), file);
        remove_in(&mut named, from);
    }
    Ok(is_there)
}
