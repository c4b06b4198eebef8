//! Reads its own breakdown of cycles at random moments while it works, for a comparison of each
//! reading with the truth at that moment.
//!
//! `cycles SEED READINGS`: prints a line for each part: the moment, the part's cycles, its half
//! width at 95 %, its name. Moments are defined as in `live`: region `n` of the truth is open from
//! moment `n - 1` to moment `n`.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{vec, vec::Vec};
use core::hint::black_box;

use tally::{
    CyclePart, Cycles, SessionConfig, Slice, println, region, runtime::arguments, session,
};
use tally_test_guests::{random::Random, spin};

tally::main!(main);

/// Words of the memory: 4 MiB, more than an L2 cache.
const WORDS: usize = 1 << 19;

/// Runs a phase of the program's work: loads at random places, unpredictable branches, divisions,
/// or mere retirement.
fn phase(kind: u64, steps: u64, memory: &mut [u64], random: &mut Random) {
    let mut value = random.next();
    for step in 0..steps {
        match kind {
            0 => value = value.wrapping_mul(3) ^ memory[value as usize % WORDS] ^ step,
            1 => {
                value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ step;
                if value >> 60 & 1 == 0 {
                    value = black_box(value + 1);
                }
            }
            2 => value = (value | 1 << 63) / (black_box(value) % 5 + step + 3),
            _ => spin(20),
        }
    }
    black_box(value);
}

fn main() -> i32 {
    let words: Vec<u64> = arguments().skip(1).filter_map(|word| word.parse().ok()).collect();
    let &[seed, readings] = &words[..] else { panic!("usage: cycles SEED READINGS") };
    let mut random = Random(seed);
    let config = SessionConfig {
        slice: Slice::Cycles(20_000),
        budget_ppm: session::NO_BUDGET_PPM,
        ..SessionConfig::default()
    };
    let cycles = match Cycles::open(config) {
        Ok(cycles) => cycles,
        Err(why) => {
            println!("refused: {why}");
            return 0;
        }
    };
    let mut memory = vec![1; WORDS];
    let mut found: Vec<(u64, Vec<CyclePart>)> = Vec::with_capacity(readings as usize);
    // The code of a reading is in the caches from here on.
    let _ = black_box(cycles.read());
    region::open(1);
    cycles.start().expect("it was not started");
    for moment in 1..=readings {
        let steps = 2_000 << random.below(8);
        for _ in 0..=random.below(3) {
            let kind = random.below(4);
            phase(kind, steps + random.below(steps), &mut memory, &mut random);
        }
        // Regions are marked by instructions of the virtual PMU, not by system calls.
        region::close(moment as u32);
        region::open(moment as u32 + 1);
        if let Some(parts) = cycles.read() {
            found.push((moment, parts));
        }
    }
    cycles.stop().expect("it runs");
    for (moment, parts) in found {
        for part in parts {
            println!("{moment} {} {} {}", part.cycles, part.half_width_95, part.name);
        }
    }
    0
}
