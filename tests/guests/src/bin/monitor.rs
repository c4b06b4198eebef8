//! Reads the counts of a child program from the child's bank, while the child runs.
//!
//! `monitor EVENTS ITERATIONS`: EVENTS are two pinned events, instructions first, and others;
//! ITERATIONS are those of the measured child, `monitor child ITERATIONS`.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{format, vec::Vec};

use tally::{
    Bank, Error, Program, Session, SessionConfig, Value, println,
    runtime::{arguments, now_ns},
};
use tally_test_guests::{Checks, PER_ITERATION, spin, yield_turn};

tally::main!(main);

/// Number of exact events, at the start of the list.
const PINNED: usize = 2;

fn main() -> i32 {
    let words = [1, 2].map(|index| arguments().nth(index).unwrap_or_default());
    let iterations = words[1].parse().expect("a number of iterations");
    if words[0] == "child" {
        spin(iterations);
        return 0;
    }
    let mut checks = Checks::default();
    monitor(&mut checks, words[0], iterations);
    ended(&mut checks, words[0]);
    println!("monitor: done");
    checks.status()
}

fn child(iterations: u64) -> Program {
    Program::load(&["monitor", "child", &format!("{iterations}")]).expect("it is in the ramdisk")
}

fn open(on: &Program, events: &str) -> Session {
    Session::open_on(on, events, SessionConfig::default()).expect("it can be counted")
}

fn monitor(checks: &mut Checks, events: &str, iterations: u64) {
    let child = child(iterations);
    let session = open(&child, events);
    checks.equal("threshold without a bank", session.set_threshold(0, 1), Err(Error::WrongState));
    let bank = session.map().expect("it is not started");
    let instructions = bank.counter(0).expect("the first event");
    // The middle of the loop.
    let middle = iterations * PER_ITERATION / 2;
    checks.equal("threshold", session.set_threshold(0, middle), Ok(()));
    checks.equal("values before the start", values(&bank).iter().sum(), 0);
    checks.equal("start by the bank", bank.start(), Ok(()));
    child.run().expect("it was not started");
    let (mut last, mut seen) = (values(&bank), 0_u64);
    let mut end = None;
    while end.is_none() {
        let now = values(&bank);
        let grows = now.iter().zip(&last).all(|(now, last)| now >= last);
        checks.equal("values do not run backwards", grows, true);
        seen += u64::from(now[0] > last[0]);
        let (fired, reached) = (instructions.fired(), instructions.read() >= middle);
        checks.equal("a threshold fires at its count", fired <= u64::from(reached), true);
        last = now;
        end = child.wait_for(500_000).expect("a child of this program");
        if end.is_none() {
            agree(checks, &bank, &session);
            yield_turn();
        }
    }
    checks.equal("status", end, Some(0));
    checks.equal("different values while it ran", seen > 3, true);
    checks.equal("a threshold fires once", instructions.fired(), 1);
    agree(checks, &bank, &session);
    for (event, reading) in session.read().expect("it can be read").iter().enumerate() {
        if let Value::Estimated { .. } = reading.value {
            let published = bank.counter(event).and_then(|it| it.details().half_width_95);
            let is_known = published.is_some_and(|half_width| half_width > 0.0);
            checks.equal("the half width of an estimate is known", is_known, true);
        }
    }
    println!("monitor: {seen} values of the child, at {} ns", now_ns());
}

/// Checks that a value of the bank is at most the exact value read after it, which is at most the
/// bank's next value.
fn agree(checks: &mut Checks, bank: &Bank, session: &Session) {
    let before = values(bank);
    let exact: Vec<u64> = match session.read() {
        Ok(readings) => readings.iter().take(PINNED).map(|it| count(it.value)).collect(),
        Err(error) => {
            checks.equal("read", Err(error), Ok(()));
            return;
        }
    };
    let after = values(bank);
    let between = |event: usize| before[event] <= exact[event] && exact[event] <= after[event];
    let is_between = (0..PINNED).all(between);
    checks.equal("the exact values are between two of the bank", is_between, true);
}

fn count(value: Value) -> u64 {
    match value {
        Value::Exact { count } => count,
        Value::NotMeasured { .. } => 0,
        Value::Estimated { .. } => panic!("a pinned event is exact"),
    }
}

fn values(bank: &Bank) -> Vec<u64> {
    let counters = (0..bank.counters()).filter_map(|event| bank.counter(event));
    counters.map(|counter| counter.read()).collect()
}

/// Checks the refusals after a program's end, and that a bank outlives its program.
fn ended(checks: &mut Checks, events: &str) {
    let program = child(1000);
    let (mapped, unmapped) = (open(&program, events), open(&program, events));
    let bank = mapped.map().expect("it is not started");
    checks.equal("start", mapped.start(), Ok(()));
    checks.equal("map twice", mapped.map().is_ok(), true);
    program.run().expect("it was not started");
    checks.equal("status", program.wait(), Ok(0));
    checks.equal("map after the end", unmapped.map().err(), Some(Error::WrongState));
    let counter = bank.counter(0).expect("the first event");
    let exact = mapped.read().expect("it can be read")[0].value;
    checks.equal("the last value", counter.read(), count(exact));
    extern "C" fn handler(_: usize, _: u64) {}
    // SAFETY: the call is refused.
    let refused = unsafe { mapped.set_threshold_handler(0, 1, handler) };
    checks.equal("a handler for another program", refused, Err(Error::WrongState));
}
