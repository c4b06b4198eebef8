//! The kernel's own address space, which CPUs use while they run no program, and its stacks.
//!
//! [`init`] runs once, at boot, on the first CPU; everything else may run on every CPU after it.

use spin::Once;
use x86_64::{PhysAddr, VirtAddr};

use super::{region, space::AddressSpace, stacks};

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

/// Allocates a kernel stack that is never freed. Returns the address just above it.
///
/// # Panics
/// No memory is left: a CPU cannot run without its stacks.
pub fn allocate_stack() -> VirtAddr {
    stacks::allocate().expect("there is memory for a CPU's stacks")
}
