//! Counts loops of known content. Pinned events must be exact, with interrupts and system calls in
//! between.
//!
//! `exact EVENTS`: the names of instructions, branches and loads, in this order.

#![no_std]
#![no_main]

use core::arch::asm;

use tally::{Mode, Session, SessionConfig, Slice, Value, println, runtime::arguments};
use tally_test_guests::Checks;

tally::main!(main);

/// Instructions, branches and loads of one iteration of [`spin`].
const PER_ITERATION: [u64; 3] = [4, 1, 1];

fn spin(iterations: u64) {
    let word = 7_u64;
    // SAFETY: reads a local word and changes two registers.
    unsafe {
        asm!(
            "2:",
            "mov {value}, [{word}]",
            "lea {value}, [{value} + 1]",
            "sub {iterations}, 1",
            "jnz 2b",
            iterations = inout(reg) iterations => _,
            word = in(reg) &raw const word,
            value = out(reg) _,
            options(nostack),
        );
    }
}

/// Values of the three events: exact counts of ring 3, and estimates where ring 0 counts too.
fn count(events: &str, config: SessionConfig, iterations: u64) -> [u64; 3] {
    let session = Session::open(events, config).expect("the events exist");
    session.start().expect("it was not started");
    spin(iterations);
    session.stop().expect("it was started");
    let readings = session.read().expect("the session is open");
    core::array::from_fn(|i| match readings[i].value {
        Value::Exact { count } => count,
        Value::Estimated { estimate, .. } if config.mode != Mode::User => estimate,
        other => panic!("event {i} is not exact: {other:?}"),
    })
}

fn main() -> i32 {
    let events = arguments().nth(1).expect("usage: exact EVENTS");
    let mut checks = Checks::default();
    // One iteration with the same slice gives the instructions that start and stop add.
    for slice in [Slice::Cycles(200_000), Slice::Cycles(20_000), Slice::Instructions(50_000)] {
        let config = SessionConfig { slice, ..SessionConfig::default() };
        let base = count(events, config, 1);
        for iterations in [2, 1_000, 1_000_000, 3_000_001] {
            let found = count(events, config, iterations);
            for i in 0..3 {
                checks.equal(
                    ["instructions", "branches", "loads"][i],
                    found[i] - base[i],
                    (iterations - 1) * PER_ITERATION[i],
                );
            }
        }
    }
    other_modes(&mut checks, events);
    println!("exact: done");
    checks.status()
}

/// Checks bounds of the count where the kernel's instructions are included: the loop has millions
/// of instructions, and the kernel's overflow interrupts and timer interrupts add at most 5 %.
fn other_modes(checks: &mut Checks, events: &str) {
    const ITERATIONS: u64 = 3_000_001;
    let [kernel, full] = [Mode::Kernel, Mode::Full].map(|mode| {
        count(events, SessionConfig { mode, ..SessionConfig::default() }, ITERATIONS)[0]
    });
    let user = ITERATIONS * PER_ITERATION[0];
    checks.equal("instructions of ring 0", (1..user / 20).contains(&kernel), true);
    checks.equal("instructions of both rings", (user..user + user / 20).contains(&full), true);
    println!("exact: {kernel} in the kernel, {full} in all, {user} in the loop");
}
