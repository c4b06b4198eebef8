//! Lets a threshold call a handler many times, whose cost `cargo xtask bench switch` measures.
//!
//! `upcalls EVENT COUNT`: EVENT counts instructions. Prints the handler's address, and the largest
//! distance of the count from the threshold at the time of the handler.

#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tally::{Session, SessionConfig, println, runtime::arguments};
use tally_test_guests::{Checks, spin};

tally::main!(main);

/// Instructions from the bank's value to the threshold.
const AHEAD: u64 = 5_000;

/// Number of handler calls, and the count passed to the last one.
static CALLS: AtomicU64 = AtomicU64::new(0);
static COUNT: AtomicU64 = AtomicU64::new(0);

extern "C" fn note(_: usize, count: u64) {
    CALLS.fetch_add(1, Relaxed);
    COUNT.store(count, Relaxed);
}

fn main() -> i32 {
    let mut words = arguments().skip(1);
    let event = words.next().expect("usage: upcalls EVENT COUNT");
    let calls: u64 = words.next().and_then(|word| word.parse().ok()).expect("a number of calls");
    let session = Session::open(event, SessionConfig::default()).expect("the event exists");
    let bank = session.map().expect("it is not started");
    let instructions = bank.counter(0).expect("the list has an event");
    println!("handler {:#x}", tally::handler_words(note)[0]);
    session.start().expect("it is not started");
    let (mut checks, mut latest) = (Checks::default(), 0);
    for call in 1..=calls {
        let at = instructions.read() + AHEAD;
        // SAFETY: the handler uses only atomics.
        unsafe { session.set_threshold_handler(0, at, note) }.expect("the event is there");
        spin(AHEAD);
        checks.equal("calls of the handler", CALLS.load(Relaxed), call);
        latest = latest.max(COUNT.load(Relaxed).saturating_sub(at));
    }
    println!("late {latest}");
    checks.status()
}
