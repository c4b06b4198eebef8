//! Files mapped by programs.

use alloc::sync::Arc;

use x86_64::structures::paging::PhysFrame;

use super::inode::FileRef;
use crate::memory::{
    area::PageSource,
    frames::{FRAME_BYTES, OutOfMemory},
    space::SpaceError,
};

/// A mapped file. While the value exists, none of the file's frames is freed.
struct MappedFile(FileRef);

/// The source of a mapping's pages.
///
/// # Errors
/// No memory is left.
pub fn map_file(file: &FileRef) -> Result<Arc<dyn PageSource>, OutOfMemory> {
    file.lock().pages()?.add_mapping();
    Ok(Arc::new(MappedFile(file.clone())))
}

impl PageSource for MappedFile {
    fn share(&self, index: u64) -> Result<PhysFrame, SpaceError> {
        self.0.lock().pages()?.share(index)
    }

    fn copy(&self, index: u64, to: &mut [u8]) -> Result<(), SpaceError> {
        let content = self.0.lock();
        let at = index.checked_mul(FRAME_BYTES).ok_or(SpaceError::BehindFile)?;
        let piece = content.piece(at);
        if piece.is_empty() {
            return Err(SpaceError::BehindFile);
        }
        let bytes = piece.len().min(to.len());
        to[..bytes].copy_from_slice(&piece[..bytes]);
        Ok(())
    }

    fn number(&self) -> u64 {
        self.0.number
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if let Ok(pages) = self.0.lock().pages() {
            pages.end_mapping();
        }
    }
}
