//! What a program has open, by descriptor.

use alloc::{collections::BTreeMap, sync::Arc};

use spin::Mutex;

use super::File;

/// The most descriptors of one program.
pub const MAX_DESCRIPTORS: u64 = 64;

/// What a descriptor leads to.
#[derive(Clone)]
pub enum Descriptor {
    /// Nothing to read; what is written is gone.
    Null,
    /// The program's output to the host: 1 or 2.
    Output(u8),
    /// A file. Copies of a descriptor share its position.
    File(Arc<Mutex<OpenFile>>),
}

/// A file, as it was opened.
pub struct OpenFile {
    /// The file.
    pub file: File,
    /// Where the next reading or writing begins.
    pub position: u64,
    /// Whether it may be read.
    pub reads: bool,
    /// Whether it may be written.
    pub writes: bool,
    /// Whether writing goes to its end.
    pub appends: bool,
}

/// A program's descriptors.
pub struct Descriptors(BTreeMap<u64, Descriptor>);

impl Descriptors {
    /// A program's at its start: an empty input and two outputs.
    pub fn new() -> Self {
        let standard = [Descriptor::Null, Descriptor::Output(1), Descriptor::Output(2)];
        Descriptors((0..).zip(standard).collect())
    }

    /// What `fd` leads to.
    pub fn get(&self, fd: u64) -> Option<&Descriptor> {
        self.0.get(&fd)
    }

    /// The lowest number from `from` up that is free, if there is one.
    pub fn free(&self, from: u64) -> Option<u64> {
        (from..MAX_DESCRIPTORS).find(|fd| !self.0.contains_key(fd))
    }

    /// Gives `descriptor` the number `fd`, in place of whatever has it; whether that is a number.
    pub fn put(&mut self, fd: u64, descriptor: Descriptor) -> bool {
        let fits = fd < MAX_DESCRIPTORS;
        if fits {
            self.0.insert(fd, descriptor);
        }
        fits
    }

    /// Takes `fd` away; whether there was one.
    pub fn remove(&mut self, fd: u64) -> bool {
        self.0.remove(&fd).is_some()
    }
}
