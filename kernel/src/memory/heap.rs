//! The kernel's heap: a static block at first, so that the kernel's size after boot is known, and
//! frames of the machine's memory when programs need more.
//!
//! Sessions, processes, threads and names are on it; programs' memory is in frames. The overflow
//! path never allocates. The heap fails when the machine's memory is used up. So that programs
//! cannot use it up, their memory leaves a reserve ([`frames::claim`]), and a system call that lets
//! a program keep part of the heap checks first ([`has_room`]).

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
/// The address of the part that grows: above the stacks.
const GROWN: u64 = region::START + (1 << 38);
/// The smallest step of growth.
const STEP_BYTES: u64 = 1 << 20;

#[global_allocator]
static HEAP: TalcLock<spin::Mutex<()>, Growing> = {
    static mut BLOCK: [u8; HEAP_BYTES] = [0; HEAP_BYTES];
    TalcLock::new(Growing { block: Some(&raw mut BLOCK), next: GROWN, end: None })
};

/// The source of the heap's memory.
#[derive(Debug)]
struct Growing {
    /// The first block, until the heap has it.
    block: Option<*mut [u8; HEAP_BYTES]>,
    /// The address of the next page.
    next: u64,
    /// The allocator's mark of the end of the part that grows.
    end: Option<NonNull<u8>>,
}

// SAFETY: nothing else refers to the block, and only the allocator gets the pointer to the heap's
// end.
unsafe impl Send for Growing {}

// SAFETY: it allocates frames, and never from the heap that it grows.
unsafe impl Source for Growing {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        if let Some(block) = talc.source.block.take() {
            // SAFETY: (1) nothing else names the block; (2) it is never freed.
            return unsafe { talc.claim(block.cast(), HEAP_BYTES) }.map(drop).ok_or(());
        }
        // With room for the allocator's own bookkeeping.
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
            // SAFETY: (1) the pages from the heap's end on were mapped just now, and nothing else
            // uses them; (2) they are never unmapped.
            Some(end) => Some(unsafe { talc.extend(end, until) }),
            // SAFETY: as above, of all of them.
            None => unsafe { talc.claim(start as *mut u8, bytes as usize) },
        };
        talc.source.end = end;
        end.map(drop).ok_or(())
    }
}

/// Returns whether a program may have some more of the kernel's heap: some kilobytes at most
/// between two checks. Larger amounts are claimed ([`frames::claim`]).
pub fn has_room() -> bool {
    frames::has_room_for_program(0)
}
