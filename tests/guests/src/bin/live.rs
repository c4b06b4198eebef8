//! Reads its logical counters at random moments while it works, for a comparison of each reading
//! with the truth at that moment.
//!
//! `live SEED READINGS SOURCE SLICE [EVENTS]`: SOURCE is `bank` (readings in the bank), `calls`
//! (readings by system call) or `both` (by system call, with a bank that is mapped and read).
//! Without EVENTS it counts the processor's default list. Region `n` of the truth is open from the
//! session's start to reading `n`, which begins at 1.
//!
//! It prints a line for each event of each reading: the reading's number, the event's index, its
//! value and its half width at 95 % (`-` where it is not known).

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{vec, vec::Vec};
use core::{arch::x86_64::__cpuid, hint::black_box};

use tally::{
    Bank, Session, SessionConfig, Slice, Value, println, region, runtime::arguments, session,
};
use tally_abi::events::default_list;
use tally_test_guests::{random::Random, spin};

tally::main!(main);

/// Words of the memory that the phases use: 4 MiB, more than an L2 cache.
const WORDS: usize = 1 << 19;

/// A value and its half width, if it has one.
type Pair = (u64, Option<f64>);

/// One phase of the program's work, of `steps` steps.
fn phase(kind: u64, steps: u64, memory: &mut [u64], random: &mut Random) {
    let mut index = random.next();
    for step in 0..steps {
        let place = match kind {
            // A stream.
            0 => step as usize % WORDS,
            // Random places of all the memory, or of 16 KiB.
            1 => index as usize % WORDS,
            2 => index as usize % 2048,
            _ => 0,
        };
        match kind {
            0..=2 => {
                index = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ memory[place] ^ step;
                // An unpredictable branch.
                if kind == 2 && index >> 60 & 1 == 0 {
                    memory[place] = index;
                }
            }
            // Neither loads nor stores.
            _ => spin(20),
        }
    }
    black_box(index);
}

fn by_call(session: &Session) -> Vec<Pair> {
    let readings = session.read().expect("the session is open");
    let pair = |value: &Value| match *value {
        Value::Exact { count } => (count, Some(0.0)),
        Value::Estimated { estimate, half_width_95, .. } => (estimate, Some(half_width_95)),
        Value::NotMeasured { .. } => (0, None),
    };
    readings.iter().map(|reading| pair(&reading.value)).collect()
}

fn by_bank(bank: &Bank<'_>) -> Vec<Pair> {
    let counters = (0..bank.counters()).filter_map(|event| bank.counter(event));
    let details = counters.map(|counter| counter.details());
    details.map(|details| (details.value, details.half_width_95)).collect()
}

/// What the program is asked to do.
struct Task<'a> {
    random: Random,
    readings: u32,
    source: &'a str,
    slice: u64,
    events: &'a str,
}

fn task<'a>() -> Option<Task<'a>> {
    let words: Vec<&str> = arguments().skip(1).collect();
    let (&[seed, readings, source @ ("bank" | "calls" | "both"), slice], events) =
        words.split_first_chunk()?
    else {
        return None;
    };
    let events = events.first().copied().unwrap_or_else(|| default_list(__cpuid(1).eax));
    let random = Random(seed.parse().ok()?);
    Some(Task {
        random,
        readings: readings.parse().ok()?,
        source,
        slice: slice.parse().ok()?,
        events,
    })
}

fn main() -> i32 {
    let Some(Task { mut random, readings, source, slice, events }) = task() else {
        panic!("usage: live SEED READINGS bank|calls|both SLICE [EVENTS]");
    };
    let config = SessionConfig {
        slice: Slice::Cycles(slice),
        budget_ppm: session::NO_BUDGET_PPM,
        ..SessionConfig::default()
    };
    let session = Session::open(events, config).expect("the events exist");
    let bank = (source != "calls").then(|| session.map().expect("it was not started"));
    let mut memory = vec![1; WORDS];
    let mut all = Vec::with_capacity(readings as usize);
    (1..=readings).for_each(region::open);
    session.start().expect("it was not started");
    for reading in 1..=readings {
        // Exponential: most phases are short, some long.
        let steps = 2_000 << random.below(9);
        for _ in 0..=random.below(3) {
            let kind = random.below(4);
            phase(kind, steps + random.below(steps), &mut memory, &mut random);
        }
        let from_bank = bank.as_ref().map(by_bank);
        let pairs = from_bank.filter(|_| source == "bank").unwrap_or_else(|| by_call(&session));
        region::close(reading);
        all.push(pairs);
    }
    session.stop().expect("it runs");
    for (reading, pairs) in all.iter().enumerate() {
        for (event, (value, half_width)) in pairs.iter().enumerate() {
            match half_width {
                Some(half_width) => println!("{} {event} {value} {half_width}", reading + 1),
                None => println!("{} {event} {value} -", reading + 1),
            }
        }
    }
    0
}
