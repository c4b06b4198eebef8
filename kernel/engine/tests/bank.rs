//! The logical counter bank on a simulated PMU, read and switched by [`tally_abi::bank`]'s rules:
//! no value decreases, each equals the session's value, and events while the program has stopped
//! its counters are not counted.

mod fake;
mod program;

use program::{Bench, Between, EVENTS, SLICE};
use proptest::prelude::*;
use tally_abi::{
    Reading, Shares, Value,
    bank::{PAGE_WORDS, STOPPED, counter, writable},
    trace::End,
};
use tally_engine::{
    Pinned,
    bounds::{Bound, Whole},
    plan::CounterAssignment,
};

/// Without the word of the last returned value, this program's estimates would decrease many times.
#[test]
fn estimates_that_fall_are_told_as_what_was_told() {
    let mut bench = Bench::new(2, 1, 0);
    bench.resume();
    let (mut fallen, mut last) = (0, [(0, 0); EVENTS]);
    for turn in 0..2_000_u64 {
        let mut events = [3; 8];
        events[turn as usize / 100 % 8] = 20;
        bench.run(SLICE / 3, &events);
        for (event, last) in last.iter_mut().enumerate() {
            let now = bench.read(event);
            assert!(now.0 >= last.0, "event {event}: {now:?} after {last:?}");
            fallen += usize::from(now.1 < last.1);
            *last = now;
        }
    }
    assert!(fallen > 100, "{fallen}");
}

/// Tests an event that is a part of a pinned event: the bank, which does not know the bound,
/// returns more for it if its first slices were those with many instructions per cycle.
#[test]
fn the_bank_and_readings_of_a_part_each_never_run_backwards() {
    let mut bench = Bench::new(2, 1, 0);
    bench
        .session
        .set_bounds(vec![Bound { parts: vec![1], whole: Whole::Pinned(Pinned::Instructions) }]);
    bench.resume();
    let (mut above, mut shown, mut told) = (0, 0, 0);
    for turn in 0..400_u64 {
        let CounterAssignment::General { group, .. } = bench.session.plan().assignments[1] else {
            panic!("event 1 is not pinned");
        };
        let on = bench.own.load(writable::CONTROL) as u32 == group.into();
        let instructions_a_cycle = if on && turn < 60 { 4 } else { 1 };
        let mut events = [instructions_a_cycle; 8];
        events[1] = SLICE / 3 * instructions_a_cycle;
        bench.run(SLICE / 3, &events);
        let now = bench.read(1).0;
        assert!(now >= shown, "{now} after {shown}");
        shown = now;
        bench.sync();
        let Value::Estimated { estimate, .. } = bench.session.readings()[1].value else { continue };
        let whole = bench.session.stats().instructions;
        assert!((told..=whole).contains(&estimate), "{estimate} after {told}, of {whole}");
        above += usize::from(shown > whole);
        told = estimate;
    }
    assert!(above > 10, "{above}");
}

#[test]
fn one_group_is_exact_from_the_first_event_on() {
    let mut bench = Bench::new(8, 1, fake::WIDTH - 5);
    let errors = |bench: &Bench| -> [f64; 8] {
        core::array::from_fn(|event| f64::from_bits(bench.counter(event, counter::HALF_WIDTH)))
    };
    assert_eq!(errors(&bench), [0.0; 8]);
    bench.publish_errors(1);
    assert_eq!(errors(&bench), [0.0; 8], "looked at before the start");
    bench.resume();
    bench.run(100, &[1, 2, 3, 4, 5, 6, 7, 8]);
    let counts: Vec<u64> = (0..EVENTS).map(|event| bench.read(event).0).collect();
    assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7, 8, 100]);
    assert_eq!(errors(&bench), [0.0; 8]);
}

const EACH: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

#[test]
fn what_happens_while_counters_are_stopped_is_not_counted() {
    let mut bench = Bench::new(8, 1, fake::WIDTH - 40);
    assert!(bench.start(), "the first time by a system call");
    let counted = |bench: &Bench| core::array::from_fn(|event| bench.read(event).0);
    for turn in 1..=50 {
        bench.run(10, &EACH);
        bench.stop();
        let expected: [u64; EVENTS] =
            core::array::from_fn(|event| turn * EACH.get(event).copied().unwrap_or(10));
        assert_eq!(counted(&bench), expected);
        bench.run(30, &[99; 8]);
        assert_eq!(counted(&bench), expected);
        assert!(!bench.start(), "the slice goes on");
        assert_eq!(counted(&bench), expected);
    }
    bench.stop();
    // The slice, or the program's turn, ends meanwhile: the kernel does not interfere with the
    // program.
    bench.run(SLICE, &[99; 8]);
    assert!(!bench.pmu.is_counting() && !bench.session.is_running() && bench.session.is_stopped());
    assert_eq!(bench.session.stats().cycles, 500);
    assert!(bench.start());
    bench.run(7, &EACH);
    bench.stop();
    bench.suspend(End::SwitchedOut);
    assert!(bench.session.is_stopped());
    assert_eq!(counted(&bench)[8], 507);
}

