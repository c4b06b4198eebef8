//! Marks for the virtual PMU's truth: the beginnings and ends of its regions.

use tally_abi::vpmu::Op;
use tally_pmu::virtual_pmu;
use x86_64::registers::control::Cr3;

use super::settings::settings;
use crate::memory::space::AddressSpace;

/// Opens or closes the truth's region `tag` in the virtual PMU. In ring 0, directly before or after
/// the start and the stop of the counters, so that the region's truth of user mode and the counters
/// agree to the instruction.
pub(super) fn mark(op: Op, tag: u32) {
    if settings().virtual_pmu {
        virtual_pmu::ask(op, tag);
    }
}

/// Opens the truth's region `tag` for a program that has not run yet.
pub fn open_region(space: &AddressSpace, tag: u32) {
    mark_in(space, Op::Open, tag);
}

/// Closes the truth's region `tag` of the program that runs on this CPU.
pub fn close_region(tag: u32) {
    mark(Op::Close, tag);
}

/// [`mark`] for an address space that is not in use.
pub(super) fn mark_in(space: &AddressSpace, op: Op, tag: u32) {
    let (here, flags) = Cr3::read();
    // SAFETY: every space has the kernel's half, and the space in use is activated again at once.
    unsafe {
        space.activate();
        mark(op, tag);
        Cr3::write(here, flags);
    }
}
