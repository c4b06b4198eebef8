//! Stops and starts its logical counters in the bank repeatedly. Events while the counters are
//! stopped are not counted.
//!
//! `switch SLICE EVENTS [ITERATIONS]`: EVENTS are pinned, instructions first. A region of the
//! virtual PMU's truth with tag SLICE is open while the counters count; those with the next tags
//! enclose each start, each stop, and nothing. ITERATIONS is the maximum for the loop in between,
//! 2,000 by default.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::{
    arch::asm,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use tally::{
    Bank, LogicalCounter, Session, SessionConfig, Slice, println, region, runtime::arguments,
    session,
};
use tally_test_guests::Checks;

tally::main!(main);

const PAIRS: usize = 4_000;
/// Maximum iterations of the counted loop. The value is in memory because a register for it would
/// be saved and reloaded around each start, in the region that counts the start's instructions.
static COUNTED: AtomicU64 = AtomicU64::new(2_000);

/// Executes three instructions per iteration, among them a branch and a load.
fn spin(iterations: u64) {
    let word = 7_u64;
    // SAFETY: the code reads a local word and changes two registers.
    unsafe {
        asm!(
            "2:",
            "mov {value}, [{word}]",
            "sub {iterations}, 1",
            "jnz 2b",
            iterations = inout(reg) iterations => _,
            word = in(reg) &raw const word,
            value = out(reg) _,
            options(nostack, readonly),
        );
    }
}

/// Instructions that the starts and stops of all pairs add: least, median and most.
struct Added {
    least: u64,
    median: u64,
    most: u64,
}

/// Starts and stops the counters [`PAIRS`] times, with a loop of known length inside and one after
/// each pair.
fn pairs(checks: &mut Checks, bank: Bank<'_>, counters: &[LogicalCounter<'_>], tag: u32) -> Added {
    let read = || counters.iter().map(|counter| counter.read()).collect::<Vec<u64>>();
    let mut added: Vec<u64> = Vec::with_capacity(PAIRS);
    let mut moved = 0;
    for pair in 0..PAIRS {
        let iterations = COUNTED.load(Relaxed) * (pair as u64 % 5) / 4 + 1;
        let before = counters[0].read();
        region::open(tag + 1);
        let started = bank.start();
        region::close(tag + 1);
        started.expect("this CPU can count");
        region::open(tag);
        spin(iterations);
        region::close(tag);
        region::open(tag + 2);
        bank.stop();
        region::close(tag + 2);
        region::open(tag + 3);
        region::close(tag + 3);
        let after = read();
        added.push(after[0] - before - 3 * iterations);
        spin(COUNTED.load(Relaxed) * 7 / 20);
        moved += u32::from(read() != after);
    }
    checks.equal("counters that changed while they were stopped", moved, 0);
    added.sort_unstable();
    Added { least: added[0], median: added[PAIRS / 2], most: added[PAIRS - 1] }
}

fn main() -> i32 {
    let mut words = arguments().skip(1);
    let slice = words.next().and_then(|word| word.parse::<u32>().ok());
    let (Some(slice), Some(events)) = (slice, words.next()) else {
        panic!("usage: switch SLICE EVENTS [ITERATIONS]");
    };
    if let Some(word) = words.next() {
        COUNTED.store(word.parse().expect("a number"), Relaxed);
    }
    let config = SessionConfig {
        slice: Slice::Cycles(slice.into()),
        budget_ppm: session::NO_BUDGET_PPM,
        ..SessionConfig::default()
    };
    let session = Session::open(events, config).expect("the events exist");
    let bank = session.map().expect("it was not started");
    let counters: Vec<_> = (0..session.events())
        .map(|event| bank.counter(event).expect("the list has the event"))
        .collect();
    let mut checks = Checks::default();
    checks.equal("a bank before its first start is stopped", bank.is_stopped(), true);
    let Added { least, median, most } = pairs(&mut checks, bank, &counters, slice);
    // A start has one of two lengths: it continues the slice, or makes a system call, which takes
    // the library about 42 more instructions.
    checks.equal("the median of what a pair adds is near the least", median <= least + 45, true);
    checks.equal("an interrupted pair adds at most 400", most <= least + 400, true);
    let stats = session.stats().expect("the session is open");
    let readings = session.read().expect("the session is open");
    for (reading, counter) in readings.iter().zip(&counters) {
        println!("switch: {:?} {}", reading.value, counter.read());
    }
    checks.equal("stop a stopped session", session.stop().is_err(), true);
    println!("switch: a pair adds {least} to {most} instructions, median {median}");
    println!("switch: {} slices, {} interrupts", stats.slices, stats.pmis);
    println!("switch: done");
    checks.status()
}
