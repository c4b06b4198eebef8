//! The kernel's stacks. The page below each is never mapped (a guard page), so that a stack
//! overflow faults.

use core::ops::Range;

use spin::{Mutex, Once};
use x86_64::VirtAddr;

use super::{
    frames::{self, FRAME_BYTES, OutOfMemory, User},
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
        region::map(page, frames::allocate(User::Kernel, page)?)?;
    }
    *stacks += 1;
    Ok(VirtAddr::new(top))
}

/// The stack that the boot loader made, on which the first CPU starts.
static BOOT: Once<Range<u64>> = Once::new();

/// Records the boot loader's stack.
pub fn note_boot_stack(range: Range<u64>) {
    BOOT.call_once(|| range);
}

/// The words of the kernel stack that contains `address`, from there up to the stack's end, each
/// with its address. For an address in the guard page below a stack, as after a stack overflow, all
/// words of the stack. For an address on no stack, none.
pub fn words(address: u64) -> impl Iterator<Item = (u64, u64)> {
    let stack = containing(address).unwrap_or_default();
    let start = address.max(stack.start).next_multiple_of(size_of::<u64>() as u64);
    (start..stack.end).step_by(size_of::<u64>()).map(|at| {
        // SAFETY: the page is a stack's, which is mapped for ever; a word is aligned and may change
        // at any time.
        (at, unsafe { (at as *const u64).read_volatile() })
    })
}

fn containing(address: u64) -> Option<Range<u64>> {
    // The kernel may have panicked while it allocated a stack.
    let stacks = STACKS.try_lock().map_or(0, |stacks| *stacks);
    let own = address.checked_sub(region::START).map(|offset| offset / STRIDE);
    let own = own.filter(|index| *index < stacks).map(|index| {
        let guard = region::START + index * STRIDE;
        guard + FRAME_BYTES..guard + STRIDE
    });
    let is_on_boot_stack =
        |boot: &&Range<u64>| (boot.start - FRAME_BYTES..boot.end).contains(&address);
    own.or_else(|| BOOT.get().filter(is_on_boot_stack).cloned())
}
