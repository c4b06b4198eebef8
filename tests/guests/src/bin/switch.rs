//! Stops and starts its logical counters by its own word, again and again: what happens in between is
//! in none of them.
//!
//! `switch SLICE EVENTS` wants instructions first, which are counted all the time. Beside its counters
//! it keeps the virtual PMU's truth of a region, open where they count, whose tag is SLICE.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::arch::asm;

use tally::{Session, SessionConfig, Slice, println, region, runtime::arguments, session};
use tally_test_guests::Checks;

tally::main!(main);

const PAIRS: usize = 4_000;
/// Turns of the loop that is counted, at most, and of the one that is not.
const COUNTED: u64 = 2_000;
const NOT_COUNTED: u64 = 700;

/// Three instructions a turn, one of them a branch; as many loads as turns.
fn spin(turns: u64) {
    let word = 7_u64;
    // SAFETY: reads one word of its own and counts down.
    unsafe {
        asm!(
            "2:",
            "mov {value}, [{word}]",
            "sub {turns}, 1",
            "jnz 2b",
            turns = inout(reg) turns => _,
            word = in(reg) &raw const word,
            value = out(reg) _,
            options(nostack, readonly),
        );
    }
}

fn main() -> i32 {
    let mut words = arguments().skip(1);
    let slice = words.next().and_then(|word| word.parse::<u32>().ok());
    let (Some(slice), Some(events)) = (slice, words.next()) else {
        panic!("usage: switch SLICE EVENTS");
    };
    let config = SessionConfig {
        slice: Slice::Cycles(slice.into()),
        budget_ppm: session::NO_BUDGET_PPM,
        ..SessionConfig::default()
    };
    let session = Session::open(events, config).expect("the events exist");
    let bank = session.map().expect("it was not started");
    let counters: Vec<_> =
        (0..session.events()).map(|event| bank.counter(event).expect("it is there")).collect();
    let read = || counters.iter().map(|counter| counter.read()).collect::<Vec<u64>>();
    let mut checks = Checks::default();
    checks.equal("before the first time", bank.is_stopped(), true);
    // What stopping and starting themselves add, but for those that an interruption began again.
    let mut beyond: Vec<u64> = Vec::with_capacity(PAIRS);
    let mut moved = 0;
    for pair in 0..PAIRS {
        let turns = COUNTED * (pair as u64 % 5) / 4 + 1;
        let before = counters[0].read();
        bank.start().expect("this CPU can count");
        region::open(slice);
        spin(turns);
        region::close(slice);
        bank.stop();
        let after = read();
        beyond.push(after[0] - before - 3 * turns);
        spin(NOT_COUNTED);
        moved += u32::from(read() != after);
    }
    checks.equal("counters that went on while they were stopped", moved, 0);
    beyond.sort_unstable();
    let (least, middle, most) = (beyond[0], beyond[PAIRS / 2], beyond[PAIRS - 1]);
    // The same at each call, but for the ways of a start: the slice goes on, or a system call.
    checks.equal("the middle of what a pair adds is the least", middle <= least + 40, true);
    checks.equal("an interrupted pair adds a few more", most <= least + 400, true);
    let stats = session.stats().expect("the session is open");
    let readings = session.read().expect("the session is open");
    for (reading, counter) in readings.iter().zip(&counters) {
        println!("switch: {:?} {}", reading.value, counter.read());
    }
    checks.equal("the session is over", session.stop().is_err(), true);
    println!("switch: a pair adds {least} to {most} instructions, {middle} in the middle");
    println!("switch: {} slices, {} interrupts", stats.slices, stats.pmis);
    println!("switch: done");
    checks.status()
}
