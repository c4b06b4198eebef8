//! Kernel memory that programs may have mapped read-only: whole pages, with nothing else in them.

use alloc::{boxed::Box, vec::Vec};

use spin::Mutex;
use x86_64::{VirtAddr, structures::paging::PhysFrame};

use super::{
    frames::{self, FRAME_BYTES, OutOfMemory, User},
    region,
};

/// The address of the next allocation: between the stacks and the heap.
static NEXT: Mutex<u64> = Mutex::new(region::START + (1 << 37));

/// Pages that are never freed.
#[derive(Debug)]
pub struct Shared {
    start: VirtAddr,
    frames: Box<[PhysFrame]>,
}

impl Shared {
    /// Allocates pages of zeros for `bytes`.
    ///
    /// # Errors
    /// No memory is left.
    pub fn allocate(bytes: usize) -> Result<Shared, OutOfMemory> {
        let mut next = NEXT.lock();
        let (start, mut frames) = (*next, Vec::new());
        for page in (start..start + bytes as u64).step_by(FRAME_BYTES as usize) {
            let frame = frames::allocate(User::Kernel, page)?;
            region::map(page, frame)?;
            frames.push(frame);
            *next = page + FRAME_BYTES;
        }
        Ok(Shared { start: VirtAddr::new(start), frames: frames.into() })
    }

    /// The kernel's address of the first page, writable.
    pub fn start(&self) -> VirtAddr {
        self.start
    }

    /// The frames, in order.
    pub fn frames(&self) -> &[PhysFrame] {
        &self.frames
    }
}
