//! Shares a CPU with others of its kind: each keeps its own memory, registers and counts.
//!
//! `share ID EVENTS TURNS` runs a loop whose length and floating-point results depend on ID, gives
//! its turn away between pieces, and checks that nothing of the others' shows.

#![no_std]
#![no_main]

use core::{arch::asm, hint::black_box};

use tally::{Session, SessionConfig, println, runtime::arguments};
use tally_test_guests::{Checks, instructions, yield_turn};

tally::main!(main);

static mut MINE: u64 = 0;

/// Counts down in three instructions a turn, with the sum in an SSE register all the while.
fn spin(turns: u64, step: f64) -> f64 {
    let mut sum = 0.0_f64;
    // SAFETY: works on registers alone.
    unsafe {
        asm!(
            "2:",
            "addsd {sum}, {step}",
            "sub {turns}, 1",
            "jnz 2b",
            turns = inout(reg) turns => _,
            sum = inout(xmm_reg) sum,
            step = in(xmm_reg) step,
            options(nostack, nomem),
        );
    }
    sum
}

fn main() -> i32 {
    let mut words = arguments().skip(1);
    let id: u64 = words.next().and_then(|w| w.parse().ok()).expect("usage: share ID EVENTS TURNS");
    let events = words.next().expect("a list of events");
    let turns: u64 = words.next().and_then(|w| w.parse().ok()).expect("a number of turns");
    let mut checks = Checks::default();
    let session = Session::open(events, SessionConfig::default()).expect("the events exist");
    session.start().expect("it was not started");
    let told = || instructions(&session).expect("it was started");
    let mut last = None;
    for piece in 0..20 {
        // SAFETY: the one thread of this program.
        unsafe { (&raw mut MINE).write_volatile(id * 1000 + piece) };
        let before = told();
        let sum = black_box(spin(turns, id as f64));
        let counted = told() - before;
        checks.equal("the sum", sum, (turns * id) as f64);
        // SAFETY: as above.
        let mine = unsafe { (&raw const MINE).read_volatile() };
        checks.equal("the memory", mine, id * 1000 + piece);
        // What surrounds the loop is the same each time, so the count is too, to the instruction;
        // but for the first time, when the heap asks for its memory.
        checks.equal("the count", counted, last.unwrap_or(counted));
        last = (piece > 0).then_some(counted);
        yield_turn();
    }
    println!("share {id}: done");
    checks.status()
}
