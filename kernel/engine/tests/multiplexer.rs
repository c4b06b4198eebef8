//! The multiplexer and its sessions on a simulated PMU: nothing is lost, counted twice, or credited
//! to another session.

mod fake;

use fake::{Records, Simulated, Ticking};
use proptest::prelude::*;
use tally_abi::{
    Mode, Reading, SessionConfig, Shares, Slice, Value, reading::Reason, session, trace::End,
};
use tally_engine::{
    Demand, Layout, Multiplexer, Pinned, Selector, Session, Widths,
    bounds::{Bound, Whole},
    plan::CounterAssignment,
};

/// The minimum length, so that the first slices are not shorter.
const SLICE: u64 = session::MIN_SLICE;
/// Without a budget, because the clock of these tests makes the engine seem expensive.
const NO_LIMIT: SessionConfig = SessionConfig {
    mode: Mode::User,
    slice: Slice::Cycles(SLICE),
    budget_ppm: session::NO_BUDGET_PPM,
    shares: Shares::Planned,
    exclusive: false,
    unit: false,
    scope: tally_abi::Scope::Program,
};
const EVENTS: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// Session and its CPU.
struct Bench {
    pmu: Simulated,
    multiplexer: Multiplexer<Simulated>,
    session: Session,
    clock: Ticking,
    records: Records,
}

fn demands() -> Vec<Demand> {
    let pinned = [Pinned::Cycles, Pinned::Instructions, Pinned::Reference].map(Demand::pinned);
    (0..8).map(|e| Demand::general(Selector(e), 0xff)).chain(pinned).collect()
}

impl Bench {
    /// Makes a session on eight events and the pinned ones, on `counters` counters with the value
    /// `value`.
    fn new(counters: u32, seed: u64, value: u64) -> Bench {
        let layout = Layout {
            general: (1 << counters) - 1,
            reference: true,
            extra: 0,
            widths: Widths::of(48),
        };
        let pmu = Simulated::showing(value);
        Bench {
            multiplexer: Multiplexer::new(pmu.clone(), 3, 2),
            pmu,
            session: Session::open(9, 0x5000, NO_LIMIT, seed, demands(), &layout).unwrap(),
            clock: Ticking::default(),
            records: Records::default(),
        }
    }

    fn resume(&mut self) {
        self.multiplexer.resume(&mut self.session, &self.clock, &mut self.records);
    }

    fn suspend(&mut self, end: End) {
        self.multiplexer.suspend(&mut self.session, end, &self.clock, &mut self.records);
    }

    fn sync(&mut self) {
        self.multiplexer.sync(&mut self.session, &self.clock, &mut self.records);
    }

    fn fold(&mut self) {
        self.multiplexer.fold(&mut self.session, &self.clock, &mut self.records);
    }

    fn overflow(&mut self) {
        self.multiplexer.overflow(Some(&mut self.session), &self.clock, || &mut self.records);
    }

    /// Runs the program, and interrupts it if the timer overflows.
    fn run(&mut self, cycles: u64) {
        if self.pmu.run(cycles, 2 * cycles, &EVENTS) {
            self.overflow();
        }
    }

