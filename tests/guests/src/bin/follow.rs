//! Reads the traces of all CPUs while it is counted, and while others are.
//!
//! `follow EVENTS CPUS`: what the slices of its own session say sums up to what the session says.
//! `follow refused ERROR`: it may not, for this reason. `follow write`: writes to a trace.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{format, vec::Vec};

use tally::{
    Error, Session, SessionConfig, Slice, println,
    runtime::arguments,
    session,
    sys::{self, call},
    trace::{Item, SliceRecord, TraceReader},
};
use tally_abi::ring::Header;
use tally_test_guests::{Checks, instructions, yield_turn};

tally::main!(main);

/// Pieces of work, after each of which the traces are read.
const PIECES: u64 = 50;
const TURNS: u64 = 50_000;

fn main() -> i32 {
    let words: Vec<&str> = arguments().skip(1).collect();
    match *words {
        ["refused", error] => {
            let mut checks = Checks::default();
            let refused = format!("{:?}", TraceReader::open(0).err());
            checks.equal("why not", refused, format!("Some({error})"));
            checks.status()
        }
        ["write"] => {
            // SAFETY: none: the kernel is to end this program.
            unsafe {
                let ring = call(sys::TRACE_MAP, [0; 6]) as *mut u64;
                assert!(ring.addr() > 4096, "it is mapped");
                ring.write_volatile(0);
            }
            0
        }
        [events, cpus] => follow(events, cpus.parse().expect("a number of CPUs")),
        _ => panic!("usage: follow EVENTS CPUS"),
    }
}

/// What was seen.
#[derive(Default)]
struct Seen {
    /// Instructions in the slices of each address space.
    instructions: Vec<(u64, u64)>,
    lost: u64,
}

impl Seen {
    fn read(&mut self, readers: &mut [TraceReader]) {
        for reader in readers {
            while let Some(item) = reader.take() {
                match item {
                    Item::Record { kind: SliceRecord::KIND, tsc, words } => {
                        let slice = SliceRecord::decode(tsc, &words[1..]).expect("it is not torn");
                        assert_eq!(words.len(), Header(words[0]).words());
                        self.add(slice.address_space, slice.instructions);
                    }
                    Item::Record { .. } => {}
                    Item::Lost(records) => self.lost += records,
                }
            }
        }
    }

    fn add(&mut self, space: u64, instructions: u64) {
        match self.instructions.iter_mut().find(|(known, _)| *known == space) {
            Some((_, sum)) => *sum += instructions,
            None => self.instructions.push((space, instructions)),
        }
    }
}

fn follow(events: &str, cpus: u16) -> i32 {
    let mut checks = Checks::default();
    let mut readers: Vec<TraceReader> =
        (0..cpus).map(|cpu| TraceReader::open(cpu).expect("paranoid=0, and a trace")).collect();
    checks.equal("no such CPU", TraceReader::open(cpus).err(), Some(Error::BadArgument));
    // SAFETY: the calls touch no memory.
    let [first, again] = [(); 2].map(|()| unsafe { call(sys::TRACE_MAP, [0; 6]) });
    checks.equal("mapped once", first, again);
    let config = SessionConfig {
        slice: Slice::Cycles(20_000),
        budget_ppm: session::NO_BUDGET_PPM,
        ..SessionConfig::default()
    };
    let session = Session::open(events, config).expect("the events exist");
    let mut seen = Seen::default();
    session.start().expect("it was not started");
    for _ in 0..PIECES {
        (0..TURNS).for_each(|turn| {
            core::hint::black_box(turn);
        });
        seen.read(&mut readers);
        yield_turn();
    }
    session.stop().expect("it was started");
    seen.read(&mut readers);
    let count = instructions(&session).expect("it was started");
    let own = seen.instructions.iter().filter(|(_, sum)| *sum == count).count();
    checks.equal("sums that are its own", own, 1);
    checks.equal("records lost", seen.lost, 0);
    println!("follow: {} programs seen, {count} instructions", seen.instructions.len());
    checks.status()
}
