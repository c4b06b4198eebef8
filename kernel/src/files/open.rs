//! A program's open files, by descriptor.

use alloc::{collections::BTreeMap, string::String, sync::Arc};
use core::sync::atomic::{AtomicU64, Ordering};

use spin::Mutex;

use super::{
    epoll::Epoll,
    inode::FileRef,
    location::Base,
    locks::{Holder, release_all},
    streams::Stream,
    tree::Device,
};

/// Maximum number of descriptors of a program: Linux's default.
pub const MAX_DESCRIPTORS: u64 = 1024;

/// The number of the last open file. Relaxed order is enough: each number is given once.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The object of a descriptor.
#[derive(Clone)]
pub enum Descriptor {
    /// A device.
    Device(Device),
    /// The program's output to the host: 1 or 2.
    Output(u8),
    /// A file. Copies of a descriptor share its position.
    File(Arc<Mutex<OpenFile>>),
    /// A folder.
    Folder(Arc<Mutex<OpenFolder>>),
    /// A stream.
    Stream(Arc<Stream>),
    /// `epoll`: registered descriptors to wait for.
    Epoll(Arc<Mutex<Epoll>>),
}

/// An open file.
pub struct OpenFile {
    /// Number that identifies it as a holder of locks.
    pub number: u64,
    /// The file.
    pub file: FileRef,
    /// Offset of the next read or write.
    pub position: u64,
    /// Whether the descriptor may read it.
    pub reads: bool,
    /// Whether the descriptor may write it.
    pub writes: bool,
    /// Whether writes go to its end (`O_APPEND`).
    pub appends: bool,
}

/// An open folder.
pub struct OpenFolder {
    /// The folder.
    pub base: Base,
    /// Number of listed names, `.` and `..` included.
    pub listed: u64,
    /// The last listed name.
    pub last: String,
}

impl OpenFile {
    /// Opens a file at its beginning.
    pub fn open(file: FileRef, reads: bool, writes: bool, appends: bool) -> Descriptor {
        OpenFile::open_at(file, 0, reads, writes, appends)
    }

    fn open_at(
        file: FileRef,
        position: u64,
        reads: bool,
        writes: bool,
        appends: bool,
    ) -> Descriptor {
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let open = OpenFile { number, file, position, reads, writes, appends };
        Descriptor::File(Arc::new(Mutex::new(open)))
    }

    /// Opens the file once more, with the position and the rights of this one.
    fn again(&self) -> Descriptor {
        let OpenFile { position, reads, writes, appends, .. } = *self;
        OpenFile::open_at(self.file.clone(), position, reads, writes, appends)
    }
}

impl OpenFolder {
    /// Opens a folder at its beginning.
    pub fn open(base: Base) -> Descriptor {
        let open = OpenFolder { base, listed: 0, last: String::new() };
        Descriptor::Folder(Arc::new(Mutex::new(open)))
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let mut locks = self.file.locks.lock();
        release_all(&mut locks, Holder::OpenFile(self.number));
        release_all(&mut locks, Holder::Whole(self.number));
    }
}

/// A program's descriptors.
pub struct Descriptors {
    program: u32,
    all: BTreeMap<u64, Descriptor>,
    /// The first number that new descriptors cannot have.
    pub limit: u64,
}

impl Descriptors {
    /// The descriptors of a new program: its input and two outputs.
    pub fn new(program: u32, input: Descriptor) -> Self {
        let standard = [input, Descriptor::Output(1), Descriptor::Output(2)];
        Descriptors { program, all: (0..).zip(standard).collect(), limit: MAX_DESCRIPTORS }
    }

    /// The standard input of a program that this one loads: a file is opened anew, at its
    /// position; streams stay inside a program, so that another's input is empty.
    pub fn input(&self) -> Descriptor {
        match self.all.get(&0) {
            Some(Descriptor::File(open)) => OpenFile::again(&open.lock()),
            Some(Descriptor::Device(device)) => Descriptor::Device(*device),
            _ => Descriptor::Device(Device::Null),
        }
    }

    /// The object of `fd`.
    pub fn get(&self, fd: u64) -> Option<&Descriptor> {
        self.all.get(&fd)
    }

    /// Returns whether the signal `bit` can be read from any descriptor.
    pub fn takes_signal(&self, bit: u64) -> bool {
        self.all.values().any(|descriptor| match descriptor {
            Descriptor::Stream(stream) => stream.signals().is_some_and(|set| set & bit != 0),
            _ => false,
        })
    }

    /// The lowest free number that is at least `from`; `None` if there is none.
    pub fn free(&self, from: u64) -> Option<u64> {
        (from..self.limit).find(|fd| !self.all.contains_key(fd))
    }

    /// Sets the descriptor with number `fd`. Returns whether the number is valid.
    pub fn put(&mut self, fd: u64, descriptor: Descriptor) -> bool {
        let fits = fd < self.limit;
        if fits {
            self.remove(fd);
            self.all.insert(fd, descriptor);
        }
        fits
    }

    /// Removes `fd`, its registrations, and the program's locks on its file. Returns whether it was
    /// open.
    pub fn remove(&mut self, fd: u64) -> bool {
        let Some(removed) = self.all.remove(&fd) else { return false };
        self.unlock(&removed);
        for descriptor in self.all.values() {
            if let Descriptor::Epoll(epoll) = descriptor {
                epoll.lock().remove(&fd);
            }
        }
        true
    }

    fn unlock(&self, descriptor: &Descriptor) {
        if let Descriptor::File(open) = descriptor {
            let file = open.lock().file.clone();
            release_all(&mut file.locks.lock(), Holder::Program(self.program));
        }
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        self.all.values().for_each(|descriptor| self.unlock(descriptor));
    }
}