/// All interruptions between two steps: a slice that ends; one that ends and whose program reads,
/// stops and starts in an upcall; the program's turn; another thread, or a handler, that stops and
/// starts while the kernel publishes nothing.
const BETWEEN: [Between; 4] = [
    |bench| bench.run(SLICE, &EACH),
    |bench| {
        bench.run(SLICE, &EACH);
        for _ in 0..2 {
            bench.stop();
            bench.pmu.run(5, 0, &[99; 8]);
            bench.start();
        }
    },
    |bench| {
        if bench.session.is_running() {
            bench.suspend(End::SwitchedOut);
        }
        if !bench.session.is_stopped() {
            bench.resume();
        }
    },
    |bench| {
        let was_stopped = bench.own.load(writable::CONTROL) as u32 & STOPPED != 0;
        for _ in 0..2 {
            bench.stop();
            bench.pmu.run(5, 0, &[99; 8]);
            bench.start();
        }
        if was_stopped {
            bench.stop();
        }
    },
];

/// Any interruption between two steps of stopping or starting is counted as a whole or not at all,
/// in every counter alike, and later stops and starts are exact.
#[test]
fn an_interruption_of_the_switch_is_counted_as_a_whole_or_not_at_all() {
    for (between, what) in BETWEEN.into_iter().enumerate() {
        let (mut whole, mut none) = (0, 0);
        for (counters, steps) in [8, 3].into_iter().flat_map(|c| (1..200).map(move |s| (c, s))) {
            let mut bench = Bench::new(counters, 1, 0);
            bench.start();
            bench.run(10, &EACH);
            bench.between = Some((steps, what));
            let mut outside = 10;
            for _ in 0..2 {
                bench.stop();
                bench.pmu.run(30, 0, &[99; 8]);
                bench.start();
                bench.run(100, &EACH);
                outside += 100;
            }
            bench.stop();
            bench.pmu.run(30, 0, &[99; 8]);
            let held = bench.held();
            let more = held[8] - outside;
            let at = format!("{between} before step {steps} on {counters} counters: {held:?}");
            assert!(more == 0 || more == SLICE, "{at}");
            *if more == 0 { &mut none } else { &mut whole } += 1;
            if counters == 8 {
                let turns = 3 + u64::from(more > 0);
                let expected: Vec<u64> = EACH.iter().map(|each| each * turns).collect();
                assert_eq!(&held[..8], expected, "{at}");
            }
        }
        assert!(none > 0 && (whole > 0) == (between < 2), "{between}: {whole} and {none}");
    }
}

/// A program may write any value: only its own counts become wrong.
#[test]
fn nonsense_in_the_programs_page_hurts_nobody_else() {
    let mut bench = Bench::new(3, 1, 0);
    bench.resume();
    for turn in 0..200_u64 {
        for word in 0..PAGE_WORDS {
            let value = match (word, turn % 4) {
                (writable::CONTROL, 0) => bench.own.load(writable::CONTROL) | u64::from(STOPPED),
                (writable::CONTROL, 1) => bench.own.load(writable::CONTROL).wrapping_add(1 << 32),
                _ => turn.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            };
            assert!(bench.own.exchange(word, bench.own.load(word), value));
        }
        bench.run(SLICE / 3, &EACH);
        bench.sync();
        assert!(bench.session.stats().cycles <= (turn + 1) * SLICE);
        bench.resume();
    }
}

proptest! {
    /// For any events between two readings: no value decreases, and the kernel returns the same
    /// values however often it is asked.
    #[test]
    fn no_value_runs_backwards(
        seed: u64,
        counters in 1_u32..9,
        adaptive: bool,
        start in 0..=fake::WIDTH,
        steps in prop::collection::vec(
            (0_u8..11, 1_u64..25_000, prop::array::uniform8(0_u64..1 << 20)), 1..600),
    ) {
        let shares = if adaptive { Shares::Adaptive } else { Shares::Planned };
        let mut bench = Bench::sharing(shares, counters, seed, start);
        let mut last = [0; EVENTS];
        for (what, cycles, events) in steps {
            let running = bench.session.is_running();
            match (what, running) {
                (8, _) => bench.stop(),
                (9, _) => drop(bench.start()),
                (10, _) => bench.session.adapt(8),
                (0, true) => bench.suspend(End::SwitchedOut),
                (1, true) => bench.suspend(End::Stopped),
                (2, true) => bench.sync(),
                (3, _) => bench.publish_errors(2),
                (4, _) => {
                    bench.publish_errors(1);
                    for event in 0..EVENTS {
                        let expected = match bench.session.reading(event).value {
                            Value::Exact { count } => count,
                            Value::Estimated { estimate, .. } => estimate,
                            Value::NotMeasured { .. } => continue,
                        };
                        // The kernel rounds to nearest, readers round down.
                        prop_assert!(bench.read(event).1.abs_diff(expected) <= 2);
                    }
                }
                (_, true) => bench.run(cycles, &events),
                (_, false) => bench.resume(),
            }
            for (event, last) in last.iter_mut().enumerate() {
                let (now, _) = bench.read(event);
                prop_assert!(now >= *last, "event {event}: {now} after {last}");
                *last = now;
            }
        }
    }
}

