//! Runs attacks on the kernel one after another. Checks before, during and after each attack that
//! counting is exact, and prints the status of each.
//!
//! `siege PROGRAM EVENT NAME…`: EVENT counts instructions, each NAME is an attack of PROGRAM.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;

use tally::{Error, Program, Session, SessionConfig, println, runtime::arguments};
use tally_test_guests::{Checks, PER_ITERATION, instructions, spin};

tally::main!(main);

/// Iterations of [`spin`]: several turns of the scheduler.
const ITERATIONS: u64 = 2_000_000;

/// Count of `iterations` of [`spin`] and of the readings around it.
fn counted(session: &Session, iterations: u64) -> u64 {
    let now = || instructions(session).expect("it was started");
    let before = now();
    spin(iterations);
    now() - before
}

fn main() -> i32 {
    let words: Vec<&str> = arguments().skip(1).collect();
    let [program, event, names @ ..] = &*words else {
        panic!("usage: siege PROGRAM EVENT NAME…")
    };
    let mut checks = Checks::default();
    let session = Session::open(event, SessionConfig::default()).expect("the event exists");
    session.start().expect("it was not started");
    // The first reading allocates memory on the heap.
    counted(&session, 1);
    let around = counted(&session, 1) - PER_ITERATION;
    for name in names {
        let attack = match Program::load(&[program, name]) {
            Ok(attack) => attack,
            Err(refused) => {
                println!("siege: {name} cannot be loaded: {refused}");
                return 1;
            }
        };
        let few = around + 10 * PER_ITERATION;
        checks.equal("the count before an attack", counted(&session, 10), few);
        checks.equal("start an attack", attack.run(), Ok(()));
        checks.equal(
            "the count during an attack",
            counted(&session, ITERATIONS),
            around + ITERATIONS * PER_ITERATION,
        );
        let status = attack.wait();
        checks.equal("the count after an attack", counted(&session, 10), few);
        match status {
            Ok(status) => println!("siege: {name} {status}"),
            Err(error) => checks.equal(name, Some(error), None::<Error>),
        }
    }
    println!("siege: done");
    checks.status()
}
