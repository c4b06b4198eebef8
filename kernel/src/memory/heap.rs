//! The kernel's heap: one fixed block, so that what the kernel holds is known after boot.
//!
//! Sessions, processes and names live here; programs' memory is made of frames. The overflow path
//! never allocates.

use talc::{TalcLock, source::Claim};

/// Bytes of the heap. A session of 1,024 events takes some 300 KiB.
pub const HEAP_BYTES: usize = 4 << 20;

#[global_allocator]
static HEAP: TalcLock<spin::Mutex<()>, Claim> = {
    static mut BLOCK: [u8; HEAP_BYTES] = [0; HEAP_BYTES];
    // SAFETY: (1) the block is named nowhere else; (2) it lives as long as the kernel.
    TalcLock::new(unsafe { Claim::array(&raw mut BLOCK) })
};
