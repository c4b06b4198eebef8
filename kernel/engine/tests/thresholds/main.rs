//! Thresholds on logical counters, on a simulated PMU: each fires once, at the count if time passes
//! in small steps, and none is lost by any interruption.

#[path = "../fake/mod.rs"]
mod fake;
mod many;
mod ring_0;
mod stopped;

use fake::{SetClock, Simulated};
use proptest::prelude::*;
use tally_abi::{
    Mode, SessionConfig, Slice,
    bank::{PAGE_WORDS, words},
    session,
    trace::{End, SampleRecord, SliceRecord, ThresholdRecord},
};
use tally_engine::{
    Demand, Layout, Multiplexer, Pinned, Selector, Session, Sink, ThresholdError, Widths,
    bank::Page,
};

const SLICE: u64 = 10_000;
/// Number of events: eight, instructions and cycles.
const EVENTS: usize = 10;
const INSTRUCTIONS: usize = 8;
const CYCLES: usize = 9;

#[derive(Default)]
struct Fired(Vec<ThresholdRecord>, Vec<SampleRecord>, Option<u64>, u32);

impl Sink for Fired {
    fn record(&mut self, _: impl FnOnce() -> SliceRecord) {}

    fn threshold(&mut self, record: ThresholdRecord) {
        self.0.push(record);
    }

    fn fold_soon(&mut self) {
        self.3 += 1;
    }

    fn interrupted(&self) -> Option<(u64, bool)> {
        let in_kernel = self.2.map(|address| (address, false));
        in_kernel.or(Some((0x1000 + self.1.len() as u64 % 7, true)))
    }

    fn sample(&mut self, record: SampleRecord) {
        self.1.push(record);
    }
}

struct Bench {
    pmu: Simulated,
    multiplexer: Multiplexer<Simulated>,
    session: Session,
    fired: Fired,
    clock: SetClock,
    /// Page of the bank that the program writes.
    own: &'static Page,
}

impl Bench {
    fn new(counters: u32, seed: u64, value: u64) -> Bench {
        Bench::counting(Mode::User, counters, seed, value)
    }

    fn counting(mode: Mode, counters: u32, seed: u64, value: u64) -> Bench {
        Bench::listing(0, mode, counters, seed, value)
    }

    /// Makes a bench whose list has the cycles `more` additional times, after the others.
    fn listing(more: usize, mode: Mode, counters: u32, seed: u64, value: u64) -> Bench {
        let layout = Layout {
            general: (1 << counters) - 1,
            reference: true,
            extra: 0,
            widths: Widths::of(48),
        };
        let mut demands: Vec<_> = (0..8).map(|e| Demand::general(Selector(e), 0xff)).collect();
        demands.extend([Pinned::Instructions, Pinned::Cycles].map(Demand::pinned));
        demands.extend(vec![Demand::pinned(Pinned::Cycles); more]);
        let config = SessionConfig {
            mode,
            slice: Slice::Cycles(SLICE),
            budget_ppm: session::NO_BUDGET_PPM,
            ..SessionConfig::default()
        };
        let pmu = Simulated::showing(value);
        let mut session = Session::open(9, 0x5000, config, seed, demands, &layout).unwrap();
        let page = || &*Box::leak(Box::<Page>::default());
        let pages: Vec<&'static Page> =
            (0..words(EVENTS + more).div_ceil(PAGE_WORDS)).map(|_| page()).collect();
        let own = page();
        assert!(session.map_bank(own, pages.into(), |_| 0));
        let multiplexer = Multiplexer::new(pmu.clone(), 3, 0);
        let clock = SetClock::default();
        Bench { multiplexer, pmu, session, fired: Fired::default(), clock, own }
    }

    fn resume(&mut self) {
        self.multiplexer.resume(&mut self.session, &self.clock, &mut self.fired);
    }

