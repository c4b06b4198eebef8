//! The kernel's stacks. Each has a page below it at which nothing is ever mapped, so that a stack that
//! grows too far is a fault and not another's data.

use spin::Mutex;
use x86_64::VirtAddr;

use super::{
    frames::{self, FRAME_BYTES, OutOfMemory},
    region,
};

/// Bytes of each stack: the planner, deep in a system call, takes some 30 KiB of it.
pub const STACK_BYTES: u64 = 64 * 1024;
/// From one stack to the next, guard page included.
const STRIDE: u64 = STACK_BYTES + FRAME_BYTES;

/// Stacks so far.
static STACKS: Mutex<u64> = Mutex::new(0);

/// A new stack that lives for ever; gives the address just above it, which is aligned as calls want it.
///
/// # Errors
/// No memory.
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
