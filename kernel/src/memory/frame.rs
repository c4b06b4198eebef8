//! Sizes of frames, and where the kernel sees physical memory.

use spin::Once;
use x86_64::{PhysAddr, VirtAddr};

/// Bytes of a frame.
pub const FRAME_BYTES: u64 = 4096;
/// Bytes of a large page.
pub const LARGE_BYTES: u64 = 2 << 20;

static PHYSICAL_OFFSET: Once<u64> = Once::new();

/// Sets the address at which all physical memory is mapped. At boot, once.
pub(super) fn set_view(physical_offset: u64) {
    PHYSICAL_OFFSET.call_once(|| physical_offset);
}

/// The kernel's virtual address of a physical address.
///
/// # Panics
/// The view is not set.
pub fn kernel_view(address: PhysAddr) -> VirtAddr {
    let offset = PHYSICAL_OFFSET.get().expect("the view is set first");
    VirtAddr::new(offset + address.as_u64())
}
