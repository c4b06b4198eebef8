//! The kernel's stacks. Each has a page below it at which nothing is ever mapped, so that a stack that
//! grows too far is a fault and not another's data.

use spin::Mutex;
use x86_64::{
    PhysAddr, VirtAddr,
    structures::paging::{PageTableFlags as Flags, PhysFrame},
};

use super::{
    frames::{self, FRAME_BYTES, OutOfMemory},
    space::{index, table},
};

/// Bytes of each stack: the planner, deep in a system call, takes some 30 KiB of it.
pub const STACK_BYTES: u64 = 64 * 1024;
/// Where stacks are: an entry of the top table of their own. The first stack is made before there is
/// another address space, so all of them have that entry.
const REGION: u64 = 0xffff_ff00_0000_0000;
/// From one stack to the next, guard page included.
const STRIDE: u64 = STACK_BYTES + FRAME_BYTES;

/// Stacks so far.
static STACKS: Mutex<u64> = Mutex::new(0);

/// A new stack that lives for ever, mapped under the top table at `root`; gives the address just
/// above it, which is aligned as calls want it.
///
/// # Errors
/// No memory.
pub fn allocate(root: PhysAddr) -> Result<VirtAddr, OutOfMemory> {
    let mut stacks = STACKS.lock();
    let guard = REGION + *stacks * STRIDE;
    let top = guard + STRIDE;
    for page in (guard + FRAME_BYTES..top).step_by(FRAME_BYTES as usize) {
        map(root, page, frames::allocate()?)?;
    }
    *stacks += 1;
    Ok(VirtAddr::new(top))
}

/// Maps a page of the region. The lock makes this the one user of the region's tables.
fn map(root: PhysAddr, page: u64, frame: PhysFrame) -> Result<(), OutOfMemory> {
    let mut at = root;
    for level in [3, 2, 1] {
        let entry = &mut table(at)[index(page, level)];
        if entry.is_unused() {
            entry.set_frame(frames::allocate()?, Flags::PRESENT | Flags::WRITABLE);
        }
        at = entry.addr();
    }
    let flags = Flags::PRESENT | Flags::WRITABLE | Flags::NO_EXECUTE;
    table(at)[index(page, 0)].set_frame(frame, flags);
    Ok(())
}
