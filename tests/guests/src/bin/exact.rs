//! Counts loops of known content: what is counted all the time must be exact to the instruction,
//! whatever interrupts and system calls come between.
//!
//! The argument is the list of three events whose counts the loop has: instructions, branches,
//! loads.

#![no_std]
#![no_main]

use core::arch::asm;

use tally::{Mode, Session, SessionConfig, Slice, Value, println, runtime::arguments};
use tally_test_guests::Checks;

tally::main!(main);

/// Instructions, branches and loads of one turn of [`spin`]'s loop.
const PER_TURN: [u64; 3] = [4, 1, 1];

fn spin(turns: u64) {
    let word = 7_u64;
    // SAFETY: reads one word of its own and counts down.
    unsafe {
        asm!(
            "2:",
            "mov {value}, [{word}]",
            "lea {value}, [{value} + 1]",
            "sub {turns}, 1",
            "jnz 2b",
            turns = inout(reg) turns => _,
            word = in(reg) &raw const word,
            value = out(reg) _,
            options(nostack),
        );
    }
}

fn count(events: &str, config: SessionConfig, turns: u64) -> [u64; 3] {
    let session = Session::open(events, config).expect("the events are there");
    session.start().expect("it was not started");
    spin(turns);
    session.stop().expect("it was started");
    let readings = session.read().expect("the kernel is of this version");
    core::array::from_fn(|i| match readings[i].value {
        Value::Exact { count } => count,
        other => panic!("event {i} was not counted all the time: {other:?}"),
    })
}

fn main() -> i32 {
    let events = arguments().nth(1).expect("usage: exact LIST");
    let mut checks = Checks::default();
    // The same slice with no turn at all shows what start and stop themselves add.
    for slice in [Slice::Cycles(200_000), Slice::Cycles(20_000), Slice::Instructions(50_000)] {
        let config = SessionConfig { slice, ..SessionConfig::default() };
        let base = count(events, config, 1);
        for turns in [2, 1_000, 1_000_000, 3_000_001] {
            let found = count(events, config, turns);
            for i in 0..3 {
                checks.equal(
                    ["instructions", "branches", "loads"][i],
                    found[i] - base[i],
                    (turns - 1) * PER_TURN[i],
                );
            }
        }
    }
    other_modes(&mut checks, events);
    println!("exact: done");
    checks.status()
}

/// With the kernel's instructions counted too there is no exact number to expect, but bounds: the
/// loop has millions, and the kernel's share of it (overflow interrupts, the timer) is small.
fn other_modes(checks: &mut Checks, events: &str) {
    const TURNS: u64 = 3_000_001;
    let [kernel, full] = [Mode::Kernel, Mode::Full]
        .map(|mode| count(events, SessionConfig { mode, ..SessionConfig::default() }, TURNS)[0]);
    let user = TURNS * PER_TURN[0];
    checks.equal("the kernel's own instructions", (1..user / 20).contains(&kernel), true);
    checks.equal("all instructions", (user..user + user / 20).contains(&full), true);
    println!("exact: {kernel} in the kernel, {full} in all, {user} in the loop");
}
