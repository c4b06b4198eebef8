//! The marks by which the virtual PMU knows what its truth is of.

use tally_abi::vpmu::Op;
use x86_64::registers::control::Cr3;

use super::settings::settings;
use crate::{machine::vpmu, memory::space::AddressSpace};

/// Opens or closes the region that the virtual PMU keeps the truth of. In ring 0, right beside
/// starting and stopping the counters, so that what user mode does in the region is the same, to
/// the instruction, as what counters of user mode count.
pub(super) fn mark(op: Op, tag: u32) {
    if settings().virtual_pmu {
        vpmu::ask(op, tag);
    }
}

/// The same for an address space that is not the one in use.
pub(super) fn mark_in(space: &AddressSpace, op: Op, tag: u32) {
    let (here, flags) = Cr3::read();
    // SAFETY: every space has the kernel's half, and the one in use comes back at once.
    unsafe {
        space.activate();
        mark(op, tag);
        Cr3::write(here, flags);
    }
}
