//! Reads its logical counters at random moments while it works, for a comparison of each reading
//! with the truth at that moment.
//!
//! `live SEED READINGS SOURCE SLICE [EVENTS]`: SOURCE is `bank` (readings in the bank), `calls`
//! (readings by system call) or `both` (by system call, with a bank that is mapped and read).
//! Without EVENTS the processor's default list is counted.
//!
//! A moment is a point in time at which values are read; moments are numbered from 1. Region `n` of
//! the truth is open from moment `n - 1` (the session's start for the first) to moment `n`, so the
//! truth of a value is the sum of the regions up to its moment. All values of a system call have
//! the same moment; each counter of the bank has its own.
//!
//! Output is a line for each value: its moment, the event's index, the value and its half width at
//! 95 % (`-` where it is unknown).

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{vec, vec::Vec};
use core::{arch::x86_64::__cpuid, hint::black_box};

use tally::{
    Bank, Reading, Session, SessionConfig, Slice, Value, println, region, runtime::arguments,
    session,
};
use tally_abi::events::default_list;
use tally_test_guests::{random::Random, spin};

tally::main!(main);

/// Words of the memory that the phases use: 4 MiB, more than an L2 cache.
const WORDS: usize = 1 << 19;

/// Value and its half width, if known.
type Pair = (u64, Option<f64>);

/// Value with its event and its moment.
struct Line {
    moment: u32,
    event: usize,
    pair: Pair,
}

/// Counter of the truth's moments.
struct Moments {
    next: u32,
}

impl Moments {
    /// Opens the first region, before the session's start.
    fn begin() -> Moments {
        region::open(1);
        Moments { next: 1 }
    }

    /// Ends the region of the present moment and returns the moment.
    fn mark(&mut self) -> u32 {
        let moment = self.next;
        self.next += 1;
        region::next(moment);
        moment
    }
}

/// Runs one phase of the program's work, of `steps` steps.
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

fn by_call(session: &Session, moments: &mut Moments, lines: &mut Vec<Line>) {
    let mut words = vec![[0; 8]; session.events()];
    let moment = moments.mark();
    session.read_words(&mut words).expect("the session is open");
    lines.extend(words.into_iter().enumerate().map(|(event, words)| {
        let reading = Reading::from_words(words).expect("the kernel writes what the library reads");
        let pair = match reading.value {
            Value::Exact { count } => (count, Some(0.0)),
            Value::Estimated { estimate, half_width_95, .. } => (estimate, Some(half_width_95)),
            Value::NotMeasured { .. } => (0, None),
        };
        Line { moment, event, pair }
    }));
}

fn by_bank(bank: &Bank<'_>, moments: &mut Moments, lines: &mut Vec<Line>) {
    for event in 0..bank.counters() {
        let Some(counter) = bank.counter(event) else { continue };
        let details = counter.details();
        let pair = (details.value, details.half_width_95);
        lines.push(Line { moment: moments.mark(), event, pair });
    }
}

/// Task of the program, from its arguments.
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
    let mut lines = Vec::with_capacity(readings as usize * 64);
    let mut moments = Moments::begin();
    session.start().expect("it was not started");
    for _ in 0..readings {
        // The lengths are exponentially distributed: most phases are short, some long.
        let steps = 2_000 << random.below(9);
        for _ in 0..=random.below(3) {
            let kind = random.below(4);
            phase(kind, steps + random.below(steps), &mut memory, &mut random);
        }
        match (&bank, source) {
            (Some(bank), "bank") => by_bank(bank, &mut moments, &mut lines),
            (Some(bank), _) => {
                black_box(bank.counter(0).map(|counter| counter.read()));
                by_call(&session, &mut moments, &mut lines);
            }
            (None, _) => by_call(&session, &mut moments, &mut lines),
        }
    }
    session.stop().expect("it runs");
    for Line { moment, event, pair: (value, half_width) } in lines {
        match half_width {
            Some(half_width) => println!("{moment} {event} {value} {half_width}"),
            None => println!("{moment} {event} {value} -"),
        }
    }
    0
}
