//! Reads the trace rings of all CPUs while sessions of this and other programs write to them.
//!
//! `follow EVENTS CPUS`: the counts in the slice records of its session add up to the session's
//! count. `follow refused ERROR`: the kernel refuses with this error. `follow write`: writes to a
//! ring.

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

/// Pieces of work; the rings are read after each.
const PIECES: u64 = 50;
/// Iterations of a piece.
const ITERATIONS: u64 = 50_000;

fn main() -> i32 {
    let words: Vec<&str> = arguments().skip(1).collect();
    match *words {
        ["refused", error] => {
            let mut checks = Checks::default();
            let refused = format!("{:?}", TraceReader::open(0).err());
            checks.equal("the error", refused, format!("Some({error})"));
            checks.status()
        }
        ["write"] => {
            // SAFETY: none: the write faults, and the kernel ends this program.
            unsafe {
                let ring = call(sys::TRACE_MAP, [0; 6]) as *mut u64;
                assert!(ring.addr() > 4096, "the ring is not mapped");
                ring.write_volatile(0);
            }
            0
        }
        [events, cpus] => follow(events, cpus.parse().expect("a number of CPUs")),
        _ => panic!("usage: follow EVENTS CPUS"),
    }
}

/// Sums of the records.
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
                        let slice =
                            SliceRecord::decode(tsc, &words[1..]).expect("the record is complete");
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
    let mut readers: Vec<TraceReader> = (0..cpus)
        .map(|cpu| TraceReader::open(cpu).expect("paranoid is 0, and there is a trace"))
        .collect();
    checks.equal(
        "the ring of a CPU that is not there",
        TraceReader::open(cpus).err(),
        Some(Error::BadArgument),
    );
    // SAFETY: the calls touch no memory.
    let [first, again] = [(); 2].map(|()| unsafe { call(sys::TRACE_MAP, [0; 6]) });
    checks.equal("the address of a ring that is mapped twice", first, again);
    let config = SessionConfig {
        slice: Slice::Cycles(20_000),
        budget_ppm: session::NO_BUDGET_PPM,
        ..SessionConfig::default()
    };
    let session = Session::open(events, config).expect("the events exist");
    let mut seen = Seen::default();
    session.start().expect("it was not started");
    for _ in 0..PIECES {
        (0..ITERATIONS).for_each(|iteration| {
            core::hint::black_box(iteration);
        });
        seen.read(&mut readers);
        yield_turn();
    }
    session.stop().expect("it was started");
    seen.read(&mut readers);
    let count = instructions(&session).expect("it was started");
    let matching = seen.instructions.iter().filter(|(_, sum)| *sum == count).count();
    checks.equal("address spaces with the session's count", matching, 1);
    checks.equal("lost records", seen.lost, 0);
    println!("follow: {} programs seen, {count} instructions", seen.instructions.len());
    checks.status()
}
