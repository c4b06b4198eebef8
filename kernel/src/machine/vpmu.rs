//! The virtual PMU's CPUID leaf: requests of the kernel to it.

use tally_abi::vpmu::{LEAF, Op, SIGNATURE, VERSION};

/// Returns whether this machine's PMU is the virtual one, which counts the truth.
pub fn is_there() -> bool {
    cpuid(Op::Identify, 0, 0) == (VERSION, SIGNATURE)
}

/// Sends a request to the virtual PMU; a processor without one ignores it.
pub fn ask(op: Op, argument: u32) {
    cpuid(op, argument.into(), 0);
}

/// Returns whether the virtual PMU, which is there, models the event of an event select, with
/// `filter` in its off-core response register.
pub fn models(select: u64, filter: u64) -> bool {
    cpuid(Op::Models, select, filter).0 == 1
}

fn cpuid(op: Op, argument: u64, second: u64) -> (u32, [u32; 3]) {
    let (mut eax, mut ecx, mut rdx, mut rbx) = (LEAF, op as u32, argument, second);
    // SAFETY: CPUID changes these four registers only; RBX, which is the compiler's, is restored.
    unsafe {
        core::arch::asm!(
            "xchg {saved}, rbx", "cpuid", "xchg {saved}, rbx",
            saved = inout(reg) rbx,
            inout("eax") eax, inout("ecx") ecx, inout("rdx") rdx,
            options(nostack, preserves_flags),
        );
    }
    (eax, [rbx as u32, ecx, rdx as u32])
}
