//! Loads child programs, measures them, and leaves some without a parent.
//!
//! `family EVENTS ITERATIONS`: EVENTS are pinned events, instructions first; ITERATIONS are those
//! of the measured child, `family child ITERATIONS`. The child runs for several turns of the
//! scheduler and, where programs run in parallel, longer than the host may delay the parent.
//! `family leave EVENTS` ends before its own child.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::format;

use tally::{Error, Program, Session, SessionConfig, eprintln, println, runtime::arguments, sys};
use tally_test_guests::{Checks, PER_ITERATION, instructions, spin, yield_turn};

tally::main!(main);

/// Iterations of the child whose parent ends first: several turns of the scheduler.
const ITERATIONS_OF_ORPHAN: u64 = 15_000_000;

fn main() -> i32 {
    let words = [0, 1, 2].map(|index| arguments().nth(index).unwrap_or_default());
    match words {
        [_, "child", iterations] => {
            spin(iterations.parse().expect("a number of iterations"));
            0
        }
        [_, "leave", events] => {
            let child = child(ITERATIONS_OF_ORPHAN);
            let session = Session::open_on(&child, events, SessionConfig::default());
            session
                .as_ref()
                .expect("the child has no session")
                .start()
                .expect("it was not started");
            child.run().expect("it was not started");
            // Dropping the session would close it.
            core::mem::forget(session);
            0
        }
        [_, events, iterations] => all(events, iterations.parse().expect("a number of iterations")),
    }
}

fn child(iterations: u64) -> Program {
    Program::load(&["family", "child", &format!("{iterations}")])
        .expect("this program is in the ramdisk")
}

fn all(events: &str, iterations: u64) -> i32 {
    let mut checks = Checks::default();
    endings(&mut checks);
    refusals(&mut checks, events);
    measured(&mut checks, events, iterations);
    let left = Program::load(&["family", "leave", events]).expect("it is in the ramdisk");
    left.run().expect("it was not started");
    checks.equal("the status of a child that leaves its own child", left.wait(), Ok(0));
    // The child is loaded and never started: the machine must end nevertheless.
    child(1);
    println!("family: done");
    checks.status()
}

/// Checks the statuses of children, and calls on programs that are not children.
fn endings(checks: &mut Checks) {
    let quick = Program::load(&["status", "7"]).expect("it is in the ramdisk");
    checks.equal("start a child", quick.run(), Ok(()));
    checks.equal("start it twice", quick.run(), Err(Error::WrongState));
    checks.equal("the status of a child", quick.wait(), Ok(7));
    let crash = Program::load(&["crash", "divide"]).expect("it is in the ramdisk");
    crash.run().expect("it was not started");
    checks.equal("the status of a child that faulted", crash.wait(), Ok(76));
    checks.equal("wait for a child that was not started", child(1).wait(), Err(Error::WrongState));
    for (name, error) in [("nosuch", Error::NoProgram), ("corpus.txt", Error::NotAProgram)] {
        match Program::load(&[name]) {
            Err(refused) => {
                checks.equal(name, refused.error, error);
                checks.equal(
                    "the text begins with the name",
                    refused.detail.starts_with(name),
                    true,
                );
            }
            Ok(_) => eprintln!("FAILED {name} was loaded"),
        }
    }
    calls_on_others(checks);
}

/// Makes calls on programs that are not children.
fn calls_on_others(checks: &mut Checks) {
    // 1 is this program.
    let words = SessionConfig::default().to_words();
    for (number, error) in
        [(1, Error::BadArgument), (99, Error::NotPermitted), (u64::MAX, Error::NoProgram)]
    {
        let list = c"r00c4";
        let arguments = [list.as_ptr() as u64, 5, words.as_ptr() as u64, 0, 0, number];
        // SAFETY: the list and the words are valid for reading.
        let answer = unsafe { sys::call(sys::SESSION_OPEN, arguments) };
        checks.equal(
            "a session on a program that is no child",
            Error::from_return(answer),
            Some(error),
        );
    }
    for number in [0, 1, 999, u64::MAX] {
        for call in [sys::PROGRAM_RUN, sys::PROGRAM_WAIT] {
            // SAFETY: the calls touch no memory.
            let answer = unsafe { sys::call(call, [number, 0, 0, 0, 0, 0]) };
            checks.equal(
                "start or wait for a program that is no child",
                Error::from_return(answer),
                Some(Error::NoProgram),
            );
        }
    }
}

/// Checks the errors of sessions that cannot be opened or started.
fn refusals(checks: &mut Checks, events: &str) {
    let config = SessionConfig::default();
    let child =
        Program::load(&["switches", events, "10000", "user", "5"]).expect("it is in the ramdisk");
    let exclusive = SessionConfig { exclusive: true, ..config };
    let session = Session::open_on(&child, events, exclusive).expect("it has no session");
    let second = Session::open_on(&child, events, config).map_err(|refused| refused.error);
    checks.equal("a session beside an exclusive one", second.err(), Some(Error::Busy));
    checks.equal("stop a session that was not started", session.stop(), Err(Error::WrongState));
    let unknown = Session::open_on(&child, "NO_SUCH_EVENT", config);
    checks.equal(
        "an unknown event on a child with a session",
        unknown.err().map(|e| e.error),
        Some(Error::UnknownEvent),
    );
    child.run().expect("it was not started");
    // The child tries to open a session.
    checks.equal(
        "a child that cannot open a session fails",
        child.wait().is_ok_and(|status| status != 0),
        true,
    );
    checks.equal(
        "start a session on a child that has ended",
        session.start(),
        Err(Error::WrongState),
    );
    checks.equal("the count of a session that was never started", instructions(&session), None);
}

/// Starts, reads, stops and restarts a session on a child while the child runs. The last count
/// excludes the time in which the session was stopped.
fn measured(checks: &mut Checks, events: &str, iterations: u64) {
    let child = child(iterations);
    let session = Session::open_on(&child, events, SessionConfig::default())
        .expect("the child has no session");
    session.start().expect("it was not started");
    checks.equal("start a session twice", session.start(), Err(Error::WrongState));
    child.run().expect("it was not started");
    let count = || instructions(&session).unwrap_or(0);
    let mut last = 0;
    while last < iterations * PER_ITERATION / 10 {
        let now = count();
        if now < last {
            checks.equal("a count that has decreased", now, last);
        }
        last = now;
        yield_turn();
    }
    session.stop().expect("it was started");
    let stopped = count();
    yield_turn();
    checks.equal("the count of a stopped session", count(), stopped);
    session.start().expect("it was stopped");
    checks.equal("the status of the measured child", child.wait(), Ok(0));
    let whole = count();
    let counted = whole > stopped && whole < iterations * PER_ITERATION + 20_000;
    checks.equal("the last count is between the stopped one and the whole run", counted, true);
    println!("family: {stopped} and {whole} of {}", iterations * PER_ITERATION);
}
