//! Regions whose truth the virtual PMU keeps: everything that happens in this address space between
//! [`open`] and [`close`], event by event, to the one.
//!
//! On a machine without the virtual PMU they do nothing.

use tally_abi::vpmu::{LEAF, Op};

/// Opens the region `tag`.
pub fn open(tag: u32) {
    mark(Op::Open, tag);
}

/// Closes the region `tag`.
pub fn close(tag: u32) {
    mark(Op::Close, tag);
}

/// Has the virtual PMU raise an overflow interrupt on this CPU behind so many more instructions, in
/// whichever ring: what an interrupt at the worst moment does can so be tried, moment by moment.
pub fn interrupt(behind: u32) {
    mark(Op::Interrupt, behind);
}

fn mark(op: Op, tag: u32) {
    // SAFETY: CPUID changes these four registers only; RBX is the compiler's, so it is kept.
    unsafe {
        core::arch::asm!(
            "mov {saved}, rbx", "cpuid", "mov rbx, {saved}",
            saved = out(reg) _,
            inout("eax") LEAF => _, inout("ecx") op as u32 => _, inout("edx") tag => _,
            options(nostack, preserves_flags),
        );
    }
}
