//! Kernel memory that a program has mapped read-only.

use alloc::boxed::Box;

use x86_64::structures::paging::PhysFrame;

use super::{
    area::Origin,
    frames::{self, FRAME_BYTES, OutOfMemory, kernel_view},
    shared::Shared,
    space::{PageAccess, SpaceError},
    user::{Place, UserMemory},
};

/// Pages of zeros that the kernel writes, freed with this value. A program has them mapped at most
/// as long.
pub struct LentPages(Box<[PhysFrame]>);

impl LentPages {
    /// Allocates pages for `bytes`, on a program's behalf.
    ///
    /// # Errors
    /// No memory is left.
    pub fn allocate(bytes: u64) -> Result<LentPages, OutOfMemory> {
        let pages = bytes.div_ceil(FRAME_BYTES);
        let mut claim = frames::claim(pages * FRAME_BYTES).ok_or(OutOfMemory)?;
        // Those before one that fails would be lost, but a claim has all of them.
        (0..pages).map(|_| claim.allocate()).collect::<Result<_, _>>().map(LentPages)
    }

    /// The kernel's addresses of the pages, in order.
    pub fn views(&self) -> impl Iterator<Item = *mut u8> {
        self.0.iter().map(|frame| kernel_view(frame.start_address()).as_mut_ptr())
    }
}

impl Drop for LentPages {
    fn drop(&mut self) {
        for frame in &self.0 {
            // SAFETY: (1) `allocate` took it from a claim; (2) no program has it mapped any more,
            // and what the kernel made of `views` is gone, by this type's contract.
            unsafe { frames::free(*frame) };
        }
    }
}

impl UserMemory {
    /// Maps kernel memory read-only until the program ends. Returns the address; the same memory
    /// has the same address each time.
    ///
    /// # Errors
    /// No memory is left for page tables.
    pub fn lend(&mut self, shared: &'static Shared) -> Result<u64, SpaceError> {
        let kernels = shared.start().as_u64();
        if let Some(address) = self.lent.get(&kernels) {
            return Ok(*address);
        }
        let start = self.lend_frames(shared.frames())?;
        self.lent.insert(kernels, start);
        Ok(start)
    }

    /// Maps pages read-only until [`Self::unmap_for_kernel`]. Returns the address.
    ///
    /// # Errors
    /// No memory is left for page tables.
    pub fn lend_pages(&mut self, pages: &LentPages) -> Result<u64, SpaceError> {
        self.lend_frames(&pages.0)
    }

    fn lend_frames(&mut self, frames: &[PhysFrame]) -> Result<u64, SpaceError> {
        let bytes = frames.len() as u64 * FRAME_BYTES;
        let start = self.map(Place::Hint(0), bytes, (PageAccess::Read, Origin::Kernel))?;
        if let Err(error) = self.space.lend(start, frames, PageAccess::Read) {
            self.space.unmap(start, bytes);
            self.areas.cut(&(start..start + bytes));
            return Err(error);
        }
        Ok(start)
    }
}
