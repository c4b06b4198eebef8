//! Lets programs attack the kernel, one after the other, and checks after each, and while it is at it, that
//! counting is exact: `siege PROGRAM EVENT WAY…`, EVENT being instructions as the PMU calls them, each WAY one of
//! PROGRAM's. Says with which status each ended.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;

use tally::{Error, Program, Session, SessionConfig, println, runtime::arguments};
use tally_test_guests::{Checks, PER_TURN, instructions, spin};

tally::main!(main);

/// Turns of [`spin`]: some of the scheduler's turns.
const TURNS: u64 = 6_000_000;

/// What is counted for so many turns.
fn counted(session: &Session, turns: u64) -> u64 {
    let now = || instructions(session).expect("it was started");
    let before = now();
    spin(turns);
    now() - before
}

fn main() -> i32 {
    let words: Vec<&str> = arguments().skip(1).collect();
    let [program, event, ways @ ..] = &*words else { panic!("usage: siege PROGRAM EVENT WAY…") };
    let mut checks = Checks::default();
    let session = Session::open(event, SessionConfig::default()).expect("the event exists");
    session.start().expect("it was not started");
    // The heap asks for its memory.
    counted(&session, 1);
    let rest = counted(&session, 1) - PER_TURN;
    for way in ways {
        let attack = match Program::load(&[program, way]) {
            Ok(attack) => attack,
            Err(refused) => {
                println!("siege: {way} cannot be loaded: {refused}");
                return 1;
            }
        };
        checks.equal("the count before", counted(&session, 10), rest + 10 * PER_TURN);
        checks.equal("it is let go", attack.run(), Ok(()));
        checks.equal("the count beside it", counted(&session, TURNS), rest + TURNS * PER_TURN);
        let status = attack.wait();
        checks.equal("the count after", counted(&session, 10), rest + 10 * PER_TURN);
        match status {
            Ok(status) => println!("siege: {way} {status}"),
            Err(error) => checks.equal(way, Some(error), None::<Error>),
        }
    }
    println!("siege: done");
    checks.status()
}
