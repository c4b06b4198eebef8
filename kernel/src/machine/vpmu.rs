//! The virtual PMU's CPUID leaf: requests of the kernel to it.

use tally_abi::vpmu::{LEAF, Op, SIGNATURE, VERSION};

/// Returns whether this machine's PMU is the virtual one, which counts the truth.
pub fn is_there() -> bool {
    cpuid(Op::Identify, 0) == (VERSION, SIGNATURE)
}

/// Sends a request to the virtual PMU; a processor without one ignores it.
pub fn ask(op: Op, argument: u32) {
    cpuid(op, argument);
}

fn cpuid(op: Op, argument: u32) -> (u32, [u32; 3]) {
    let (mut eax, mut ecx, mut edx) = (LEAF, op as u32, argument);
    let ebx: u64;
    // SAFETY: CPUID changes these four registers only; RBX, which is the compiler's, is restored.
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
