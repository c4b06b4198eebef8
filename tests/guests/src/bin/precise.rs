//! Reads the precise samples of a loop of known content while the kernel takes them.
//!
//! `precise EVENT PERIOD`: samples of EVENT, nearly all at instructions of the loop. A sample at
//! the loop's load has the address that it read; one at another instruction has none.
//! `precise EVENT PERIOD branches`: each has the loop's branch before it, too.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{vec, vec::Vec};
use core::arch::asm;

use tally::{
    Session, SessionConfig, println,
    runtime::arguments,
    samples::{Branch, BranchFilter, Sample, SampleReader, encoding},
    session,
};
use tally_test_guests::{Checks, yield_turn};

tally::main!(main);

/// Pieces of work; samples are read after each.
const PIECES: u64 = 200;
/// Iterations of a piece.
const ITERATIONS: u64 = 5_000;
/// Bytes of the array and of the steps through it.
const ARRAY: usize = 1 << 20;
const STEP: usize = 64;
/// Bytes before the loop in its function, at most.
const CALLED: u64 = 64;

/// Addresses of the loop.
#[derive(Clone, Copy, Default)]
struct Loop {
    /// The load, to which the branch jumps.
    load: u64,
    branch: u64,
}

/// Walks through the array: code with one copy, as its addresses matter.
#[inline(never)]
fn walk(array: &[u8]) -> Loop {
    let (load, after): (u64, u64);
    // SAFETY: the code reads the array, whose length is a power of two and of whole steps.
    unsafe {
        asm!(
            "lea {load}, [rip + 2f]",
            "lea {after}, [rip + 3f]",
            "2: mov {value}, [{array} + {offset}]",
            "add {offset}, {step}",
            "and {offset}, {mask}",
            "sub {left}, 1",
            "jnz 2b",
            "3:",
            load = out(reg) load,
            after = out(reg) after,
            array = in(reg) array.as_ptr(),
            offset = inout(reg) 0_u64 => _,
            value = out(reg) _,
            left = inout(reg) ITERATIONS => _,
            step = const STEP,
            mask = const ARRAY - 1,
            options(nostack, readonly)
        );
    }
    // A short jump has two bytes.
    Loop { load, branch: after - 2 }
}

/// Sums over the samples.
#[derive(Default)]
struct Seen {
    inside: u64,
    /// Around the loop: of the calls that start and stop the session.
    outside: u64,
    accesses: u64,
    late: u64,
    misplaced: u64,
    unexpected: u64,
}

impl Seen {
    fn add(&mut self, sample: &Sample, at: Loop, array: &[u8], has_branches: bool) {
        self.late += u64::from(!sample.record.precise);
        if !(at.load..=at.branch).contains(&sample.record.address) {
            self.outside += 1;
            return;
        }
        self.inside += 1;
        let range = array.as_ptr() as u64..array.as_ptr() as u64 + ARRAY as u64;
        let access = sample.access(encoding(), false);
        self.accesses += u64::from(access.is_some());
        let is_right = access.is_some_and(|of| {
            range.contains(&of.address) && of.address % STEP as u64 == 0 && !of.is_store
        });
        self.misplaced += u64::from(is_right != (sample.record.address == at.load));
        // In the first iteration it is the call of the loop's function.
        let is_after = |branch: &Branch| {
            (branch.from, branch.to) == (at.branch, at.load)
                || (at.load - CALLED..at.load).contains(&branch.to)
        };
        let is_expected = sample.branches.first().map(is_after) == has_branches.then_some(true);
        self.unexpected += u64::from(!is_expected);
    }
}

/// Checks the samples of a loop.
fn check(samples: &[Sample], at: Loop, array: &[u8], has_branches: bool, checks: &mut Checks) {
    let mut seen = Seen::default();
    for sample in samples {
        seen.add(sample, at, array, has_branches);
    }
    checks.equal("samples that are late", seen.late, 0);
    checks.equal(
        "more samples around the loop than an eighth of those in it",
        seen.outside > seen.inside / 8,
        false,
    );
    checks.equal("samples with another access than their instruction", seen.misplaced, 0);
    checks.equal("samples behind another branch", seen.unexpected, 0);
    println!("precise: {} samples, {} accesses", samples.len(), seen.accesses);
}

fn main() -> i32 {
    let words: Vec<&str> = arguments().skip(1).collect();
    let (event, period, branches) = match *words {
        [event, period] => (event, period, BranchFilter::default()),
        [event, period, "branches"] => {
            (event, period, BranchFilter::parse("any,u").expect("these are words of perf"))
        }
        _ => panic!("usage: precise EVENT PERIOD [branches]"),
    };
    let period = period.parse().expect("a number of events");
    let has_branches = branches != BranchFilter::default();
    // Aligned to the steps: a large allocation begins behind a header.
    let memory = vec![1; ARRAY + STEP];
    let array = &memory[memory.as_ptr().align_offset(STEP)..][..ARRAY];
    let config = SessionConfig { budget_ppm: session::NO_BUDGET_PPM, ..SessionConfig::default() };
    let session = Session::open(event, config).expect("the event exists");
    session.sample_with_branches(0, [period, 0], 0, branches).expect("the processor can");
    let mut reader = SampleReader::open(&session).expect("paranoid is 0, and there is a trace");
    let at = walk(array);
    let mut samples = Vec::new();
    for _ in 0..PIECES {
        session.start().expect("it was not started");
        walk(array);
        session.stop().expect("it was started");
        reader.read(|sample| samples.push(sample));
        yield_turn();
    }
    let mut checks = Checks::default();
    let early = samples.len();
    reader.read_to_the_end(|sample| samples.push(sample));
    checks.equal("samples that are read while others are taken", early + 1 >= samples.len(), true);
    checks.equal("lost records", reader.lost(), 0);
    check(&samples, at, array, has_branches, &mut checks);
    checks.status()
}
