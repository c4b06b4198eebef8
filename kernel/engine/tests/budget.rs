//! Lengths of slices: longer if the engine exceeds its budget, shorter at the start of a session.

mod fake;

use std::{cell::Cell, rc::Rc};

use fake::Simulated;
use tally_abi::{
    SessionConfig, SessionStats, Slice,
    session::MIN_SLICE,
    trace::{SliceRecord, ThresholdRecord},
};
use tally_engine::{Clock, Demand, Layout, Multiplexer, Selector, Session, Sink, Widths};

const SLICE: u64 = 10_000;
/// Number of groups: eight events on two counters.
const GROUPS: u64 = 4;

/// Clock that tests set, shared by the program and the engine.
#[derive(Clone, Default)]
struct Now {
    ticks: Rc<Cell<u64>>,
    /// Count of core cycles, if the processor has one.
    core_cycles: Option<Rc<Cell<u64>>>,
}

impl Now {
    fn pass(&self, ticks: u64) {
        self.ticks.set(self.ticks.get() + ticks);
        self.pass_cycles(ticks);
    }

    /// Lets core cycles pass without a change of the TSC.
    fn pass_cycles(&self, cycles: u64) {
        if let Some(core_cycles) = &self.core_cycles {
            core_cycles.set(core_cycles.get() + cycles);
        }
    }
}

impl Clock for Now {
    fn tsc(&self) -> u64 {
        self.ticks.get()
    }

    fn core_cycles(&self) -> Option<u64> {
        self.core_cycles.as_ref().map(|cycles| cycles.get())
    }
}

/// Keeps every record. Each record, and thus each row that is folded, takes `ticks`.
struct Slow {
    now: Now,
    ticks: u64,
    records: Vec<SliceRecord>,
}

impl Sink for Slow {
    fn record(&mut self, record: impl FnOnce() -> SliceRecord) {
        self.now.pass(self.ticks);
        self.records.push(record());
    }

    fn threshold(&mut self, _: ThresholdRecord) {}
}

/// Session with a budget of 2 %, and its CPU.
struct Bench {
    pmu: Simulated,
    multiplexer: Multiplexer<Simulated>,
    session: Session,
    now: Now,
    sink: Slow,
}

impl Bench {
    /// Makes a bench in which the folding of each row takes `ticks`.
    fn new(ticks: u64) -> Bench {
        Bench::with_slices(SLICE, ticks)
    }

    fn with_slices(length: u64, ticks: u64) -> Bench {
        Bench::with_clock(Now::default(), length, ticks)
    }

    fn with_clock(now: Now, length: u64, ticks: u64) -> Bench {
        let layout = Layout { general: 0b11, reference: false, extra: 0, widths: Widths::of(48) };
        let demands = (0..8).map(|event| Demand::general(Selector(event), 0xff)).collect();
        let slice = Slice::Cycles(length);
        let config = SessionConfig { slice, budget_ppm: 20_000, ..SessionConfig::default() };
        let pmu = Simulated::default();
        let mut bench = Bench {
            multiplexer: Multiplexer::new(pmu.clone(), 0, 0),
            pmu,
            session: Session::open(1, 0, config, 5, demands, &layout).unwrap(),
            now: now.clone(),
            sink: Slow { now, ticks, records: Vec::new() },
        };
        bench.multiplexer.resume(&mut bench.session, &bench.now, &mut bench.sink);
        bench
    }

    /// Runs the program through `slices` slices; then their rows are folded.
    fn run(&mut self, slices: u64) {
        (0..slices).for_each(|_| self.run_unfolded(0));
        self.fold();
    }

    /// Runs the program through a slice. Its interrupt takes `cycles` that the handler cannot time.
    fn run_unfolded(&mut self, cycles: u64) {
        let length = self.pmu.armed().last().copied().unwrap_or(SLICE);
        self.now.pass(length);
        self.now.pass_cycles(cycles);
        assert!(self.pmu.run(length, length, &[1; 8]));
        self.multiplexer.overflow(Some(&mut self.session), &self.now, || &mut self.sink);
    }

    fn fold(&mut self) {
        self.multiplexer.fold(&mut self.session, &self.now, &mut self.sink);
    }

    fn stats(&self) -> SessionStats {
        self.session.stats()
    }
}

#[test]
fn it_makes_slices_longer_and_says_so() {
    // Each row takes 10 % of a slice.
    let mut bench = Bench::new(1_000);
    for _ in 0..4 {
        bench.run(16);
    }
    let longer = bench.sink.records.iter().filter(|record| record.slice_multiplier > 1);
    assert_eq!(bench.stats().lengthened, longer.clone().count() as u64);
    assert!(bench.stats().lengthened > 40);
    assert!(
        longer.clone().all(|record| record.cycles == SLICE * u64::from(record.slice_multiplier))
    );
}

/// Each of a session's first rounds has slices of twice the length of those before, beginning with
/// at least the minimum length. The cost of these slices, here 10 % and more, makes no slice
/// longer.
#[test]
fn the_first_rounds_have_short_slices() {
    for (length, halvings) in
        [(2 * MIN_SLICE - 1, 0_u64), (14 * MIN_SLICE, 3), (31 * MIN_SLICE, 4), (1 << 20, 5)]
    {
        let mut bench = Bench::with_slices(length, length / 10);
        bench.run(GROUPS * halvings);
        let lengths: Vec<u64> = bench.sink.records.iter().map(|record| record.cycles).collect();
        let expected = (0..halvings).map(|round| length >> (halvings - round));
        let expected: Vec<u64> = expected.flat_map(|length| [length; GROUPS as usize]).collect();
        assert_eq!(lengths, expected);
        bench.run(1);
        assert_eq!(bench.sink.records.last().map(|record| record.cycles), Some(length));
    }
}

/// The cost of folding many rows at once is attributed to as many slices, not to the few after it.
#[test]
fn it_does_not_matter_how_many_rows_are_folded_at_once() {
    // Each row takes 1 % of a slice.
    let mut bench = Bench::new(100);
    for slices in [31, 1, 15, 1, 32, 15, 2, 31, 33, 1, 47, 1] {
        bench.run(slices);
    }
    assert_eq!(bench.stats().engine_ticks, 100 * bench.stats().slices);
    assert_eq!(bench.stats().lengthened, 0);
}

/// Costs that the handler cannot time, such as the interrupt's delivery, are included if the
/// processor counts core cycles.
#[test]
fn it_knows_what_a_switch_costs_in_core_cycles() {
    let now = Now { core_cycles: Some(Rc::default()), ..Now::default() };
    let mut bench = Bench::with_clock(now, SLICE, 0);
    for stretch in 0..16 {
        (0..32).for_each(|_| bench.run_unfolded(1_000));
        bench.fold();
        // Time of system calls.
        bench.now.pass_cycles(if stretch % 3 == 0 { 100_000 } else { 0 });
    }
    assert_eq!(bench.stats().switch_cycles, 1_000);
    let last = bench.sink.records.last().map_or(0, |record| record.slice_multiplier);
    assert!((5..=6).contains(&last), "2 % of {last} times {SLICE} cycles");
}
