//! Memory of the kernel's own that programs may be shown: whole pages, with nothing else in them.

use alloc::{boxed::Box, vec::Vec};

use spin::Mutex;
use x86_64::{VirtAddr, structures::paging::PhysFrame};

use super::{
    frames::{self, FRAME_BYTES, OutOfMemory},
    region,
};

/// Where it lies: between the stacks and the heap.
static NEXT: Mutex<u64> = Mutex::new(region::START + (1 << 37));

/// Pages that stay for ever.
#[derive(Debug)]
pub struct Shared {
    start: VirtAddr,
    frames: Box<[PhysFrame]>,
}

impl Shared {
    /// New pages of zeros, with room for `bytes`.
    ///
    /// # Errors
    /// No memory.
    pub fn allocate(bytes: usize) -> Result<Shared, OutOfMemory> {
        let mut next = NEXT.lock();
        let (start, mut frames) = (*next, Vec::new());
        for page in (start..start + bytes as u64).step_by(FRAME_BYTES as usize) {
            let frame = frames::allocate()?;
            region::map(page, frame)?;
            frames.push(frame);
            *next = page + FRAME_BYTES;
        }
        Ok(Shared { start: VirtAddr::new(start), frames: frames.into() })
    }

    /// Where the kernel sees it, and writes to it.
    pub fn start(&self) -> VirtAddr {
        self.start
    }

    /// Its frames, in order.
    pub fn frames(&self) -> &[PhysFrame] {
        &self.frames
    }
}