    fn suspend(&mut self, end: End) {
        self.multiplexer.suspend(&mut self.session, end, &self.clock, &mut self.fired);
    }

    fn sync(&mut self) {
        self.multiplexer.sync(&mut self.session, &self.clock, &mut self.fired);
    }

    /// Sets a threshold as the kernel does for a program that runs.
    fn set(&mut self, event: usize, at: u64) {
        self.sync();
        self.session.set_threshold(event, Some(at)).unwrap();
        self.sync();
    }

    fn run(&mut self, cycles: u64, events: &[u64; 8]) {
        if self.pmu.run(cycles, 2 * cycles, events) {
            self.multiplexer.overflow(Some(&mut self.session), &self.clock, || &mut self.fired);
        }
    }

    /// Returns event and count of all that fired.
    fn counts(&self) -> Vec<(usize, u64)> {
        self.fired.0.iter().map(|fired| (fired.event.into(), fired.count)).collect()
    }
}

#[test]
fn what_is_counted_all_the_time_fires_at_the_very_count() {
    let mut bench = Bench::new(8, 1, fake::WIDTH - 100);
    bench.resume();
    bench.set(3, 25_001);
    bench.set(INSTRUCTIONS, 60_000);
    bench.set(CYCLES, 34_567);
    for _ in 0..50_000 {
        bench.run(1, &[1; 8]);
    }
    // Two instructions come with each cycle.
    assert_eq!(bench.counts(), [(3, 25_001), (INSTRUCTIONS, 60_000), (CYCLES, 34_567)]);
    let first = bench.fired.0[0];
    assert_eq!((first.session, first.cpu, first.threshold), (9, 3, 25_001));
    assert!(!bench.pmu.is_armed());
    bench.sync();
    assert_eq!(bench.session.stats().cycles, 50_000);
    assert_eq!(bench.session.take_fired(), Some((3, 25_001)));
    assert_eq!(bench.session.take_fired(), Some((INSTRUCTIONS, 60_000)));
    assert_eq!(bench.session.take_fired(), Some((CYCLES, 34_567)));
    assert_eq!(bench.session.take_fired(), None);
}

#[test]
fn a_far_threshold_costs_no_preload() {
    let mut bench = Bench::new(8, 1, 0);
    bench.resume();
    bench.set(0, 1 << 40);
    bench.set(INSTRUCTIONS, 10_000_000);
    for _ in 0..400 {
        bench.run(SLICE / 10, &[1000; 8]);
    }
    assert_eq!((bench.pmu.preloads(), bench.counts()), (0, vec![]));
}

#[test]
fn an_estimate_fires_where_it_passes_the_threshold() {
    for (seed, at) in (0..40).map(|seed| (seed, 4_000 + 797 * seed)) {
        let mut bench = Bench::new(2, seed, 0);
        bench.resume();
        bench.set(5, at);
        for cycle in 0..200_000_u64 {
            bench.run(1, &[cycle % 2; 8]);
        }
        let &[(5, count)] = &bench.counts()[..] else { panic!("{seed}: {:?}", bench.counts()) };
        // A quarter of the time is counted. Within its slice the estimate grows by its scale; at
        // the end of a slice, by the events since the last one.
        assert!((at..at + 8 * SLICE).contains(&count), "{seed}: {at} {count}");
    }
}

/// For half of the time the event is on its counter: then its threshold fires to within the noise
/// of its estimate; otherwise at the beginning of its next slice.
#[test]
fn an_estimate_fires_within_a_slice_too() {
    let mut met = 0;
    for seed in 0..200 {
        let mut bench = Bench::new(4, seed, 0);
        bench.resume();
        let mut random = seed;
        let at = 15_000 + seed * 50;
        bench.set(5, at);
        // The event has its next slice at most three slices later.
        for _ in 0..80_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bench.run(1, &[random >> 63; 8]);
        }
        let &[(5, count)] = &bench.counts()[..] else { panic!("{:?}", bench.counts()) };
        met += u32::from(count < at + 150);
    }
    assert!((60..160).contains(&met), "{met}");
}

