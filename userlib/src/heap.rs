//! Heap of pages that the kernel maps. It is independent of any C library's heap.
//!
//! Threads may use it concurrently. A handler of a threshold or a signal must not: it may interrupt
//! the heap's own code.

use talc::{
    TalcLock,
    base::{Talc, binning::Binning},
    source::Source,
};

use crate::sys;

/// Minimum amount of memory that the heap requests from the kernel.
const CHUNK_BYTES: usize = 1 << 20;
const PROT_READ_WRITE: u64 = 3;
const MAP_PRIVATE_ANONYMOUS: u64 = 0x22;

/// Heap type for `#[global_allocator]`.
pub type Heap = TalcLock<spin::Mutex<()>, Kernel>;

/// Makes an empty heap.
pub const fn new() -> Heap {
    TalcLock::new(Kernel)
}

/// Memory source of the heap: anonymous mappings.
#[derive(Debug)]
pub struct Kernel;

// SAFETY: it allocates from the kernel, never from the heap itself.
unsafe impl Source for Kernel {
    fn acquire<B: Binning>(
        talc: &mut Talc<Self, B>,
        layout: core::alloc::Layout,
    ) -> Result<(), ()> {
        // The heap needs some memory of each block for its own data.
        let wanted = layout.size().checked_add(layout.align() + 4096).ok_or(())?;
        let bytes = wanted.max(CHUNK_BYTES).next_multiple_of(4096);
        let arguments = [0, bytes as u64, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, u64::MAX, 0];
        // SAFETY: the call maps new memory, which is unused.
        let start = unsafe { sys::call(sys::MMAP, arguments) };
        if start < 0 {
            return Err(());
        }
        // SAFETY: the memory was just mapped and belongs to the heap alone.
        unsafe { talc.claim(start as *mut u8, bytes) }.map(|_| ()).ok_or(())
    }
}
