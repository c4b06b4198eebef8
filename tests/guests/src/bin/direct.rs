//! Owns counters in direct mode, next to other such programs and to sessions, and checks their
//! counts.
//!
//! `direct EVENTS ITERATIONS`: EVENTS are instructions, branches and others, in this order. The
//! counts of loops of known content must be exact, however often the scheduler switches the program
//! out.

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

/// Counts the instructions and branches of `iterations` of [`spin`], with those of the readings
/// around it.
#[inline(never)] // So that the code around the loop is the same at every call.
fn count(direct: &Direct, iterations: u64) -> [u64; 2] {
    let before = [direct.read(0), direct.read(1)];
    spin(iterations);
    let after = [direct.read(0), direct.read(1)];
    [after[0] - before[0], after[1] - before[1]]
}

fn main() -> i32 {
    let events = arguments().nth(1).expect("usage: direct EVENTS ITERATIONS");
    let iterations: u64 =
        arguments().nth(2).and_then(|n| n.parse().ok()).expect("usage: direct EVENTS ITERATIONS");
    let mut checks = Checks::default();
    refusals(&mut checks, events);
    let direct = Direct::open(events, Mode::User).expect("there is a counter for each event");
    // The readings always add the same number.
    let [around, branches_around] = count(&direct, 1).map(|count| count - 1);
    let around = around - 1;
    let start = direct.read(0);
    for piece in 1..=20 {
        let iterations = iterations + piece;
        let [instructions, branches] = count(&direct, iterations);
        checks.equal("instructions", instructions, 2 * iterations + around);
        checks.equal("branches", branches, iterations + branches_around);
        yield_turn();
    }
    let counted = direct.read(0) - start;
    let is_whole = counted > 40 * iterations && counted < 41 * iterations + 100_000;
    checks.equal("instructions of all loops within 3 %", is_whole, true);
    checks.equal("a session beside direct mode", session(events), Some(Error::Busy));
    drop(direct);
    checks.equal("a session after direct mode", session(events), None);
    let session = Session::open(events, SessionConfig::default()).expect("the events exist");
    let _bank = session.map().expect("it was not started");
    // The kernel has cleared the earlier counts of the counters, for this program and for others.
    let shown: u64 = (2..4).map(rdpmc).sum();
    checks.equal("counters without an event after direct mode", shown, 0);
    drop(session);
    let (_, last) = events.rsplit_once(',').expect("several events");
    let session = Session::open(last, SessionConfig::default()).expect("the event exists");
    let _bank = session.map().expect("it was not started");
    session.start().expect("it was not started");
    (0..1_000_u64).for_each(|iteration| {
        black_box(iteration);
    });
    // On every PMU the single event is on another counter.
    checks.equal("a counter that is not in use", rdpmc(3), 0);
    println!("direct: done, {around} around");
    checks.status()
}

/// Reads a general counter.
fn rdpmc(counter: u32) -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: every PMU that the kernel drives has four counters, and a program with a bank may
    // execute RDPMC.
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
    checks.equal("no events", open(""), Some(Error::NoEvents));
    checks.equal("an unknown event", open("NO_SUCH_EVENT"), Some(Error::UnknownEvent));
    // More distinct events than any processor has counters.
    let many = "r0101,r0102,r0104,r0108,r0110,r0120,r0140,r0180,r0201";
    checks.equal("more events than counters", open(many), Some(Error::TooManyEvents));
    // SAFETY: the kernel refuses addresses that do not belong to this program.
    let raw = |mode: u64, indices: u64| unsafe {
        let list = [events.as_ptr() as u64, events.len() as u64];
        Error::from_return(call(sys::DIRECT_OPEN, [list[0], list[1], mode, indices, 0, 0]))
    };
    checks.equal("an invalid mode", raw(3, 0), Some(Error::BadArgument));
    checks.equal("indices at an unmapped address", raw(0, 0x10), Some(Error::BadPointer));
    // SAFETY: the call has no buffer.
    let close = unsafe { call(sys::DIRECT_CLOSE, [0; 6]) };
    checks.equal("close without open", Error::from_return(close), Some(Error::WrongState));
    let session = Session::open(events, SessionConfig::default()).expect("the events exist");
    checks.equal("direct mode beside a session", open(events), Some(Error::Busy));
    drop(session);
}