#[test]
fn a_threshold_that_is_passed_already_fires_at_once_and_one_taken_away_does_not() {
    let mut bench = Bench::new(8, 1, 0);
    bench.resume();
    bench.run(500, &[7; 8]);
    bench.set(0, 3);
    assert_eq!(bench.counts(), [(0, 7)]);
    bench.set(1, 10);
    bench.session.set_threshold(1, None).unwrap();
    bench.run(500, &[7; 8]);
    bench.sync();
    assert_eq!(bench.counts(), [(0, 7)]);
    assert!(!bench.pmu.is_armed());
    bench.set(INSTRUCTIONS, 2_400);
    assert!(bench.pmu.is_armed());
    bench.suspend(End::Stopped);
    assert!(!bench.pmu.is_armed());
    assert_eq!(bench.session.set_threshold(99, Some(1)), Err(ThresholdError::NoSuchEvent));
}

#[test]
fn samples_come_a_period_apart_give_or_take_an_eighth() {
    for event in [3, INSTRUCTIONS] {
        let mut bench = Bench::new(8, 1, fake::WIDTH - 100);
        bench.resume();
        bench.sync();
        bench.session.set_period(event, 1_600).unwrap();
        bench.sync();
        for _ in 0..200_000 {
            bench.run(1, &[1; 8]);
        }
        let samples = &bench.fired.1;
        let total = if event == INSTRUCTIONS { 400_000 } else { 200_000 };
        assert_eq!(samples[0].count, 1_600);
        let gaps: Vec<u64> = samples.windows(2).map(|two| two[1].count - two[0].count).collect();
        // Two instructions come with each cycle.
        assert!(gaps.iter().all(|gap| (1_400..=1_801).contains(gap)), "{gaps:?}");
        let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
        assert!(most - least > 300, "{least} to {most}");
        assert!(samples.len().abs_diff(total / 1_600) <= 4, "{}", samples.len());
        let of_all = |sample: &SampleRecord| {
            usize::from(sample.event) == event
                && (sample.session, sample.cpu, sample.user) == (9, 3, true)
                && sample.instructions == 2 * sample.cycles
                && sample.counts[..8] == [sample.cycles; 8]
                && sample.counts[8..].iter().all(|count| *count == 0)
        };
        assert!(samples.iter().all(of_all), "{samples:#?}");
        let histogram = bench.session.samples().unwrap();
        let told: u64 = histogram.addresses().map(|(_, samples)| samples).sum();
        assert_eq!((told, histogram.addresses().count()), (samples.len() as u64, 7));
        assert!(bench.fired.0.is_empty() && bench.session.take_fired().is_none());
        let taken = samples.len();
        bench.session.set_period(event, 0).unwrap();
        (0..10_000).for_each(|_| bench.run(1, &[1; 8]));
        assert_eq!(bench.fired.1.len(), taken);
    }
}

/// Runs a program in which the event is frequent, then rare, then frequent again, in steps of 100
/// ticks.
#[test]
fn samples_at_a_rate_follow_the_event() {
    let mut bench = Bench::new(8, 1, 0);
    bench.resume();
    bench.sync();
    bench.session.set_rate(3, 20_000).unwrap();
    bench.sync();
    for (every, events) in [(1, 50), (10, 1), (1, 50)] {
        let before = bench.fired.1.len();
        for step in 0..20_000 {
            bench.run(100, &[if step % every == 0 { events } else { 0 }; 8]);
            bench.clock.0.set(bench.clock.0.get() + 100);
            // The scheduler's timer.
            if step % 100 == 0 && bench.session.adapt_rates() {
                bench.sync();
            }
        }
        let samples = bench.fired.1.len() - before;
        // One sample in each of 100 intervals, except for the first after a change.
        assert!((85..=125).contains(&samples), "{samples} samples of {events} every {every} steps");
    }
}

