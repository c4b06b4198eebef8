//! Runs several sessions at once, which begin and end at different times.
//!
//! `beside LIST ONE` runs phases of about a million instructions with different rates, and three
//! sessions on LIST: of the whole program, of a part in the middle, and of two parts. A fourth
//! session on ONE, events of one group, is read and stopped in its bank.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::{vec, vec::Vec};

use tally::{Bank, Session, SessionConfig, Slice, println, runtime::arguments};
use tally_test_guests::{Checks, PER_ITERATION, instructions, random::Random, spin};

tally::main!(main);

/// Number of phases of the program.
const PHASES: usize = 60;
/// Iterations of the loop of known content.
const KNOWN: u64 = 300_000;

/// Runs a phase: sums of words at random places, branches on random bits, or a loop in registers.
fn phase(kind: u64, random: &mut Random, words: &[u64]) -> u64 {
    let mut sum = 0_u64;
    match kind {
        0 => {
            for _ in 0..120_000 {
                sum ^= words[random.below(words.len() as u64) as usize];
            }
        }
        1 => {
            for _ in 0..120_000 {
                let next = random.next();
                sum = if next & 1 == 0 { sum.rotate_left(3) } else { sum.wrapping_mul(next) };
            }
        }
        _ => spin(500_000),
    }
    core::hint::black_box(sum)
}

/// Reads and stops the counters of a bank while other sessions have their turns.
fn live(checks: &mut Checks, bank: &Bank, last: &mut [u64]) {
    for (event, last) in last.iter_mut().enumerate() {
        let value = bank.counter(event).expect("the bank has the event").read();
        checks.equal("no value runs backwards", value >= *last, true);
        *last = value;
    }
}

/// Checks that a session stopped by the control word misses exactly the instructions executed
/// meanwhile.
fn stopped(checks: &mut Checks, session: &Session, bank: &Bank) {
    bank.stop();
    let before = instructions(session).expect("it was started");
    spin(KNOWN);
    let after = instructions(session).expect("it was started");
    checks.equal("a stopped session counts nothing", after, before);
    bank.start().expect("this CPU can count");
    bank.start().expect("it is started");
    spin(KNOWN);
    bank.stop();
    let counted = instructions(session).expect("it was started") - after;
    let known = KNOWN * PER_ITERATION;
    checks.equal("a started one counts", (known..known + 1000).contains(&counted), true);
    bank.start().expect("this CPU can count");
}

fn main() -> i32 {
    let mut words = arguments().skip(1);
    let list = words.next().expect("usage: beside LIST ONE");
    let one = words.next().expect("usage: beside LIST ONE");
    let config = SessionConfig {
        slice: Slice::Cycles(20_000),
        budget_ppm: 200_000,
        ..SessionConfig::default()
    };
    let open = |list| Session::open(list, config).expect("the events exist");
    let (whole, middle, parts, own) = (open(list), open(list), open(list), open(one));
    println!("{}", own.cost_beside().expect("others are open"));
    let bank = own.map().expect("it is not started");
    let mut last = vec![0; own.events()];
    let mut checks = Checks::default();
    let mut random = Random(7);
    let table: Vec<u64> = (0..40_000).map(|word| word * word).collect();
    let state = "the state is known";
    whole.start().expect(state);
    own.start().expect(state);
    for step in 0..PHASES {
        match step {
            6 | 40 => parts.start().expect(state),
            15 => middle.start().expect(state),
            27 | 55 => parts.stop().expect(state),
            48 => middle.stop().expect(state),
            _ => {}
        }
        let kind = random.below(3);
        phase(kind, &mut random, &table);
        live(&mut checks, &bank, &mut last);
    }
    for _ in 0..8 {
        stopped(&mut checks, &own, &bank);
    }
    own.stop().expect(state);
    println!("beside: done");
    checks.status()
}
