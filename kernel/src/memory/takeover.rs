//! Replacing the boot loader's page tables with the kernel's.
//!
//! The boot loader maps all physical addresses that the firmware lists, device windows far above
//! memory among them, and uses up to tens of megabytes for the tables. The kernel makes tables of
//! its own, for memory alone, and copies its image: code into large pages, the rest into frames of
//! its pages' colours. The boot loader's tables that map the stack and the ramdisk in small pages
//! stay, and the rest is freed. The boot loader also marks memory as its own that it only skipped;
//! the kernel frees every such frame that no table maps.
//!
//! All pages are global: the upper half is the same in every address space, and no page of it is
//! unmapped or mapped anew.

use alloc::vec::Vec;

use bootloader_api::info::{MemoryRegion, MemoryRegionKind};
use raw_cpuid::CpuId;
use tally_abi::boot::KERNEL_BASE;
use x86_64::{
    PhysAddr, VirtAddr,
    registers::control::Cr3,
    structures::paging::{PageTableFlags as Flags, PhysFrame, page_table::PageTableEntry},
};

use super::{
    frames::{self, FRAME_BYTES, LARGE_BYTES, OutOfMemory, User, kernel_view},
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
    let mut image = Vec::new();
    for (number, entry) in table(PhysAddr::new(space.id())).iter_mut().enumerate() {
        if !entry.is_unused() {
            // The boot loader puts nothing else into the entry of the image.
            let image = (number == index(KERNEL_BASE, 3)).then_some(&mut image);
            entry.set_frame(copy_tables(entry.addr(), 2, image)?, entry.flags());
        }
    }
    let mut kept = Vec::new();
    collect_frames(PhysAddr::new(space.id()), 3, &mut kept);
    kept.sort_unstable();
    let end = regions.iter().filter(|r| is_memory(r)).map(|r| r.end).max().unwrap_or(0);
    map_view(&mut space, offset, end.max(ALWAYS_MAPPED))?;
    frames::set_view_end(end.max(ALWAYS_MAPPED));
    // Last, as nothing may write to a static variable from here on until the copies are in use.
    image.iter().for_each(Copied::fill);
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

/// A page of the image: the frame that the boot loader chose, and the one that it is copied to.
struct Copied {
    from: PhysAddr,
    to: PhysAddr,
}

impl Copied {
    fn fill(&self) {
        let [from, to] = [self.from, self.to].map(|frame| kernel_view(frame).as_mut_ptr::<u8>());
        // SAFETY: (1) both are whole frames, in the boot loader's view; (2) `to` was allocated for
        // this and nothing uses it yet; (3) this is the one CPU that runs, and the image's
        // statics do not change meanwhile.
        unsafe { to.copy_from_nonoverlapping(from, FRAME_BYTES as usize) };
    }
}

/// Copies a table of `level` and those below it. Pages become global. With `image`, the list of its
/// pages, pages get frames of the kernel's choice, and a table whose pages are all code becomes a
/// large page; without, tables of small pages are not copied, but changed in place.
fn copy_tables(
    from: PhysAddr,
    level: u32,
    mut image: Option<&mut Vec<Copied>>,
) -> Result<PhysFrame, OutOfMemory> {
    let copy = frames::allocate(User::Image, 0)?;
    for (new, old) in table(copy.start_address()).iter_mut().zip(table(from).iter()) {
        *new = old.clone();
        let image = image.as_deref_mut();
        if old.is_unused() {
            continue;
        } else if old.flags().contains(Flags::HUGE_PAGE) {
            new.set_flags(old.flags() | Flags::GLOBAL);
        } else if level > 1 {
            new.set_frame(copy_tables(old.addr(), level - 1, image)?, old.flags());
        } else if let Some(image) = image {
            if is_code(old.addr()) {
                let flags = Flags::PRESENT | Flags::HUGE_PAGE | Flags::GLOBAL;
                new.set_addr(move_code(old.addr(), image)?, flags);
            } else {
                new.set_frame(move_pages(old.addr(), image)?, old.flags());
            }
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

/// A block of the size of a large page for the code of a table. Between pages of code and around
/// them there are breakpoint instructions.
fn move_code(pages: PhysAddr, image: &mut Vec<Copied>) -> Result<PhysAddr, OutOfMemory> {
    const BREAKPOINT: u8 = 0xcc;
    let block = frames::allocate_block(User::Image, LARGE_BYTES)?;
    let view: *mut u8 = kernel_view(block).as_mut_ptr();
    // SAFETY: the block was allocated just now, and is as large as all pages of a table.
    unsafe { view.write_bytes(BREAKPOINT, LARGE_BYTES as usize) };
    let used = table(pages).iter().enumerate().filter(|(_, page)| !page.is_unused());
    let moved = |(number, page): (usize, &PageTableEntry)| Copied {
        from: page.addr(),
        to: block + number as u64 * FRAME_BYTES,
    };
    image.extend(used.map(moved));
    Ok(block)
}

/// A table like `pages`, with frames of the kernel's choice. A page's colour is its place in the
/// table, wherever the image has grown.
fn move_pages(pages: PhysAddr, image: &mut Vec<Copied>) -> Result<PhysFrame, OutOfMemory> {
    let copy = frames::allocate(User::Image, 0)?;
    let both = table(copy.start_address()).iter_mut().zip(table(pages).iter()).enumerate();
    for (number, (new, old)) in both.filter(|(_, (_, old))| !old.is_unused()) {
        let frame = frames::allocate(User::Image, number as u64 * FRAME_BYTES)?;
        new.set_frame(frame, old.flags() | Flags::GLOBAL);
        image.push(Copied { from: old.addr(), to: frame.start_address() });
    }
    Ok(copy)
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