    fn exact(&self, event: usize) -> u64 {
        match self.session.reading(event).value {
            Value::Exact { count } => count,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the events of each kind that the engine has counted, over all slices.
    fn held(&self) -> Vec<u64> {
        let assignments = self.session.plan().assignments.iter().take(8);
        assignments
            .map(|place| {
                let CounterAssignment::General { group, counter } = *place else {
                    panic!("{place:?}")
                };
                self.session.sample(group, counter).event.events
            })
            .collect()
    }
}

#[test]
fn always_counted_events_are_exact_through_everything() {
    let mut bench = Bench::new(2, 1, fake::WIDTH);
    let mut cycles = 0;
    for step in 0..400 {
        bench.resume();
        for more in [3_000, 9_000, 1, 10_500, 40 + step] {
            bench.run(more);
            cycles += more;
        }
        bench.sync();
        assert_eq!(bench.exact(8), cycles);
        bench.suspend(if step % 7 == 0 { End::Stopped } else { End::SwitchedOut });
    }
    assert_eq!((bench.exact(8), bench.exact(9)), (cycles, 2 * cycles));
    let reading = bench.session.reading(8);
    assert_eq!((reading.coverage(), reading.total_cycles), (Some(1.0), cycles));
    let records = &bench.records.0;
    assert_eq!(records.iter().map(|record| record.cycles).sum::<u64>(), cycles);
    assert_eq!(bench.session.stats().slices, records.len() as u64);
    assert!(records.iter().zip(0..).all(|(record, n)| record.sequence == n));
    assert!(records.iter().all(|record| (record.cpu, record.session) == (3, 9)));
}

#[test]
fn a_slice_cut_short_goes_on_with_its_group_and_what_is_left() {
    let mut bench = Bench::new(2, 1, 0);
    bench.resume();
    bench.run(1_000);
    bench.suspend(End::SwitchedOut);
    bench.resume();
    bench.run(SLICE - 1_001);
    bench.suspend(End::SwitchedOut);
    bench.resume();
    assert_eq!(bench.pmu.armed(), [SLICE, SLICE - 1_000, 1]);
    bench.run(8);
    bench.fold();
    let groups: Vec<u16> = bench.records.0.iter().map(|record| record.group).collect();
    assert_eq!(groups, [groups[0]; 3]);
    assert_eq!(bench.pmu.armed().last(), Some(&SLICE));
    let ends: Vec<End> = bench.records.0.iter().map(|record| record.end).collect();
    assert_eq!(ends, [End::SwitchedOut, End::SwitchedOut, End::Overflow]);
}

#[test]
fn an_overflow_that_was_pending_at_a_switch_of_context_ends_the_slice() {
    let mut bench = Bench::new(2, 1, 0);
    bench.resume();
    assert!(bench.pmu.run(SLICE + 3, 0, &EVENTS));
    bench.suspend(End::SwitchedOut);
    // The interrupt arrives late.
    bench.overflow();
    assert_eq!(bench.session.stats().pmis, 0);
    bench.resume();
    assert_eq!(bench.pmu.armed(), [SLICE, SLICE]);
}

#[test]
fn a_spurious_interrupt_ends_nothing_and_is_counted() {
    let mut bench = Bench::new(2, 1, 0);
    bench.resume();
    bench.run(100);
    bench.overflow();
    bench.run(100);
    bench.sync();
    let stats = bench.session.stats();
    assert_eq!((stats.spurious_pmis, stats.pmis, stats.slices), (1, 0, 0));
    assert_eq!(stats.msr_accesses, 2);
    bench.run(SLICE);
    bench.fold();
    assert_eq!(bench.records.0[0].cycles, SLICE + 200);
}

#[test]
fn what_nobody_owns_is_stopped() {
    let mut bench = Bench::new(2, 1, 0);
    bench.resume();
    assert!(bench.pmu.run(SLICE, 0, &EVENTS));
    bench.multiplexer.overflow(None, &bench.clock, || &mut bench.records);
    assert!(!bench.pmu.is_counting());
}

#[test]
fn one_group_is_exact() {
    let mut bench = Bench::new(8, 1, 0);
    bench.resume();
    for _ in 0..5 {
        bench.run(7_000);
    }
    bench.sync();
    assert_eq!((0..8).map(|e| bench.exact(e)).collect::<Vec<_>>(), EVENTS.map(|e| 5 * e));
    assert_eq!(bench.session.reading(0).coverage(), Some(1.0));
}

#[test]
fn every_group_has_its_turn_in_every_round_and_seeds_decide_when() {
    let groups = |seed| {
        let mut bench = Bench::new(2, seed, 0);
        bench.resume();
        for _ in 0..40 {
            bench.run(SLICE + 10);
        }
        bench.fold();
        assert_eq!(bench.session.stats().rounds, 10);
        bench.records.0.iter().map(|record| record.group).collect::<Vec<u16>>()
    };
    for round in groups(1).chunks(4) {
        let mut round = round.to_vec();
        round.sort_unstable();
        assert_eq!(round, [0, 1, 2, 3]);
    }
    assert_eq!(groups(1), groups(1));
    assert_ne!(groups(1), groups(2));
}

#[test]
fn what_was_not_measured_says_so() {
    let mut bench = Bench::new(2, 1, 0);
    let not = |reason| Value::NotMeasured { reason };
    assert_eq!(bench.session.reading(0).value, not(Reason::NotStarted));
    assert_eq!(bench.session.reading(8).value, not(Reason::NotStarted));
    bench.resume();
    bench.run(SLICE);
    bench.sync();
    assert_eq!(bench.session.reading(0).value, not(Reason::TooFewSlices));
    assert_eq!(bench.exact(8), SLICE);
    // Two or three slices do not show how far the others deviate.
    while bench.session.reading(0).slices < 4 {
        assert_eq!(bench.session.reading(0).value, not(Reason::TooFewSlices));
        bench.run(SLICE);
    }
    assert!(matches!(bench.session.reading(0).value, Value::Estimated { .. }));
}

#[test]
fn the_engine_charges_itself() {
    let mut bench = Bench::new(2, 1, 0);
    bench.resume();
    for _ in 0..10 {
        bench.run(SLICE);
    }
    bench.suspend(End::Stopped);
    let stats = bench.session.stats();
    assert_eq!((stats.pmis, stats.msr_accesses), (10, 10 * (2 + 2)));
    // Three pinned events and two of each group.
    assert_eq!(stats.rdpmcs, 10 * 5);
    assert!(stats.engine_ticks >= 10 && stats.session_ticks >= stats.engine_ticks);
}

proptest! {
    /// For any events in any order: cycles are exact, and the engine's counts are those of its
    /// records.
    #[test]
    fn counts_are_conserved(
        seed: u64,
        start in 0..=fake::WIDTH,
        steps in prop::collection::vec((0_u8..6, 1_u64..25_000), 1..200),
    ) {
        let mut bench = Bench::new(3, seed, start);
        let mut cycles = 0;
        for (what, amount) in steps {
            match (what, bench.session.is_running()) {
                (0, true) => bench.suspend(End::SwitchedOut),
                (1, true) => bench.suspend(End::Stopped),
                (2, true) => bench.sync(),
                (_, true) => {
                    bench.run(amount);
                    cycles += amount;
                }
                (_, false) => bench.resume(),
            }
        }
        if bench.session.is_running() {
            bench.suspend(End::SwitchedOut);
        }
        prop_assert_eq!(bench.session.stats().cycles, cycles);
        let mut recorded = vec![0; 8];
        for record in &bench.records.0 {
            let assignments = bench.session.plan().assignments.iter().take(8).enumerate();
            let member = |(event, assigned): (usize, &CounterAssignment)| match *assigned {
                CounterAssignment::General { group, counter } => {
                    (group == record.group).then_some((counter, event))
                }
                CounterAssignment::Pinned(_) | CounterAssignment::Metric(_) => None,
            };
            let mut members: Vec<(u8, usize)> = assignments.filter_map(member).collect();
            members.sort_unstable();
            prop_assert_eq!(members.len(), usize::from(record.events));
            for ((_, event), count) in members.into_iter().zip(record.counts) {
                recorded[event] += count;
            }
        }
        prop_assert_eq!(bench.held(), recorded);
    }

    /// For any events between two readings: counts never decrease, and the reported interval
    /// includes the estimated one.
    #[test]
    fn counts_never_run_backwards(
        seed: u64,
        steps in prop::collection::vec((0_u64..60_000, prop::array::uniform8(0_u64..1 << 20)), 1..60),
    ) {
        let mut bench = Bench::new(3, seed, 0);
        bench.resume();
        let mut last = [0; 8];
        for (cycles, events) in &steps {
            if bench.pmu.run(*cycles, cycles * (events[0] % 5), events) {
                bench.overflow();
            }
            bench.sync();
            let readings = bench.session.readings();
            for (event, last) in last.iter_mut().enumerate() {
                let Value::Estimated { estimate: plain, half_width_95: width, .. } =
                    bench.session.reading(event).value else { continue };
                let Value::Estimated { estimate, half_width_95, .. } =
                    readings[event].value else { panic!("it was estimated just now") };
                prop_assert!(estimate >= *last && estimate >= plain);
                prop_assert!(estimate as f64 - half_width_95 <= plain as f64 - width + 1.0);
                *last = estimate;
            }
        }
    }

    /// For any counts: every estimate is a valid number.
    #[test]
    fn estimates_are_numbers(
        seed: u64,
        steps in prop::collection::vec((1_u64..60_000, prop::array::uniform8(0_u64..1 << 33)), 1..60),
    ) {
        let mut bench = Bench::new(3, seed, 0);
        bench.resume();
        for (cycles, events) in &steps {
            if bench.pmu.run(*cycles, cycles * (events[0] % 5), events) {
                bench.overflow();
            }
        }
        bench.suspend(End::Stopped);
        for event in 0..8 {
            let reading = bench.session.reading(event);
            prop_assert!(reading.coverage().is_none_or(|share| (0.0..=1.0).contains(&share)));
            match reading.value {
                Value::Estimated { stderr, half_width_95, .. } => {
                    prop_assert!(stderr.is_finite() && stderr >= 0.0);
                    prop_assert!(half_width_95.is_finite() && half_width_95 >= 1.9 * stderr);
                }
                Value::NotMeasured { reason } => prop_assert_eq!(reason, Reason::TooFewSlices),
                Value::Exact { .. } => prop_assert!(false, "there are several groups"),
            }
        }
    }
}

/// Counts two events, each requested twice, one of which is never more than the other: in every
/// slice they happen equally often.
#[test]
fn the_same_event_is_told_the_same_and_bound_the_same() {
    let demands = [0, 1, 1, 0].map(|event| Demand::general(Selector(event), 1));
    let layout = Layout { general: 1, reference: false, extra: 0, widths: Widths::of(48) };
    let mut bench = Bench::new(1, 3, 0);
    bench.session = Session::open(9, 0x5000, NO_LIMIT, 5, demands.into(), &layout).unwrap();
    bench.session.set_bounds(vec![Bound { parts: vec![1], whole: Whole::Event(0) }]);
    bench.resume();
    let mut moved = 0;
    for slice in 0..200_u64 {
        let events = 1_000 + slice * 7919 % 1_000;
        assert!(bench.pmu.run(SLICE, SLICE, &[events; 8]));
        bench.overflow();
        bench.sync();
        let count = |reading: Reading| match reading.value {
            Value::Estimated { estimate: count, .. } | Value::Exact { count } => count,
            Value::NotMeasured { .. } => 0,
        };
        let [whole, part] = [0, 1].map(|event| count(bench.session.reading(event)));
        moved += u32::from(whole > 0 && part > whole);
        let told = bench.session.readings();
        assert_eq!((told[1], told[0]), (told[2], told[3]));
        assert!(whole == 0 || count(told[2]) <= count(told[0]), "{told:?}");
    }
    assert!(moved > 10, "{moved}");
}
