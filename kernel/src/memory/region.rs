//! The kernel's own region of addresses: stacks, what it lends to programs, and the heap as it grows. An entry of the top table of its
//! own; it is made with the first stack, before there is another address space, so all of them have it and
//! what is mapped there is seen everywhere at once.

use spin::{Mutex, Once};
use x86_64::{
    PhysAddr,
    structures::paging::{PageTableFlags as Flags, PhysFrame},
};

use super::{
    frames::{self, OutOfMemory},
    tables::{index, table},
};

/// Where it begins.
pub const START: u64 = 0xffff_ff00_0000_0000;

/// The kernel's top table.
static ROOT: Once<PhysAddr> = Once::new();
/// Whoever has it is the one user of the region's tables.
static TABLES: Mutex<()> = Mutex::new(());

/// Says where the kernel's top table is. Once, before anything is mapped here.
pub fn init(root: PhysAddr) {
    ROOT.call_once(|| root);
}

/// Maps a frame at a page of the region at which there is nothing.
///
/// # Errors
/// No memory for a table, or it is too early.
pub fn map(page: u64, frame: PhysFrame) -> Result<(), OutOfMemory> {
    let _one = TABLES.lock();
    let mut at = *ROOT.get().ok_or(OutOfMemory)?;
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
