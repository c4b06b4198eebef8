//! A program's open files, by descriptor.

use alloc::{collections::BTreeMap, sync::Arc};

use spin::Mutex;

use super::FileRef;

/// The most descriptors of one program.
pub const MAX_DESCRIPTORS: u64 = 64;

/// What a descriptor refers to.
#[derive(Clone)]
pub enum Descriptor {
    /// `/dev/null`: reads are empty, writes are discarded.
    Null,
    /// The program's output to the host: 1 or 2.
    Output(u8),
    /// A file. Copies of a descriptor share its position.
    File(Arc<Mutex<OpenFile>>),
}

/// An open file.
pub struct OpenFile {
    /// The file.
    pub file: FileRef,
    /// Offset of the next read or write.
    pub position: u64,
    /// Whether it may be read.
    pub reads: bool,
    /// Whether it may be written.
    pub writes: bool,
    /// Whether writes go to its end (`O_APPEND`).
    pub appends: bool,
}

/// A program's descriptors.
pub struct Descriptors(BTreeMap<u64, Descriptor>);

impl Descriptors {
    /// Those of a new program: an empty input and two outputs.
    pub fn new() -> Self {
        let standard = [Descriptor::Null, Descriptor::Output(1), Descriptor::Output(2)];
        Descriptors((0..).zip(standard).collect())
    }

    /// What `fd` refers to.
    pub fn get(&self, fd: u64) -> Option<&Descriptor> {
        self.0.get(&fd)
    }

    /// The lowest free number that is at least `from`, if there is one.
    pub fn free(&self, from: u64) -> Option<u64> {
        (from..MAX_DESCRIPTORS).find(|fd| !self.0.contains_key(fd))
    }

    /// Sets the descriptor of number `fd`. Returns whether that is a valid number.
    pub fn put(&mut self, fd: u64, descriptor: Descriptor) -> bool {
        let fits = fd < MAX_DESCRIPTORS;
        if fits {
            self.0.insert(fd, descriptor);
        }
        fits
    }

    /// Removes `fd`. Returns whether it was open.
    pub fn remove(&mut self, fd: u64) -> bool {
        self.0.remove(&fd).is_some()
    }
}
