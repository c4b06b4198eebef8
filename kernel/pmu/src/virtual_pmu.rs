//! CPUID leaf of the virtual PMU: requests from the kernel and from libraries.

use alloc::format;

use tally_abi::{
    Error,
    vpmu::{LEAF, Op, SIGNATURE, VERSION},
};
use tally_engine::Demand;

use crate::catalogue::{ResolveError, Resolved};

/// Returns whether this machine's PMU is the virtual one, whose counts are exact.
pub fn is_there() -> bool {
    cpuid(Op::Identify, 0, 0) == (VERSION, SIGNATURE)
}

/// Sends a request to the virtual PMU; a processor without one ignores it.
pub fn ask(op: Op, argument: u32) {
    cpuid(op, argument.into(), 0);
}

/// Returns whether the virtual PMU, which must exist, models an event. It counts no other events.
pub fn models(demand: &Demand) -> bool {
    let filter = demand.extra.map_or(0, |extra| extra.value);
    demand.is_always_counted() || cpuid(Op::Models, demand.selector.0, filter).0 == 1
}

/// The refusal of an event that the virtual PMU does not model. Its counters would silently stay at
/// 0.
pub fn unmodelled(event: &Resolved) -> ResolveError {
    let remedy = match event.native {
        Some(name) => format!("`cargo xtask events {name}` says whether it does with others"),
        None => "`cargo xtask events` lists what it models".into(),
    };
    ResolveError {
        event: event.name.clone(),
        error: Error::EventNotSupported,
        detail: format!("the virtual PMU does not model it with its options; {remedy}"),
    }
}

/// Returns the number of counters of this CPU's counter unit; 0 without one. Its driver is
/// [`crate::CounterUnit`].
pub fn unit_counters() -> u32 {
    if is_there() { cpuid(Op::Unit, 0, 0).0 } else { 0 }
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
