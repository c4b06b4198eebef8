//! Shares a CPU with other instances. Memory, registers and counts of one instance never appear in
//! another.
//!
//! `share ID EVENTS ITERATIONS` runs a loop whose length and floating-point results depend on ID,
//! and yields its turn between pieces.

#![no_std]
#![no_main]

use core::{arch::asm, hint::black_box};

use tally::{Reading, Session, SessionConfig, Value, println, runtime::arguments};
use tally_test_guests::{Checks, yield_turn};

tally::main!(main);

static mut MINE: u64 = 0;

/// Runs a loop of three instructions, with a sum in an SSE register.
fn spin(iterations: u64, step: f64) -> f64 {
    let mut sum = 0.0_f64;
    // SAFETY: the code changes only registers.
    unsafe {
        asm!(
            "2:",
            "addsd {sum}, {step}",
            "sub {iterations}, 1",
            "jnz 2b",
            iterations = inout(reg) iterations => _,
            sum = inout(xmm_reg) sum,
            step = in(xmm_reg) step,
            options(nostack, nomem),
        );
    }
    sum
}

fn main() -> i32 {
    let mut words = arguments().skip(1);
    let id: u64 =
        words.next().and_then(|w| w.parse().ok()).expect("usage: share ID EVENTS ITERATIONS");
    let events = words.next().expect("a list of events");
    let iterations: u64 =
        words.next().and_then(|w| w.parse().ok()).expect("a number of iterations");
    let mut checks = Checks::default();
    let session = Session::open(events, SessionConfig::default()).expect("the events exist");
    session.start().expect("it was not started");
    let count = || match session.read().expect("the session is open")[0] {
        Reading { value: Value::Exact { count }, .. } => count,
        other => panic!("started, and not exact: {other:?}"),
    };
    let mut last = None;
    for piece in 0..20 {
        // SAFETY: this program has one thread.
        unsafe { (&raw mut MINE).write_volatile(id * 1000 + piece) };
        let before = count();
        let sum = black_box(spin(iterations, id as f64));
        let counted = count() - before;
        checks.equal("the sum in a register", sum, (iterations * id) as f64);
        // SAFETY: as above.
        let mine = unsafe { (&raw const MINE).read_volatile() };
        checks.equal("the word in memory", mine, id * 1000 + piece);
        // The code around the loop is always the same, and so is the count, except in the first
        // piece, in which the heap allocates memory.
        checks.equal("the count of a piece", counted, last.unwrap_or(counted));
        last = (piece > 0).then_some(counted);
        yield_turn();
    }
    println!("share {id}: done");
    checks.status()
}
