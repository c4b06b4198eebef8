//! Replacing the boot loader's page tables with the kernel's.
//!
//! The boot loader maps all physical addresses that the firmware lists, device windows far above
//! memory among them, and uses up to tens of megabytes for the tables. The kernel makes tables of
//! its own, for memory alone and with large pages for its code, keeps the boot loader's tables that
//! map the image's data, the stack and the ramdisk in small pages, and frees the rest. The boot
//! loader also marks memory as its own that it only skipped; the kernel frees every such frame that
//! no table maps.
//!
//! All pages are global: the upper half is the same in every address space, and no page of it is
//! unmapped or mapped anew.

use alloc::vec::Vec;

use bootloader_api::info::{MemoryRegion, MemoryRegionKind};
use raw_cpuid::CpuId;
use x86_64::{
    PhysAddr, VirtAddr,
    registers::control::Cr3,
    structures::paging::{PageTableFlags as Flags, PhysFrame},
};

use super::{
    frames::{self, FRAME_BYTES, LARGE_BYTES, OutOfMemory, kernel_view},
    space::AddressSpace,
    tables::{index, table},
};

const GIB: u64 = 1 << 30;
/// The devices that every PC has, such as the interrupt controller, are below this address.
const ALWAYS_MAPPED: u64 = 4 * GIB;
/// UEFI memory types of ACPI's tables (UEFI specification, "Memory Type Usage").
const ACPI_TYPES: [u32; 2] = [9, 10];
/// Bytes that one entry of the top table spans.
const TOP_ENTRY_BYTES: u64 = 512 * GIB;

/// Makes the kernel's own page tables, activates them, and frees the boot loader's memory that
/// nothing maps any more. The boot loader's view of physical memory begins at `offset`, and so does
/// the new one. The lower half of the new tables is empty.
///
/// # Errors
/// No memory is left for the tables.
pub fn take_over(regions: &[MemoryRegion], offset: u64) -> Result<AddressSpace, OutOfMemory> {
    let mut space = AddressSpace::with_upper_half(Cr3::read().0)?;
    detach_view(&mut space, offset);
    for entry in table(PhysAddr::new(space.id())).iter_mut().filter(|entry| !entry.is_unused()) {
        entry.set_frame(copy_tables(entry.addr(), 2)?, entry.flags());
    }
    let mut kept = Vec::new();
    collect_frames(PhysAddr::new(space.id()), 3, &mut kept);
    kept.sort_unstable();
    let end = regions.iter().filter(|r| is_memory(r)).map(|r| r.end).max().unwrap_or(0);
    map_view(&mut space, offset, end.max(ALWAYS_MAPPED))?;
    frames::set_view_end(end.max(ALWAYS_MAPPED));
    // SAFETY: the new tables map the kernel as the old ones do, and physical memory at the same
    // addresses; the caller never frees them.
    unsafe { space.activate() };
    for region in regions.iter().filter(|r| r.kind == MemoryRegionKind::Bootloader) {
        for start in (region.start..region.end).step_by(FRAME_BYTES as usize) {
            let frame = PhysFrame::containing_address(PhysAddr::new(start));
            if kept.binary_search(&frame).is_ok() {
                frames::add_in_use();
            } else {
                // SAFETY: the boot loader has ended, and the frame neither holds a table in use nor
                // is mapped by one, but for the view of physical memory.
                unsafe { frames::reclaim(frame) };
            }
        }
    }
    Ok(space)
}

fn is_memory(region: &MemoryRegion) -> bool {
    match region.kind {
        MemoryRegionKind::Usable | MemoryRegionKind::Bootloader => true,
        MemoryRegionKind::UnknownUefi(kind) => ACPI_TYPES.contains(&kind),
        _ => false,
    }
}

/// Removes the boot loader's view of physical memory from the new top table: the entries whose
/// first page maps the physical address that the view has there.
fn detach_view(space: &mut AddressSpace, offset: u64) {
    let entries = table(PhysAddr::new(space.id())).iter_mut().skip(index(offset, 3));
    for (entry, expected) in entries.zip((0..).step_by(TOP_ENTRY_BYTES as usize)) {
        if entry.is_unused() || first_mapped(entry.addr()) != Some(expected) {
            break;
        }
        entry.set_unused();
    }
}

