//! Kernel memory that programs' areas show, with its owners.

use alloc::{boxed::Box, sync::Arc};

use x86_64::structures::paging::PhysFrame;

use super::{
    frames::{self, FRAME_BYTES, OutOfMemory, kernel_view},
    shared::Shared,
};

/// Pages of zeros that the kernel writes. They are freed when the kernel and each program that has
/// them mapped are done with them: each holds an [`Arc`] of them, a program's area its own.
pub struct LentPages(Box<[PhysFrame]>);

/// The kernel memory that an area shows, which lives at least as long as the area.
#[derive(Clone)]
pub enum Lent {
    /// Memory that is never freed.
    Shared(&'static Shared),
    /// Pages that the area owns together with the kernel.
    Pages(Arc<LentPages>),
}

impl Lent {
    pub(super) fn frames(&self) -> &[PhysFrame] {
        match self {
            Lent::Shared(shared) => shared.frames(),
            Lent::Pages(pages) => &pages.0,
        }
    }

    pub(super) fn is(&self, other: &Lent) -> bool {
        core::ptr::eq(self.frames(), other.frames())
    }
}

impl LentPages {
    /// Allocates pages for `bytes`, on a program's behalf.
    ///
    /// # Errors
    /// No memory is left.
    pub fn allocate(bytes: u64) -> Result<Arc<LentPages>, OutOfMemory> {
        let pages = bytes.div_ceil(FRAME_BYTES);
        let mut claim = frames::claim(pages * FRAME_BYTES).ok_or(OutOfMemory)?;
        // Those before one that fails would be lost, but a claim has all of them.
        let frames =
            (0..pages).map(|page| claim.allocate(page * FRAME_BYTES)).collect::<Result<_, _>>()?;
        Ok(Arc::new(LentPages(frames)))
    }

    /// The kernel's addresses of the pages, in order.
    pub fn views(&self) -> impl Iterator<Item = *mut u8> {
        self.0.iter().map(|frame| kernel_view(frame.start_address()).as_mut_ptr())
    }
}

impl Drop for LentPages {
    fn drop(&mut self) {
        for frame in &self.0 {
            // SAFETY: (1) `allocate` took it from a claim; (2) no program has it mapped any more:
            // an area's pages are unmapped before its `Arc` is dropped; (3) what the kernel made of
            // `views` is gone before the kernel's `Arc`.
            unsafe { frames::free(*frame) };
        }
    }
}
