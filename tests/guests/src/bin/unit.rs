//! Counts on the counter unit and on the multiplexed counters at the same time, and reads both.
//!
//! `unit EVENTS ITERATIONS`: EVENTS are instructions and others.

#![no_std]
#![no_main]

extern crate alloc;

use tally::{Error, Session, SessionConfig, println, runtime::arguments};
use tally_test_guests::{Checks, PER_ITERATION, instructions, spin};

tally::main!(main);

fn main() -> i32 {
    let words = [1, 2].map(|index| arguments().nth(index).unwrap_or_default());
    let iterations: u64 = words[1].parse().expect("a number of iterations");
    let mut checks = Checks::default();
    let with_unit = SessionConfig { unit: true, ..SessionConfig::default() };
    let session = Session::open(words[0], with_unit).expect("the machine has a unit");
    refused(&mut checks, words[0], with_unit);
    checks.equal(
        "counts before the start",
        session.unit_counts(),
        Ok(alloc::vec![0; session.events()]),
    );
    checks.equal("start", session.start(), Ok(()));
    let mut last = 0;
    for _ in 0..10 {
        spin(iterations / 10);
        let counts = session.unit_counts().expect("it counts on the unit");
        let grown = counts[0] - last;
        let expected = iterations / 10 * PER_ITERATION;
        let is_right = (expected..expected + 2_000).contains(&grown);
        checks.equal("instructions of the unit since the last reading", is_right, true);
        last = counts[0];
    }
    checks.equal("stop", session.stop(), Ok(()));
    let counts = session.unit_counts().expect("it counts on the unit");
    checks.equal("instructions", Some(counts[0]), instructions(&session));
    spin(1_000);
    checks.equal("counts after the stop", session.unit_counts(), Ok(counts));
    println!("unit: done");
    checks.status()
}

fn refused(checks: &mut Checks, events: &str, with_unit: SessionConfig) {
    let second = Session::open(events, with_unit).err().map(|refused| refused.error);
    checks.equal("a second session on the unit", second, Some(Error::Busy));
    let without = Session::open(events, SessionConfig::default()).expect("there is room");
    checks.equal("without the unit", without.unit_counts(), Err(Error::WrongState));
}
