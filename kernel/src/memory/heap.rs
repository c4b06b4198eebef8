//! The kernel's heap: a block at first, so that what the kernel holds after boot is known, and more of the
//! machine's memory where programs make it necessary.
//!
//! Sessions, processes, threads and names live here; programs' memory is made of frames. The overflow path
//! never allocates. Nothing is left where the machine's memory is: programs' memory leaves a reserve to the
//! heap ([`has_room`], [`frames::claim`]), and whoever lets a program have any of the heap to keep asks first.

use core::{alloc::Layout, ptr::NonNull};

use talc::{
    TalcLock,
    base::{Talc, binning::Binning},
    source::Source,
};

use super::{
    frames::{self, FRAME_BYTES},
    region,
};

/// Bytes of the heap at first.
pub const HEAP_BYTES: usize = 4 << 20;
/// Where it grows: above the stacks.
const GROWN: u64 = region::START + (1 << 38);
/// The least that it grows by.
const STEP_BYTES: u64 = 1 << 20;

#[global_allocator]
static HEAP: TalcLock<spin::Mutex<()>, Growing> = {
    static mut BLOCK: [u8; HEAP_BYTES] = [0; HEAP_BYTES];
    TalcLock::new(Growing { block: Some(&raw mut BLOCK), next: GROWN, end: None })
};

/// Where the heap gets its memory.
#[derive(Debug)]
struct Growing {
    /// The first block, until it is the heap's.
    block: Option<*mut [u8; HEAP_BYTES]>,
    /// Where the next page goes.
    next: u64,
    /// The end of what has grown, as the allocator calls it.
    end: Option<NonNull<u8>>,
}

// SAFETY: the block is named nowhere else, and the pointer to the heap's end is only given back to it.
unsafe impl Send for Growing {}

// SAFETY: asks for frames and pages, and never the heap that it feeds.
unsafe impl Source for Growing {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        if let Some(block) = talc.source.block.take() {
            // SAFETY: (1) the block is named nowhere else; (2) it lives as long as the kernel.
            return unsafe { talc.claim(block.cast(), HEAP_BYTES) }.map(drop).ok_or(());
        }
        // Room for the allocator's own bookkeeping too, of which each piece needs a little.
        let wanted = (layout.size() + layout.align()) as u64 + FRAME_BYTES;
        let start = talc.source.next;
        let bytes = wanted.max(STEP_BYTES).next_multiple_of(FRAME_BYTES);
        if !frames::has_room(bytes) {
            return Err(());
        }
        for page in (start..start + bytes).step_by(FRAME_BYTES as usize) {
            let frame = frames::allocate().map_err(|_| ())?;
            region::map(page, frame).map_err(|_| ())?;
            talc.source.next = page + FRAME_BYTES;
        }
        let until = (start + bytes) as *mut u8;
        let end = match talc.source.end {
            // SAFETY: (1) the pages from the heap's end on were mapped just now and are nobody else's;
            // (2) they stay mapped for ever.
            Some(end) => Some(unsafe { talc.extend(end, until) }),
            // SAFETY: as above, of all of them.
            None => unsafe { talc.claim(start as *mut u8, bytes as usize) },
        };
        talc.source.end = end;
        end.map(drop).ok_or(())
    }
}

/// Whether a program may have a little more of the kernel's memory: some kilobytes at most, between one time
/// of asking and the next. Whoever needs more claims it ([`frames::claim`]).
pub fn has_room() -> bool {
    frames::has_room_for_program(0)
}
