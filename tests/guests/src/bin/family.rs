//! Loads other programs, measures them, and leaves some behind.
//!
//! `family EVENTS TURNS` does it all, EVENTS being events that are always counted, instructions first,
//! TURNS those of the loop of the program that it measures, `family child TURNS`: some of the scheduler's
//! turns, and where programs run at the same time, longer than the host holds up whoever measures. `family
//! leave EVENTS` is a program that ends before its own child.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::format;

use tally::{Error, Program, Session, SessionConfig, eprintln, println, runtime::arguments, sys};
use tally_test_guests::{Checks, PER_TURN, instructions, spin, yield_turn};

tally::main!(main);

/// Turns of the child that is left behind: some of the scheduler's.
const TURNS_LEFT: u64 = 15_000_000;

fn main() -> i32 {
    let words = [0, 1, 2].map(|index| arguments().nth(index).unwrap_or_default());
    match words {
        [_, "child", turns] => {
            spin(turns.parse().expect("a number of turns"));
            0
        }
        [_, "leave", events] => {
            let child = child(TURNS_LEFT);
            let session = Session::open_on(&child, events, SessionConfig::default());
            session
                .as_ref()
                .expect("the child has no session")
                .start()
                .expect("it was not started");
            child.run().expect("it was not let go");
            // Closing would end the session here and now.
            core::mem::forget(session);
            0
        }
        [_, events, turns] => all(events, turns.parse().expect("a number of turns")),
    }
}

fn child(turns: u64) -> Program {
    Program::load(&["family", "child", &format!("{turns}")])
        .expect("this program is in the ramdisk")
}

fn all(events: &str, turns: u64) -> i32 {
    let mut checks = Checks::default();
    endings(&mut checks);
    refusals(&mut checks, events);
    measured(&mut checks, events, turns);
    let left = Program::load(&["family", "leave", events]).expect("it is in the ramdisk");
    left.run().expect("it was not let go");
    checks.equal("one that leaves its child", left.wait(), Ok(0));
    // Loaded and never let go: it must not keep the machine from ending.
    child(1);
    println!("family: done");
    checks.status()
}

/// What becomes of programs, as their parent hears it.
fn endings(checks: &mut Checks) {
    let quick = Program::load(&["status", "7"]).expect("it is in the ramdisk");
    checks.equal("one lets a program go", quick.run(), Ok(()));
    checks.equal("once", quick.run(), Err(Error::WrongState));
    checks.equal("its status", quick.wait(), Ok(7));
    let crash = Program::load(&["crash", "divide"]).expect("it is in the ramdisk");
    crash.run().expect("it was not let go");
    checks.equal("that of one that crashed", crash.wait(), Ok(76));
    checks.equal("nobody waits for what stands still", child(1).wait(), Err(Error::WrongState));
    for (name, error) in [("nosuch", Error::NoProgram), ("corpus.txt", Error::NotAProgram)] {
        match Program::load(&[name]) {
            Err(refused) => {
                checks.equal(name, refused.error, error);
                checks.equal("the text names it", refused.detail.starts_with(name), true);
            }
            Ok(_) => eprintln!("{name} was loaded"),
        }
    }
    // 1 is this program itself.
    let words = SessionConfig::default().to_words();
    for (number, error) in
        [(1, Error::BadArgument), (99, Error::NotPermitted), (u64::MAX, Error::NoProgram)]
    {
        let list = c"r01c2";
        let arguments = [list.as_ptr() as u64, 5, words.as_ptr() as u64, 0, 0, number];
        // SAFETY: the list and the words are valid for reading.
        let answer = unsafe { sys::call(sys::SESSION_OPEN, arguments) };
        checks.equal("a session on another's", Error::from_return(answer), Some(error));
    }
    for number in [0, 1, 999, u64::MAX] {
        for call in [sys::PROGRAM_RUN, sys::PROGRAM_WAIT] {
            // SAFETY: the calls have no buffer.
            let answer = unsafe { sys::call(call, [number, 0, 0, 0, 0, 0]) };
            checks.equal("another's program", Error::from_return(answer), Some(Error::NoProgram));
        }
    }
}

/// What cannot be measured.
fn refusals(checks: &mut Checks, events: &str) {
    let config = SessionConfig::default();
    let child = Program::load(&["switches", events, "10000", "user", "5"]).expect("it is there");
    let session = Session::open_on(&child, events, config).expect("it has no session");
    let second = Session::open_on(&child, events, config).map_err(|refused| refused.error);
    checks.equal("one session a program", second.err(), Some(Error::Busy));
    checks.equal("it cannot be mapped", session.map().err(), Some(Error::WrongState));
    checks.equal("nor stopped", session.stop(), Err(Error::WrongState));
    let unknown = Session::open_on(&child, "NO_SUCH_EVENT", config);
    checks.equal("it is refused", unknown.err().map(|e| e.error), Some(Error::Busy));
    child.run().expect("it was not let go");
    // The child opens a session itself, and cannot.
    checks.equal("it ends", child.wait().is_ok_and(|status| status != 0), true);
    checks.equal("and is not started any more", session.start(), Err(Error::WrongState));
    checks.equal("it was never counted", instructions(&session), None);
}

/// A child is started, read, stopped and started again while it runs; its last value is that of
/// its whole run without the stretch in between.
fn measured(checks: &mut Checks, events: &str, turns: u64) {
    let child = child(turns);
    let session = Session::open_on(&child, events, SessionConfig::default()).expect("it has none");
    session.start().expect("it was not started");
    checks.equal("once", session.start(), Err(Error::WrongState));
    child.run().expect("it was not let go");
    let told = || instructions(&session).unwrap_or(0);
    let mut last = 0;
    while last < turns * PER_TURN / 10 {
        let now = told();
        if now < last {
            checks.equal("counts never run backwards", now, last);
        }
        last = now;
        yield_turn();
    }
    session.stop().expect("it was started");
    let stopped = told();
    yield_turn();
    checks.equal("nothing is counted while stopped", told(), stopped);
    session.start().expect("it was stopped");
    checks.equal("its status", child.wait(), Ok(0));
    let whole = told();
    let counted = whole > stopped && whole < turns * PER_TURN + 20_000;
    checks.equal("the stretches that were counted", counted, true);
    println!("family: {stopped} and {whole} of {}", turns * PER_TURN);
}
