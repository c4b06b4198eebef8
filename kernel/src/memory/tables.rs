//! Page tables: access to them in memory, and walks through them.

use x86_64::{
    PhysAddr,
    structures::paging::{
        PageTable, PageTableFlags as Flags, PhysFrame, page_table::PageTableEntry,
    },
};

use super::{
    frames::{self, FRAME_BYTES, kernel_view},
    records,
};

/// Flag of a program's page whose frame is the kernel's and is not freed with the program: a bit
/// that processors ignore (Intel SDM volume 3, "Page-Table Entry that Maps a 4-KByte Page").
pub(super) const LENT: Flags = Flags::BIT_9;

/// The table in a frame.
pub(super) fn table<'a>(frame: PhysAddr) -> &'a mut PageTable {
    // SAFETY: (1) callers pass frames that hold page tables, mapped writable in the kernel's view;
    // (2) an address space's tables are used only through its one owner; after boot, the tables of
    // the kernel's upper half do not change, except the region's, which a lock guards.
    unsafe { &mut *kernel_view(frame).as_mut_ptr() }
}

/// The index of an address in its table of a level: 0 for the table of pages, 3 for the top.
pub(super) fn index(address: u64, level: u32) -> usize {
    (address >> (12 + 9 * level)) as usize & 511
}

/// The entry of the small page that maps an address, in the tables below `root`, the top table.
pub(super) fn small_page<'a>(root: PhysAddr, address: u64) -> Option<&'a mut PageTableEntry> {
    let mut frame = root;
    for level in [3, 2, 1] {
        let entry = &table(frame)[index(address, level)];
        if entry.is_unused() || entry.flags().contains(Flags::HUGE_PAGE) {
            return None;
        }
        frame = entry.addr();
    }
    Some(&mut table(frame)[index(address, 0)]).filter(|entry| !entry.is_unused())
}

/// The first page of `[start, end)` that is mapped by `frame`, the table of `level` (0: its entries
/// are pages) that contains `start`.
pub(super) fn first_page(frame: PhysAddr, level: u32, start: u64, end: u64) -> Option<u64> {
    let span = FRAME_BYTES << (9 * level);
    let mut at = start;
    while at < end {
        let entry = &table(frame)[index(at, level)];
        let found = match level {
            _ if entry.is_unused() => None,
            0 => Some(at),
            _ => first_page(entry.addr(), level - 1, at, end),
        };
        if found.is_some() || index(at, level) == 511 {
            return found;
        }
        at = at - at % span + span;
    }
    None
}

/// Frees the tables and pages below `frame`, which is a table of `level` (0: its entries are
/// pages).
pub(super) fn free_below(frame: PhysAddr, level: u32, entries: usize) {
    for entry in table(frame).iter().take(entries).filter(|entry| !entry.is_unused()) {
        if level > 0 {
            free_below(entry.addr(), level - 1, 512);
        }
        let flags = entry.flags();
        if level > 0 {
            records::leave_table(PhysFrame::containing_address(entry.addr()));
        }
        if level > 0 || flags.contains(Flags::USER_ACCESSIBLE) && !flags.contains(LENT) {
            // SAFETY: tables and pages of a lower half come from the allocator and belong to this
            // space alone; frames that are not the program's (`map_identity`, `lend`) are skipped.
            unsafe { frames::free(PhysFrame::containing_address(entry.addr())) };
        }
    }
}
