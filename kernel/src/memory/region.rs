//! The kernel's own region of addresses: stacks, shared memory, and the part of the heap that
//! grows.
//!
//! It is one entry of the top page table. The entry is made with the first stack, before there is
//! another address space, so every address space has it, and a mapping made there is in all of
//! them.

use spin::{Mutex, Once};
use x86_64::{
    PhysAddr,
    structures::paging::{PageTableFlags as Flags, PhysFrame},
};

use super::{
    frames::{self, OutOfMemory, User},
    records,
    tables::{index, table},
};

/// The region's first address.
pub const START: u64 = 0xffff_ff00_0000_0000;

/// The kernel's top table.
static ROOT: Once<PhysAddr> = Once::new();
/// Guards the region's page tables.
static TABLES: Mutex<()> = Mutex::new(());

/// Sets the kernel's top table. Once, before anything is mapped here.
pub fn init(root: PhysAddr) {
    ROOT.call_once(|| root);
}

/// Maps a frame at a page of the region that is not mapped.
///
/// # Errors
/// No memory is left for a table, or [`init`] has not run.
pub fn map(page: u64, frame: PhysFrame) -> Result<(), OutOfMemory> {
    let _one = TABLES.lock();
    let mut at = *ROOT.get().ok_or(OutOfMemory)?;
    for level in [3, 2, 1] {
        let entry = &mut table(at)[index(page, level)];
        if entry.is_unused() {
            entry.set_frame(
                frames::allocate(User::Kernel, page >> (9 * level))?,
                Flags::PRESENT | Flags::WRITABLE,
            );
        }
        at = entry.addr();
    }
    let flags = Flags::PRESENT | Flags::WRITABLE | Flags::NO_EXECUTE | Flags::GLOBAL;
    records::take_for_kernel(frame);
    table(at)[index(page, 0)].set_frame(frame, flags);
    Ok(())
}
