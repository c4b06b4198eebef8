//! Runs through many group switches, whose cost `cargo xtask bench switch` measures.
//!
//! `switches EVENTS CYCLES MODE COUNT` opens a session with slices of CYCLES in the mode `user`,
//! `kernel` or `full`, prints `begin` after a warm-up, and runs until COUNT overflow interrupts
//! have ended a slice.

#![no_std]
#![no_main]

use core::hint::black_box;

use tally::{Mode, Session, SessionConfig, Slice, println, runtime::arguments, session};

tally::main!(main);

/// Overflow interrupts after which every group has had its turn.
const WARM_UP: u64 = 20;

/// Executes loads, stores, branches and multiplications, so that most events occur.
fn work(memory: &mut [u64; 512]) {
    let mut sum = 1_u64;
    for iteration in 0..2000 {
        let slot = &mut memory[(sum >> 32) as usize % 512];
        sum = sum.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ *slot;
        *slot = if sum & 1 == 1 { sum } else { iteration };
    }
    black_box(memory);
}

fn main() -> i32 {
    let mut words = arguments().skip(1);
    let events = words.next().expect("usage: switches EVENTS CYCLES MODE COUNT");
    let cycles = words.next().and_then(|word| word.parse().ok()).expect("a number of cycles");
    let mode = match words.next() {
        Some("user") => Mode::User,
        Some("kernel") => Mode::Kernel,
        Some("full") => Mode::Full,
        other => panic!("{other:?} is not a mode: use user, kernel or full"),
    };
    let count: u64 = words.next().and_then(|word| word.parse().ok()).expect("a number of switches");
    // Without a budget the slices keep their length.
    let slice = Slice::Cycles(cycles);
    let budget_ppm = session::NO_BUDGET_PPM;
    let config = SessionConfig { mode, slice, budget_ppm, ..SessionConfig::default() };
    let session = Session::open(events, config).expect("the events exist");
    let mut memory = [0; 512];
    session.start().expect("it was not started");
    for (until, word) in [(WARM_UP, "begin"), (WARM_UP + count, "end")] {
        while session.stats().expect("the session is open").pmis < until {
            (0..10).for_each(|_| work(&mut memory));
        }
        println!("{word}");
    }
    0
}
