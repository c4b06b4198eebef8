//! Raises an overflow interrupt at successive instructions while a session starts, switches, stops
//! and closes.
//!
//! `windows EVENTS STEP COUNT` starts a session, works for some slices and stops it, COUNT times.
//! Each interrupt arrives STEP instructions later than the previous one, counted from just before
//! the start, in the program or in the kernel. Then the program does the same for the close of a
//! session, an eighth as often.

#![no_std]
#![no_main]

use core::hint::black_box;

use tally::{Session, SessionConfig, Slice, Value, println, region, runtime::arguments, session};
use tally_test_guests::Checks;

tally::main!(main);

/// Runs of start and stop for each run of close.
const FEWER: u32 = 8;

fn open(events: &str) -> Session {
    let slice = Slice::Cycles(session::MIN_SLICE);
    let config = SessionConfig { slice, ..SessionConfig::default() };
    Session::open(events, config).expect("the events exist")
}

/// Not inlined, so that every call executes the same instructions.
#[inline(never)]
fn count(session: &Session) {
    session.start().expect("it was not started");
    (0..2_000_u64).for_each(|iteration| {
        black_box(iteration);
    });
    session.stop().expect("it was started");
}

fn read(session: &Session) -> [u64; 2] {
    let readings = session.read().expect("the session is open");
    let mut counts = readings.iter().map(|reading| match reading.value {
        Value::Exact { count } => count,
        ref other => panic!("not exact: {other:?}"),
    });
    [(); 2].map(|()| counts.next().expect("there are two events"))
}

fn main() -> i32 {
    let mut words = arguments().skip(1);
    let events = words.next().expect("usage: windows EVENTS STEP COUNT");
    let mut number = || words.next().and_then(|word| word.parse::<u32>().ok());
    let (step, windows) = (number().expect("a number"), number().expect("a number"));
    let mut checks = Checks::default();
    let session = open(events);
    // An interrupt can be raised once a counter is enabled.
    count(&session);
    let undisturbed = read(&session);
    let mut before = undisturbed;
    for window in 0..windows {
        region::interrupt(window * step);
        count(&session);
        let now = read(&session);
        let counted = [now[0] - before[0], now[1] - before[1]];
        checks.equal("the count with an interrupt", counted, undisturbed);
        before = now;
    }
    drop(session);
    for window in 0..windows / FEWER {
        let session = open(events);
        count(&session);
        checks.equal("the count before a close", read(&session), undisturbed);
        session.start().expect("it was stopped");
        region::interrupt(window * step);
        drop(session);
    }
    let session = open(events);
    count(&session);
    checks.equal("the count of a last session", read(&session), undisturbed);
    println!("{windows} windows of {step} instructions");
    checks.status()
}
