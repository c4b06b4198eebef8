//! Regions of exact counts: the virtual PMU counts every event in this address space between
//! [`open`] and [`close`], exactly.
//!
//! Without the virtual PMU the functions have no effect.

use tally_abi::vpmu::{LEAF, Op};

/// Opens the region `tag`.
pub fn open(tag: u32) {
    mark(Op::Open, tag);
}

/// Closes the region `tag`.
pub fn close(tag: u32) {
    mark(Op::Close, tag);
}

/// Closes the region `tag` and opens the region `tag + 1` at the same moment, so that every
/// instruction is in one of them.
pub fn next(tag: u32) {
    mark(Op::Next, tag);
}

/// Makes the virtual PMU raise a PMI on this CPU after `instructions` more instructions, in any
/// ring. Tests use it to interrupt at every possible instruction.
pub fn interrupt(instructions: u32) {
    mark(Op::Interrupt, instructions);
}

fn mark(op: Op, tag: u32) {
    // SAFETY: CPUID changes these four registers only; RBX, which the compiler reserves, is
    // restored.
    unsafe {
        core::arch::asm!(
            "mov {saved}, rbx", "cpuid", "mov rbx, {saved}",
            saved = out(reg) _,
            inout("eax") LEAF => _, inout("ecx") op as u32 => _, inout("edx") tag => _,
            options(nostack, preserves_flags),
        );
    }
}
