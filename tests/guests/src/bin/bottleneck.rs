//! Loses most of its cycles to one cause, known by construction.
//!
//! `bottleneck chase|stream|branch|jumps|divide|calls STEPS`: dependent loads from 4 MiB; loads
//! from 4 MiB in order; branches on random numbers; such branches followed by many jumps; dependent
//! divisions; system calls, whose work is in the kernel. Several such pairs of words run one after
//! another. A number before them repeats the whole.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::{arch::asm, hint::black_box};

use tally::{
    ExitStatus, eprintln,
    runtime::{arguments, now_ns},
};
use tally_test_guests::random::Random;

tally::main!(main);

/// Kind of work, called with its number of steps.
type Work = fn(u64) -> u64;

/// Numbers in the chain of loads, of 4 bytes each: more than the second-level caches hold, and few
/// enough that the second-level TLBs hold the translations of their pages.
const NUMBERS: u32 = 1 << 20;

/// Loads along the sequence of a linear congruential generator, which visits all numbers.
fn chase(steps: u64) -> u64 {
    let next = |at: u32| at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) % NUMBERS;
    let chain: Vec<u32> = (0..NUMBERS).map(next).collect();
    (0..steps).fold(0, |at, _| black_box(&chain)[at as usize]).into()
}

fn stream(steps: u64) -> u64 {
    let numbers: Vec<u32> = (0..NUMBERS).collect();
    let number = |step: u64| u64::from(black_box(&numbers)[step as usize % NUMBERS as usize]);
    (0..steps).map(number).sum()
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

/// Executes random branches, on both sides of which every second line of code jumps to the next but
/// one.
fn jumps(steps: u64) -> u64 {
    let mut random = Random(1);
    for _ in 0..steps {
        // SAFETY: the code changes only flags.
        unsafe {
            asm!(
                "test {random}, 1",
                "jz 4f",
                ".rept 20",
                "jmp 3f",
                ".p2align 7",
                "3:",
                ".endr",
                "jmp 5f",
                ".p2align 7",
                "4:",
                ".rept 20",
                "jmp 3f",
                ".p2align 7",
                "3:",
                ".endr",
                "5:",
                random = in(reg) random.next(),
                options(nomem, nostack),
            );
        }
    }
    steps
}

fn divide(steps: u64) -> u64 {
    (0..steps).fold(u64::MAX, |value, step| (value | 1 << 63) / (black_box(value) % 5 + step + 3))
}

fn calls(steps: u64) -> u64 {
    (0..steps).fold(0, |last, _| last.max(now_ns()))
}

fn main() -> i32 {
    let mut words = arguments().skip(1).peekable();
    let times =
        words.next_if(|word| word.parse::<u64>().is_ok()).and_then(|word| word.parse().ok());
    let mut works: Vec<(Work, u64)> = Vec::new();
    while let Some(word) = words.next() {
        let work: Work = match word {
            "chase" => chase,
            "stream" => stream,
            "branch" => branch,
            "jumps" => jumps,
            "divide" => divide,
            "calls" => calls,
            _ => return usage(),
        };
        works.push((work, words.next().and_then(|steps| steps.parse().ok()).unwrap_or(1_000_000)));
    }
    if works.is_empty() {
        return usage();
    }
    for _ in 0..times.unwrap_or(1_u64) {
        for (work, steps) in &works {
            black_box(work(*steps));
        }
    }
    0
}

fn usage() -> i32 {
    eprintln!("usage: bottleneck [TIMES] chase|stream|branch|jumps|divide|calls STEPS …");
    u8::from(ExitStatus::Usage).into()
}
