//! Tries to change the truth of its own session: `forge EVENTS`.
//!
//! During a session the program sends operations to the virtual PMU from ring 3, by its CPUID leaf:
//! it closes the sessions with the first tags, ends the truth, and opens and closes regions with
//! the same tags. Its status is 1 if the virtual PMU reports success for an operation of ring 0.

#![no_std]
#![no_main]

use core::hint::black_box;

use tally::{Session, SessionConfig, region, runtime::arguments};
use tally_abi::vpmu::{LEAF, Op};

tally::main!(main);

fn work() {
    (0..10_000u32).for_each(|round| _ = black_box(round));
}

/// Sends an operation to the virtual PMU and returns its answer in EAX.
fn send(op: Op, tag: u32) -> u32 {
    let answer: u32;
    // SAFETY: CPUID changes only these four registers; RBX is reserved by the compiler, so it is
    // restored.
    unsafe {
        core::arch::asm!(
            "mov {saved}, rbx", "cpuid", "mov rbx, {saved}",
            saved = out(reg) _,
            inout("eax") LEAF => answer, inout("ecx") op as u32 => _, inout("edx") tag => _,
            options(nostack, preserves_flags),
        );
    }
    answer
}

fn main() -> i32 {
    let events = arguments().nth(1).expect("usage: forge EVENTS");
    let session = Session::open(events, SessionConfig::default()).expect("the events exist");
    session.start().expect("it was not started");
    work();
    let mut obeyed = 0;
    for tag in 0..8 {
        obeyed |= send(Op::CloseSession, tag) | send(Op::OpenSession, tag);
        obeyed |= send(Op::CloseSession, tag);
        region::open(tag);
        work();
        region::close(tag);
    }
    obeyed |= send(Op::End, 0);
    work();
    session.stop().expect("it runs");
    obeyed as i32
}
