//! Loses most of its cycles to one cause, which is known by construction.
//!
//! `bottleneck chase|branch|divide STEPS`: loads of which each needs the one before, from 4 MiB;
//! branches that random numbers decide; divisions of which each needs the one before.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::hint::black_box;

use tally::{ExitStatus, eprintln, runtime::arguments};
use tally_test_guests::random::Random;

tally::main!(main);

/// Numbers of the chain of loads, of 4 bytes: more than the second-level caches hold, and few
/// enough for the translations of their pages to be in the second-level TLBs.
const NUMBERS: u32 = 1 << 20;

/// The sequence of a linear congruential generator, which visits all numbers.
fn chase(steps: u64) -> u64 {
    let next = |at: u32| at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) % NUMBERS;
    let chain: Vec<u32> = (0..NUMBERS).map(next).collect();
    (0..steps).fold(0, |at, _| black_box(&chain)[at as usize]).into()
}

fn branch(steps: u64) -> u64 {
    let mut random = Random(1);
    let mut taken = 0;
    for _ in 0..steps {
        if random.next() & 1 == 0 {
            taken = black_box(taken + 1);
        }
    }
    taken
}

fn divide(steps: u64) -> u64 {
    (0..steps).fold(u64::MAX, |value, step| (value | 1 << 63) / (black_box(value) % 5 + step + 3))
}

fn main() -> i32 {
    let mut words = arguments().skip(1);
    let work = match words.next() {
        Some("chase") => chase,
        Some("branch") => branch,
        Some("divide") => divide,
        _ => {
            eprintln!("usage: bottleneck chase|branch|divide STEPS");
            return u8::from(ExitStatus::Usage).into();
        }
    };
    let steps = words.next().and_then(|steps| steps.parse().ok()).unwrap_or(1_000_000);
    black_box(work(steps));
    0
}
