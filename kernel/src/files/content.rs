//! A file's content: the ramdisk's, or written by programs. A page of a ramdisk file is copied at
//! its first write; the ramdisk does not change.

use super::pages::Pages;
use crate::memory::frames::OutOfMemory;

/// A file's content.
pub enum Content {
    /// The ramdisk's, unchanged.
    Ramdisk(&'static [u8]),
    /// Written by programs.
    Written(Pages),
}

impl Content {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Content::Ramdisk(bytes) => bytes.len() as u64,
            Content::Written(pages) => pages.len(),
        }
    }

    /// The bytes from `at` on that are contiguous in memory; none at the end.
    pub fn piece(&self, at: u64) -> &[u8] {
        match self {
            Content::Ramdisk(bytes) => bytes.get(at as usize..).unwrap_or_default(),
            Content::Written(pages) => pages.piece(at),
        }
    }

    /// Copies some or all bytes from `at` on to `to`. Returns how many; 0 at the end.
    pub fn copy_to(&self, at: u64, to: &mut [u8]) -> usize {
        let piece = self.piece(at);
        let bytes = piece.len().min(to.len());
        to[..bytes].copy_from_slice(&piece[..bytes]);
        bytes
    }

    /// Returns whether the content equals `bytes`.
    pub(super) fn is(&self, bytes: &[u8]) -> bool {
        if self.len() != bytes.len() as u64 {
            return false;
        }
        if let Content::Ramdisk(own) = self
            && core::ptr::eq(*own, bytes)
        {
            return true;
        }
        let mut at = 0;
        while at < bytes.len() {
            let piece = self.piece(at as u64);
            if piece.is_empty() || !bytes[at..].starts_with(piece) {
                return false;
            }
            at += piece.len();
        }
        true
    }

    /// Writes bytes at `at`, as many as memory allows. Returns how many. The bytes between the old
    /// end and `at` become zeros.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> usize {
        self.pages().map_or(0, |pages| pages.write(at, bytes))
    }

    /// Truncates the content to `len` bytes, or extends it with zeros.
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

    /// The content's pages; a ramdisk file's pages are copied when they are written to.
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