/// For the same program with a bank and without, read by its program or not, the session's values
/// are the same.
#[test]
fn a_bank_changes_no_value_of_the_session() {
    let run = |mapped: bool, thresholds: bool| {
        let mut bench = Bench::new(2, 7, 0);
        if !mapped {
            bench.session.unmap_bank();
        }
        if thresholds {
            (0..8).for_each(|event| bench.session.set_threshold(event, Some(50_000)).unwrap());
        }
        bench.resume();
        let mut readings = Vec::new();
        for step in 0..900_u64 {
            // Few instructions at first, and other events.
            let events = core::array::from_fn(|event| match step {
                0..60 => 900 * (event as u64 % 3),
                _ => 300 + 50 * event as u64,
            });
            bench.run(SLICE / 3, &events);
            if step % 90 == 89 {
                bench.sync();
                readings.push(bench.session.readings());
            }
            if mapped {
                (0..8).for_each(|event| assert!(bench.read(event).0 >= bench.read(event).1));
            }
        }
        bench.suspend(End::Stopped);
        readings.push(bench.session.final_readings());
        readings
    };
    let alone = run(false, false);
    assert_eq!(run(true, false), alone);
    assert_eq!(run(true, true), alone);
}

/// Values read in steps belong to the moment of the snapshot, whatever is counted meanwhile.
#[test]
fn readings_of_a_snapshot_are_of_its_moment() {
    for cut in [0, SLICE / 2] {
        let mut bench = Bench::new(2, 7, 0);
        bench.session.set_bounds(vec![Bound { parts: vec![1], whole: Whole::Event(2) }]);
        bench.resume();
        let events = core::array::from_fn(|event| 300 + 50 * event as u64);
        bench.run(40 * SLICE + cut, &events);
        bench.sync();
        let snapshot = bench.session.snapshot();
        let expected = bench.session.readings();
        let first = (0..4).map(|event| snapshot.reading(event)).collect::<Vec<_>>();
        bench.run(40 * SLICE, &[9_000; 8]);
        bench.sync();
        let rest = (4..snapshot.events()).map(|event| snapshot.reading(event));
        let all: Vec<_> = first.into_iter().chain(rest).collect();
        assert_eq!(bench.session.complete(&snapshot, all), expected);
        let last = bench.session.final_readings();
        assert_ne!(last, expected);
        let each = (0..last.len()).map(|event| bench.session.reading(event)).collect();
        assert_eq!(bench.session.complete_final(each), last);
    }
}

/// The values are the counts times all cycles divided by those for which they were counted, in
/// steps or at once, and no reading changes another.
#[test]
fn readings_by_cycles_scale_counts_by_cycles() {
    let mut bench = Bench::new(2, 7, 0);
    bench.resume();
    (0..100).for_each(|turn| bench.run(SLICE / 3, &[3 + turn % 7; 8]));
    bench.sync();
    let best = bench.session.final_readings();
    let readings = bench.session.readings_by_cycles();
    let is_scaled = |of: &&Reading| {
        let Value::Estimated { estimate, half_width_95, .. } = of.value else { return false };
        let scaled = of.counted as f64 * of.total_cycles as f64 / of.counted_cycles as f64;
        (estimate as f64 - scaled).abs() <= 0.5 && half_width_95 > 0.0
    };
    assert!(readings.iter().filter(is_scaled).count() >= 4, "{readings:?}");
    let snapshot = bench.session.snapshot();
    let steps = (0..snapshot.events()).map(|event| snapshot.reading_by_cycles(event)).collect();
    assert_eq!(bench.session.complete_by_cycles(steps), readings);
    assert_eq!(bench.session.final_readings(), best);
}

#[test]
fn errors_that_are_withdrawn_are_not_known() {
    let mut bench = Bench::new(2, 1, 0);
    bench.resume();
    for _ in 0..100 {
        bench.run(SLICE / 3, &[3; 8]);
    }
    bench.suspend(End::Stopped);
    bench.session.publish_errors(1);
    assert!((0..EVENTS).all(|event| !bench.half_width(event).is_nan()));
    bench.session.withdraw_errors();
    assert!((0..EVENTS).all(|event| bench.half_width(event).is_nan()));
}