/// Copies a table of `level` and those below it. Pages become global, and a table whose pages are
/// all code a large page. Tables of small pages are not copied, but changed in place; that of code
/// stays as it is, as no processor may have both in its TLB.
fn copy_tables(from: PhysAddr, level: u32) -> Result<PhysFrame, OutOfMemory> {
    let copy = frames::allocate()?;
    for (new, old) in table(copy.start_address()).iter_mut().zip(table(from).iter()) {
        *new = old.clone();
        if old.is_unused() {
            continue;
        } else if old.flags().contains(Flags::HUGE_PAGE) {
            new.set_flags(old.flags() | Flags::GLOBAL);
        } else if level > 1 {
            new.set_frame(copy_tables(old.addr(), level - 1)?, old.flags());
        } else if is_code(old.addr()) {
            let flags = Flags::PRESENT | Flags::HUGE_PAGE | Flags::GLOBAL;
            new.set_addr(copy_code(old.addr())?, flags);
        } else {
            for page in table(old.addr()).iter_mut().filter(|page| !page.is_unused()) {
                page.set_flags(page.flags() | Flags::GLOBAL);
            }
        }
    }
    Ok(copy)
}

/// Returns whether all pages of a table are code.
fn is_code(pages: PhysAddr) -> bool {
    let mut used = table(pages).iter().filter(|page| !page.is_unused()).peekable();
    used.peek().is_some()
        && used.all(|page| !page.flags().intersects(Flags::NO_EXECUTE | Flags::WRITABLE))
}

/// Copies the pages of a table of code into a block of the size of a large page. Between them and
/// around there are breakpoint instructions.
fn copy_code(pages: PhysAddr) -> Result<PhysAddr, OutOfMemory> {
    const BREAKPOINT: u8 = 0xcc;
    let block = frames::allocate_block(LARGE_BYTES)?;
    let offsets = (0..).step_by(FRAME_BYTES as usize);
    for (page, offset) in table(pages).iter().zip(offsets) {
        let to: *mut u8 = kernel_view(block + offset).as_mut_ptr();
        // SAFETY: the block was allocated just now, and is as large as all pages of a table.
        unsafe { to.write_bytes(BREAKPOINT, FRAME_BYTES as usize) };
        if !page.is_unused() {
            let from: *const u8 = kernel_view(page.addr()).as_ptr();
            // SAFETY: as above; nothing writes code.
            unsafe { to.copy_from_nonoverlapping(from, FRAME_BYTES as usize) };
        }
    }
    Ok(block)
}

/// Adds the frames of the tables below `frame`, and of the pages that they map, to `kept`.
fn collect_frames(frame: PhysAddr, level: u32, kept: &mut Vec<PhysFrame>) {
    for entry in table(frame).iter().filter(|entry| !entry.is_unused()) {
        kept.push(PhysFrame::containing_address(entry.addr()));
        if level > 0 && !entry.flags().contains(Flags::HUGE_PAGE) {
            collect_frames(entry.addr(), level - 1, kept);
        }
    }
}

/// The physical address that the first entry below a table of level 2 maps.
fn first_mapped(mut tables: PhysAddr) -> Option<u64> {
    for level in [2, 1, 0] {
        let entry = &table(tables)[0];
        if entry.is_unused() {
            return None;
        }
        if level == 0 || entry.flags().contains(Flags::HUGE_PAGE) {
            return Some(entry.addr().as_u64());
        }
        tables = entry.addr();
    }
    None
}

/// Maps physical addresses below `end` at `offset`, in the largest pages that the processor has.
fn map_view(space: &mut AddressSpace, offset: u64, end: u64) -> Result<(), OutOfMemory> {
    let features = CpuId::new().get_extended_processor_and_feature_identifiers();
    let giant = features.is_some_and(|f| f.has_1gib_pages());
    let (level, bytes) = if giant { (2, GIB) } else { (1, LARGE_BYTES) };
    let flags =
        Flags::PRESENT | Flags::WRITABLE | Flags::NO_EXECUTE | Flags::HUGE_PAGE | Flags::GLOBAL;
    for physical in (0..end).step_by(bytes as usize) {
        let entry = space.kernel_entry(VirtAddr::new(offset + physical), level)?;
        entry.set_addr(PhysAddr::new(physical), flags);
    }
    Ok(())
}
