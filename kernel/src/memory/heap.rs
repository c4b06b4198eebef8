//! The kernel's heap: one block at first, so that the kernel's size after boot is known, and frames
//! of the machine's memory when programs need more.
//!
//! The block is in the kernel's view of physical memory, whose large pages need one TLB entry for
//! all that the overflow path has there.
//!
//! The directory of the ramdisk is on a heap of its own ([`apart`]), so that its length moves
//! nothing else.
//!
//! Sessions, processes, threads and names are on it; programs' memory is in frames. The overflow
//! path never allocates. The heap fails when the machine's memory is used up. So that programs
//! cannot use it up, their memory leaves a reserve ([`frames::claim`]), and a system call that lets
//! a program keep part of the heap checks first ([`has_room`]).

use core::{
    alloc::{GlobalAlloc, Layout},
    mem::replace,
    ptr::NonNull,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use talc::{
    TalcLock,
    base::{Talc, binning::Binning},
    source::Source,
};

use super::{
    frames::{self, FRAME_BYTES, User},
    region,
};

/// Bytes of the heap at first.
const HEAP_BYTES: usize = 3 << 20;
/// The address of the part that grows: above the stacks.
const GROWN: u64 = region::START + (1 << 38);
/// The address of the heap apart.
const APART: u64 = GROWN + (1 << 37);
/// The smallest steps of growth of both.
const STEP_BYTES: u64 = 1 << 20;
const APART_STEP_BYTES: u64 = 64 << 10;

#[global_allocator]
static HEAP: Heaps = Heaps {
    main: TalcLock::new(Growing {
        has_block: false,
        next: GROWN,
        step: STEP_BYTES,
        user: User::Kernel,
        end: None,
    }),
    apart: TalcLock::new(Growing {
        has_block: true,
        next: APART,
        step: APART_STEP_BYTES,
        user: User::Image,
        end: None,
    }),
};
/// Whether [`apart`] runs. Relaxed order is enough: no other CPU runs meanwhile.
static IS_APART: AtomicBool = AtomicBool::new(false);

/// Makes what is allocated meanwhile come from the heap apart. At boot, while one CPU runs.
pub fn apart<T>(make: impl FnOnce() -> T) -> T {
    IS_APART.store(true, Relaxed);
    let made = make();
    IS_APART.store(false, Relaxed);
    made
}

type Heap = TalcLock<spin::Mutex<()>, Growing>;

/// The heap, and the heap apart.
struct Heaps {
    main: Heap,
    apart: Heap,
}

impl Heaps {
    /// The heap that has an allocation.
    fn of(&self, start: *mut u8) -> &Heap {
        if start.addr() as u64 >= APART { &self.apart } else { &self.main }
    }
}

// SAFETY: each heap keeps the contract, and gets back what it has allocated: its addresses are on
// its own side of `APART`; the view of physical memory is below the region.
unsafe impl GlobalAlloc for Heaps {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let heap = if IS_APART.load(Relaxed) { &self.apart } else { &self.main };
        // SAFETY: by this function's contract.
        unsafe { heap.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: by this function's contract.
        unsafe { self.of(start).dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: by this function's contract.
        unsafe { self.of(start).realloc(start, layout, bytes) }
    }
}

/// The source of the heap's memory.
#[derive(Debug)]
struct Growing {
    /// Whether the heap has the first block.
    has_block: bool,
    /// The address of the next page.
    next: u64,
    /// The smallest step of growth.
    step: u64,
    /// What its frames are for.
    user: User,
    /// The allocator's mark of the end of the part that grows.
    end: Option<NonNull<u8>>,
}

// SAFETY: only the allocator gets the pointer to the heap's end.
unsafe impl Send for Growing {}

// SAFETY: it allocates frames, and never from the heap that it grows.
unsafe impl Source for Growing {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        if !replace(&mut talc.source.has_block, true) {
            let block = frames::allocate_block(User::Kernel, HEAP_BYTES as u64).map_err(|_| ())?;
            let start = frames::kernel_view(block).as_mut_ptr();
            // SAFETY: (1) the block was allocated just now; (2) it is mapped, and never freed.
            return unsafe { talc.claim(start, HEAP_BYTES) }.map(drop).ok_or(());
        }
        // With room for the allocator's own bookkeeping.
        let wanted = (layout.size() + layout.align()) as u64 + FRAME_BYTES;
        let start = talc.source.next;
        let bytes = wanted.max(talc.source.step).next_multiple_of(FRAME_BYTES);
        if !frames::has_room(bytes) {
            return Err(());
        }
        for page in (start..start + bytes).step_by(FRAME_BYTES as usize) {
            let frame = frames::allocate(talc.source.user, page).map_err(|_| ())?;
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
