//! A program that stops its counters through its bank, while another session waits.

use tally_abi::bank::{STOPPED, writable};
use tally_engine::Neighbours;

use super::*;

/// Stops the program's counters `early` events before a threshold of event 3, and runs it until an
/// overflow interrupt finds the stop. Returns whether the kernel is asked to pass the turn then.
fn is_asked_for_the_turn(take_turns: bool, early: u64) -> bool {
    let mut bench = Bench::new(8, 1, 0);
    let neighbours = Neighbours { take_turns, cycle: 2, ..Neighbours::default() };
    bench.session.set_neighbours(neighbours);
    bench.resume();
    bench.set(3, 5_000);
    bench.run(5_000 - early, &[1; 8]);
    let control = bench.own.load(writable::CONTROL);
    // Like the library: stores the count of each counter, and then the control word.
    assert!(bench.own.exchange(writable::CONTROL, control, control + u64::from(STOPPED)));
    let before = bench.fired.3;
    for _ in 0..2 * SLICE {
        bench.run(1, &[1; 8]);
        if !bench.session.is_running() {
            assert!(!bench.pmu.is_counting() && bench.session.is_stopped());
            return bench.fired.3 > before;
        }
    }
    panic!("no overflow interrupt found the stop");
}

/// No counter counts until the kernel puts another session on the counters: at the end of a slice,
/// and when a preloaded counter interrupts in the middle of one.
#[test]
fn a_stop_that_an_overflow_finds_passes_the_turn_on() {
    for early in [1, 100, 4_000] {
        assert!(is_asked_for_the_turn(true, early), "{early} events before the threshold");
        assert!(!is_asked_for_the_turn(false, early));
    }
}