/// Simulates an NMI that interrupts the kernel when the program's own event has overflowed.
#[test]
fn addresses_of_the_kernel_are_for_sessions_that_count_it() {
    const ADDRESS: u64 = 0xffff_8000_0000_1234;
    for (mode, expected) in [(Mode::User, 0), (Mode::Full, ADDRESS)] {
        let mut bench = Bench::counting(mode, 8, 1, 0);
        bench.fired.2 = Some(ADDRESS);
        bench.resume();
        bench.sync();
        bench.session.set_period(INSTRUCTIONS, 50_000).unwrap();
        bench.sync();
        (0..200_000).for_each(|_| bench.run(1, &[1; 8]));
        let samples = &bench.fired.1;
        assert!(samples.len() > 3);
        assert!(samples.iter().all(|sample| (sample.address, sample.user) == (expected, false)));
        let told = bench.session.samples().unwrap().addresses().any(|(at, _)| at == ADDRESS);
        assert_eq!(told, mode == Mode::Full);
    }
}

/// Checks that each fired threshold was set and is reached, and removes it.
fn check(
    bench: &mut Bench,
    set: &mut [Option<u64>; EVENTS],
    cycles: u64,
    counters: u32,
) -> Result<(), TestCaseError> {
    for fired in bench.fired.0.drain(..) {
        let at = set[usize::from(fired.event)].take();
        prop_assert_eq!(at, Some(fired.threshold), "{:?}", fired);
        prop_assert!(fired.count >= fired.threshold);
        match usize::from(fired.event) {
            CYCLES => prop_assert_eq!(fired.count, cycles),
            INSTRUCTIONS => prop_assert_eq!(fired.count, 2 * cycles),
            // One group counts all the time.
            _ if counters == 8 => prop_assert_eq!(fired.count, cycles),
            _ => {}
        }
    }
    Ok(())
}

proptest! {
    /// For any events in any order, in small steps: a threshold on a pinned event fires once, at
    /// the first step that reaches it, and the counts are the true ones.
    #[test]
    fn none_is_lost_and_none_fires_twice(
        seed: u64,
        counters in 1_u32..9,
        start in 0..=fake::WIDTH,
        steps in prop::collection::vec((0_u8..12, 1_u64..3_000, 0_usize..EVENTS), 1..300),
    ) {
        let mut bench = Bench::new(counters, seed, start);
        let mut cycles = 0;
        let mut set: [Option<u64>; EVENTS] = [None; EVENTS];
        for (what, amount, event) in steps {
            match (what, bench.session.is_running()) {
                (0, true) => bench.suspend(End::SwitchedOut),
                (1, true) => bench.suspend(End::Stopped),
                (2, true) => bench.sync(),
                (3 | 4, true) => {
                    let at = match event {
                        INSTRUCTIONS => 2 * (cycles + amount),
                        _ => cycles + amount,
                    };
                    bench.sync();
                    check(&mut bench, &mut set, cycles, counters)?;
                    set[event] = Some(at);
                    bench.set(event, at);
                }
                (_, true) => {
                    bench.run(amount, &[amount; 8]);
                    cycles += amount;
                }
                (_, false) => bench.resume(),
            }
            check(&mut bench, &mut set, cycles, counters)?;
            prop_assert!(set[CYCLES].is_none_or(|at| cycles < at), "{:?} at {}", set, cycles);
            prop_assert!(set[INSTRUCTIONS].is_none_or(|at| 2 * cycles < at));
            if counters == 8 {
                prop_assert!(set.iter().take(8).flatten().all(|at| cycles < *at), "{:?}", set);
            }
        }
        if bench.session.is_running() {
            bench.suspend(End::SwitchedOut);
        }
        prop_assert_eq!(bench.session.stats().cycles, cycles);
        prop_assert!(!bench.pmu.is_armed());
    }
}
