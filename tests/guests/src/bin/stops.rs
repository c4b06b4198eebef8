//! Stops and starts a session, by calls and through its bank, while the session samples and has
//! thresholds: `stops EVENTS SEED STEPS`. Other sessions are started and stopped at the same time.
//! These, one of them the command line's, have exact counts for the time in which they were
//! started.

#![no_std]
#![no_main]

use tally::{Session, SessionConfig, Slice, println, runtime::arguments};
use tally_test_guests::{random::Random, spin, yield_turn};

tally::main!(main);

fn open(events: &str, cycles: u64) -> Session {
    let config = SessionConfig { slice: Slice::Cycles(cycles), ..SessionConfig::default() };
    Session::open(events, config).expect("the events exist")
}

fn main() -> i32 {
    let mut words = arguments().skip(1);
    let events = words.next().expect("usage: stops EVENTS SEED STEPS");
    let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).expect("a number");
    let (mut random, steps) = (Random(number()), number());
    let sampled = open(events, 20_000);
    let bank = sampled.map().expect("there is memory");
    let other = open(events, 50_000);
    let mut other_started = false;
    for _ in 0..steps {
        let event = random.below(2) as usize;
        // Operations that are impossible in the present state are refused, which changes nothing.
        match random.below(10) {
            0 => _ = sampled.sample(event, random.of(&[0, 5_000, 20_000, 300_000])),
            1 => {
                let at = bank.counter(event).expect("there are two").read() + random.below(60_000);
                _ = sampled.set_threshold(event, at);
            }
            2 => _ = sampled.start(),
            3 => _ = sampled.stop(),
            4 => {
                let changed = if other_started { other.stop() } else { other.start() };
                changed.expect("it was not so");
                other_started = !other_started;
            }
            5 => yield_turn(),
            6 | 7 => bank.stop(),
            _ => _ = bank.start(),
        }
        let most = random.of(&[100, 10_000, 100_000]);
        spin(1 + random.below(most));
    }
    println!("stops: done");
    0
}
