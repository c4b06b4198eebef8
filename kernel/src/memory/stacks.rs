//! The kernel's stacks. The page below each is never mapped (a guard page), so that a stack
//! overflow faults.

use spin::Mutex;
use x86_64::VirtAddr;

use super::{
    frames::{self, FRAME_BYTES, OutOfMemory},
    region,
};

/// Bytes of each stack: the planner, in a system call, uses some 30 KiB of it.
pub const STACK_BYTES: u64 = 64 * 1024;
/// Bytes from one stack to the next, with the guard page.
const STRIDE: u64 = STACK_BYTES + FRAME_BYTES;

/// Stacks that are allocated.
static STACKS: Mutex<u64> = Mutex::new(0);

/// Allocates a stack that is never freed. Returns the address just above it, a multiple of 16.
///
/// # Errors
/// No memory is left.
pub fn allocate() -> Result<VirtAddr, OutOfMemory> {
    let mut stacks = STACKS.lock();
    let guard = region::START + *stacks * STRIDE;
    let top = guard + STRIDE;
    for page in (guard + FRAME_BYTES..top).step_by(FRAME_BYTES as usize) {
        region::map(page, frames::allocate()?)?;
    }
    *stacks += 1;
    Ok(VirtAddr::new(top))
}
