//! The virtual PMU's own leaf, as the kernel speaks to it.

use tally_abi::vpmu::{LEAF, Op, SIGNATURE, VERSION};

/// Whether the PMU of this machine is the virtual one, which keeps the truth.
pub fn is_there() -> bool {
    cpuid(Op::Identify, 0) == (VERSION, SIGNATURE)
}

/// Asks the virtual PMU for something; a processor that has none does nothing.
pub fn ask(op: Op, argument: u32) {
    cpuid(op, argument);
}

fn cpuid(op: Op, argument: u32) -> (u32, [u32; 3]) {
    let (mut eax, mut ecx, mut edx) = (LEAF, op as u32, argument);
    let ebx: u64;
    // SAFETY: CPUID changes these four registers only; RBX is the compiler's, so it is kept.
    unsafe {
        core::arch::asm!(
            "mov {saved}, rbx", "cpuid", "xchg {saved}, rbx",
            saved = out(reg) ebx,
            inout("eax") eax, inout("ecx") ecx, inout("edx") edx,
            options(nostack, preserves_flags),
        );
    }
    (eax, [ebx as u32, ecx, edx])
}
