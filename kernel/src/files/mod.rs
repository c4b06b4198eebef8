//! Files: the ramdisk's, and those that programs make, in memory until the machine ends.
//!
//! A path is a name: folders are not looked at, and `/tmp/a`, `./tmp/a` and `tmp/a` are one file. A
//! file that has lost its name lives on while it is open. A file of the ramdisk that is written to
//! becomes a copy in memory; the ramdisk stays what it is.

pub mod open;
mod pages;
pub mod ramdisk;

use alloc::{collections::BTreeMap, string::String, sync::Arc};
use core::sync::atomic::{AtomicU64, Ordering};

use spin::{Mutex, MutexGuard};

use self::{pages::Pages, ramdisk::plain};
use crate::memory::frames::OutOfMemory;

/// The most names of files that were opened or made: they take memory of the kernel's.
const MAX_NAMES: usize = 1024;

/// Files that were opened or made, by name; none where one of the ramdisk's was removed.
static NAMED: Mutex<Names> = Mutex::new(BTreeMap::new());
type Names = BTreeMap<String, Option<File>>;

/// The highest number that a file was given. Relaxed order is enough: each is given once.
static LAST: AtomicU64 = AtomicU64::new(0);

/// A file, under whatever name, or under none any more.
pub type File = Arc<Inode>;

/// What a file is, however many have it open.
pub struct Inode {
    /// Its number, from 1, by which programs tell files apart.
    pub number: u64,
    content: Mutex<Content>,
}

impl Inode {
    fn new(content: Content) -> File {
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Arc::new(Inode { number, content: Mutex::new(content) })
    }

    /// Its content, for as long as the answer lives.
    pub fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock()
    }
}

/// What is in a file.
pub enum Content {
    /// As the ramdisk has it.
    Ramdisk(&'static [u8]),
    /// As programs have written it.
    Own(Pages),
}

impl Content {
    /// Its length, in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Content::Ramdisk(bytes) => bytes.len() as u64,
            Content::Own(pages) => pages.len(),
        }
    }

    /// Its bytes from `at` on, as far as they lie together: none at its end.
    pub fn piece(&self, at: u64) -> &[u8] {
        match self {
            Content::Ramdisk(bytes) => bytes.get(at as usize..).unwrap_or_default(),
            Content::Own(pages) => pages.piece(at),
        }
    }

    /// Puts bytes at `at`, as many as there is memory for: how many. What lies between its end and
    /// there becomes zeros.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> usize {
        self.own().map_or(0, |pages| pages.write(at, bytes))
    }

    /// Cuts or lengthens it, with zeros.
    ///
    /// # Errors
    /// No memory.
    pub fn set_len(&mut self, len: u64) -> Result<(), OutOfMemory> {
        if len == 0 {
            *self = Content::Own(Pages::default());
        }
        self.own()?.set_len(len)
    }

    fn own(&mut self) -> Result<&mut Pages, OutOfMemory> {
        if let Content::Ramdisk(bytes) = *self {
            let mut pages = Pages::default();
            if pages.write(0, bytes) < bytes.len() {
                return Err(OutOfMemory);
            }
            *self = Content::Own(pages);
        }
        match self {
            Content::Own(pages) => Ok(pages),
            Content::Ramdisk(_) => unreachable!("it was copied just now"),
        }
    }
}

/// The file of that name.
pub fn find(path: &str) -> Option<File> {
    find_in(&mut NAMED.lock(), plain(path))
}

fn find_in(named: &mut Names, name: &str) -> Option<File> {
    if let Some(known) = named.get(name) {
        return known.clone();
    }
    let file = Inode::new(Content::Ramdisk(ramdisk::file(name)?));
    named.insert(name.into(), Some(file.clone()));
    Some(file)
}

/// The file of that name, or a new empty one; none if there is one, and only a new one will do.
///
/// # Errors
/// There are too many.
pub fn find_or_create(path: &str, only_new: bool) -> Result<Option<File>, OutOfMemory> {
    let mut named = NAMED.lock();
    let name = plain(path);
    if let Some(file) = find_in(&mut named, name) {
        return Ok(Some(file).filter(|_| !only_new));
    }
    if named.len() >= MAX_NAMES {
        return Err(OutOfMemory);
    }
    let file = Inode::new(Content::Own(Pages::default()));
    named.insert(name.into(), Some(file.clone()));
    Ok(Some(file))
}

/// Nothing has the name from here on.
fn forget(named: &mut Names, name: &str) {
    match ramdisk::file(name) {
        Some(_) => named.insert(name.into(), None),
        None => named.remove(name).flatten().map(Some),
    };
}

/// Takes a file's name away; whether there was one.
pub fn remove(path: &str) -> bool {
    let mut named = NAMED.lock();
    let name = plain(path);
    let is_there = find_in(&mut named, name).is_some();
    if is_there {
        forget(&mut named, name);
    }
    is_there
}

/// Gives a file another name, in place of any that had it; whether there was one.
///
/// # Errors
/// There are too many names.
pub fn rename(from: &str, to: &str) -> Result<bool, OutOfMemory> {
    let mut named = NAMED.lock();
    let (from, to) = (plain(from), plain(to));
    let file = find_in(&mut named, from);
    let is_there = file.is_some();
    if is_there && from != to {
        // What was the ramdisk's leaves a note that it is gone.
        if named.len() >= MAX_NAMES && !named.contains_key(to) {
            return Err(OutOfMemory);
        }
        named.insert(to.into(), file);
        forget(&mut named, from);
    }
    Ok(is_there)
}
