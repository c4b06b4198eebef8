//! Events that count nothing: those of a CPU that runs nothing are 0; those whose parts are counted
//! have no value, and their parts keep theirs.

mod fake;
#[expect(dead_code, reason = "it is for several tests")]
mod program;

use program::{Bench, SLICE};
use tally_abi::{Value, reading::Reason};
use tally_engine::bounds::{Bound, Whole};

/// Returns the readings of events 1 and 2, the first of which is a part of the second.
fn read(events: [u64; 8]) -> [Value; 2] {
    let mut bench = Bench::new(2, 1, 0);
    bench.session.set_bounds(vec![Bound { parts: vec![1], whole: Whole::Event(2) }]);
    bench.resume();
    for _ in 0..200 {
        bench.run(SLICE / 3, &events);
    }
    let readings = bench.session.final_readings();
    [readings[1].value, readings[2].value]
}

#[test]
fn a_whole_that_counts_nothing_beside_its_part_has_no_value() {
    let mut events = [700; 8];
    events[2] = 0;
    let [part, whole] = read(events);
    assert_eq!(whole, Value::NotMeasured { reason: Reason::CountsNothing });
    assert!(matches!(part, Value::Estimated { estimate: 1_000.., .. }), "{part:?}");
}

#[test]
fn a_whole_of_which_nothing_happened_is_zero() {
    let mut events = [700; 8];
    (events[1], events[2]) = (0, 0);
    for value in read(events) {
        assert!(matches!(value, Value::Estimated { estimate: 0, .. }), "{value:?}");
    }
}

#[test]
fn events_of_a_cpu_that_runs_nothing_are_0_and_exact() {
    let mut bench = Bench::new(2, 1, 0);
    bench.session.count_idle();
    for event in 0..bench.session.events() {
        assert_eq!(bench.session.reading(event).value, Value::Exact { count: 0 });
        assert_eq!(bench.session.snapshot().reading(event).value, Value::Exact { count: 0 });
    }
    bench.resume();
    bench.run(SLICE, &[1; 8]);
    let reason = Reason::TooFewSlices;
    assert_eq!(bench.session.reading(0).value, Value::NotMeasured { reason });
}
