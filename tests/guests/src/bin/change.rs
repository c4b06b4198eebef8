//! Changes the events of sessions.
//!
//! `change LIST OTHER` counts loops of known content by one list and then by the other. The first
//! event of each list is instructions. Invalid lists are refused. The program also does so for a
//! child, `change child`, while the child runs.

#![no_std]
#![no_main]

use tally::{Error, Program, Session, SessionConfig, println, runtime::arguments};
use tally_test_guests::{Checks, PER_ITERATION, instructions, spin, yield_turn};

tally::main!(main);

/// Iterations of the loop of known content.
const KNOWN: u64 = 300_000;
/// Iterations of the child's loop.
const CHILDS: u64 = 30_000_000;
/// Instructions of a start, a stop and a call between them.
const AROUND: u64 = 1_000;

fn main() -> i32 {
    let words = [1, 2].map(|index| arguments().nth(index).unwrap_or_default());
    if words[0] == "child" {
        spin(CHILDS);
        return 0;
    }
    let mut checks = Checks::default();
    own(&mut checks, words);
    alone(&mut checks, words);
    child(&mut checks, words);
    println!("change: done");
    checks.status()
}

fn counts_loop(checks: &mut Checks, session: &Session) {
    let before = instructions(session).unwrap_or(0);
    session.start().expect("it is not started");
    spin(KNOWN);
    session.stop().expect("it is started");
    let counted = instructions(session).expect("it was started") - before;
    let known = KNOWN * PER_ITERATION;
    checks.equal("the loop is counted", (known..known + AROUND).contains(&counted), true);
}

/// Changes the program's own session, with a bank.
fn own(checks: &mut Checks, [list, other]: [&str; 2]) {
    let mut session = Session::open(list, SessionConfig::default()).expect("the events exist");
    session.map().expect("it is not started");
    counts_loop(checks, &session);
    let counted = instructions(&session);
    let refused = session.change("NO_SUCH_EVENT").map_err(|error| error.error);
    checks.equal("an unknown event", refused, Err(Error::UnknownEvent));
    checks.equal("a refused change changes nothing", instructions(&session), counted);
    counts_loop(checks, &session);
    for list in [other, list, other] {
        session.change(list).expect("the events exist");
        checks.equal("nothing is counted yet", instructions(&session), None);
        let bank = session.map().expect("it is not started");
        checks.equal("events", bank.counters(), list.split(',').count());
        counts_loop(checks, &session);
    }
}

/// Changes an exclusive session.
fn alone(checks: &mut Checks, [list, other]: [&str; 2]) {
    let config = SessionConfig { exclusive: true, ..SessionConfig::default() };
    let mut session = Session::open(list, config).expect("there is no other");
    let refused = session.change(other).map_err(|error| error.error);
    checks.equal("an exclusive session", refused, Err(Error::Busy));
    counts_loop(checks, &session);
}

/// Changes a session on another program, which runs.
fn child(checks: &mut Checks, [list, other]: [&str; 2]) {
    let program = Program::load(&["change", "child"]).expect("it is in the ramdisk");
    let config = SessionConfig::default();
    let mut session = Session::open_on(&program, list, config).expect("the events exist");
    session.start().expect("it is not started");
    program.run().expect("it is loaded");
    while instructions(&session).unwrap_or(0) < KNOWN {
        yield_turn();
    }
    session.change(other).expect("the program runs");
    session.start().expect("it is not started");
    checks.equal("status", program.wait(), Ok(0));
    checks.equal("the rest is counted", instructions(&session) > Some(KNOWN), true);
}
