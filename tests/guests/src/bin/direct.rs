//! Looks after its counters itself, while others of its kind and sessions take turns with it.
//!
//! `direct EVENTS TURNS`: EVENTS are instructions and branches, in this order, and more of both. What
//! loops of known content do is there to the one, however often the program left the CPU.

#![no_std]
#![no_main]

use core::{arch::asm, hint::black_box};

use tally::{
    Direct, Error, Mode, Session, SessionConfig, println,
    runtime::arguments,
    sys::{self, call},
};
use tally_test_guests::{Checks, spin, yield_turn};

tally::main!(main);

/// Instructions and branches from one reading to the next around `turns` of [`spin`].
#[inline(never)] // So that what lies around the loop is the same wherever it is called.
fn count(direct: &Direct, turns: u64) -> [u64; 2] {
    let before = [direct.read(0), direct.read(1)];
    spin(turns);
    let after = [direct.read(0), direct.read(1)];
    [after[0] - before[0], after[1] - before[1]]
}

fn main() -> i32 {
    let events = arguments().nth(1).expect("usage: direct EVENTS TURNS");
    let turns: u64 = arguments().nth(2).and_then(|n| n.parse().ok()).expect("a number of turns");
    let mut checks = Checks::default();
    refusals(&mut checks, events);
    let direct = Direct::open(events, Mode::User).expect("there are counters for all of them");
    // What lies around the loop is the same each time.
    let [around, branches_around] = count(&direct, 1).map(|count| count - 1);
    let around = around - 1;
    let start = direct.read(0);
    for piece in 1..=20 {
        let turns = turns + piece;
        let [instructions, branches] = count(&direct, turns);
        checks.equal("instructions", instructions, 2 * turns + around);
        checks.equal("branches", branches, turns + branches_around);
        yield_turn();
    }
    let counted = direct.read(0) - start;
    checks.equal("all of it", counted > 40 * turns && counted < 41 * turns + 100_000, true);
    checks.equal("no session beside", session(events), Some(Error::Busy));
    drop(direct);
    checks.equal("a session after", session(events), None);
    let session = Session::open(events, SessionConfig::default()).expect("the events exist");
    let _bank = session.map().expect("it was not started");
    // What the counters showed before, this program's or a stranger's, is gone.
    let shown: u64 = (2..4).map(rdpmc).sum();
    checks.equal("what is left in the counters", shown, 0);
    drop(session);
    let (_, last) = events.rsplit_once(',').expect("several events");
    let session = Session::open(last, SessionConfig::default()).expect("the event exists");
    let _bank = session.map().expect("it was not started");
    session.start().expect("it was not started");
    (0..1_000_u64).for_each(|turn| {
        black_box(turn);
    });
    // The one event is not on it, on any PMU.
    checks.equal("what a counter shows that is not in use", rdpmc(3), 0);
    println!("direct: done, {around} around");
    checks.status()
}

/// What a counter shows.
fn rdpmc(counter: u32) -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: every PMU that the kernel drives has four counters, and it allows RDPMC by now.
    unsafe {
        asm!("rdpmc", in("ecx") counter, out("rax") low, out("rdx") high, options(nostack));
    }
    high << 32 | low
}

fn session(events: &str) -> Option<Error> {
    Session::open(events, SessionConfig::default()).err().map(|refused| refused.error)
}

fn refusals(checks: &mut Checks, events: &str) {
    let open = |list: &str| Direct::open(list, Mode::User).err().map(|refused| refused.error);
    checks.equal("nothing", open(""), Some(Error::NoEvents));
    checks.equal("unknown", open("NO_SUCH_EVENT"), Some(Error::UnknownEvent));
    // Distinct raw events, more than any processor has counters for.
    let many = "r0101,r0102,r0104,r0108,r0110,r0120,r0140,r0180,r0201";
    checks.equal("too many", open(many), Some(Error::TooManyEvents));
    // SAFETY: the kernel refuses what is not this program's.
    let raw = |mode: u64, indices: u64| unsafe {
        let list = [events.as_ptr() as u64, events.len() as u64];
        Error::from_return(call(sys::DIRECT_OPEN, [list[0], list[1], mode, indices, 0, 0]))
    };
    checks.equal("no such mode", raw(3, 0), Some(Error::BadArgument));
    checks.equal("nowhere to write", raw(0, 0x10), Some(Error::BadPointer));
    // SAFETY: the call has no buffer.
    let close = unsafe { call(sys::DIRECT_CLOSE, [0; 6]) };
    checks.equal("nothing to close", Error::from_return(close), Some(Error::WrongState));
    let session = Session::open(events, SessionConfig::default()).expect("the events exist");
    checks.equal("not beside a session", open(events), Some(Error::Busy));
    drop(session);
}
