//! The kernel's own address space, which CPUs use while they run no program, and its stacks.
//!
//! [`init`] runs once, at boot, on the first CPU; everything else may run on every CPU after it.

use core::ops::Range;

use spin::Once;
use x86_64::{
    PhysAddr, VirtAddr,
    instructions::tlb,
    structures::paging::{PageTableFlags as Flags, page_table::PageTableEntry},
};

use super::{frames::FRAME_BYTES, region, space::AddressSpace, stacks, tables};

static SPACE: Once<AddressSpace> = Once::new();

/// Takes the kernel's page tables, which are never freed, and activates them.
pub fn init(space: AddressSpace) {
    region::init(PhysAddr::new(space.id()));
    SPACE.call_once(|| space);
    activate_space();
}

/// The kernel's own address space.
pub fn space() -> &'static AddressSpace {
    SPACE.get().expect("memory::kernel::init runs first")
}

/// Makes this CPU use the kernel's own address space, in place of a program's.
pub fn activate_space() {
    // SAFETY: the kernel's own space is never dropped.
    unsafe { space().activate() };
}

/// Makes the processor combine writes to a range that the boot loader mapped in small pages, which
/// `arch::control::set_memory_types` gives the type for it. Returns the number of these pages. At
/// boot, while one CPU runs.
pub fn combine_writes(range: Range<u64>) -> usize {
    let pages = range.step_by(FRAME_BYTES as usize);
    let root = PhysAddr::new(space().id());
    let mapped = pages.filter_map(|page| Some((page, tables::small_page(root, page)?)));
    let combine = |(page, entry): (u64, &mut PageTableEntry)| {
        entry.set_flags(entry.flags() | Flags::WRITE_THROUGH);
        tlb::flush(VirtAddr::new(page));
    };
    mapped.map(combine).count()
}

/// Allocates a kernel stack that is never freed. Returns the address just above it.
///
/// # Panics
/// No memory is left: a CPU cannot run without its stacks.
pub fn allocate_stack() -> VirtAddr {
    stacks::allocate().expect("there is memory for a CPU's stacks")
}
