//! The logical counter bank on a simulated PMU, read by [`tally_abi::bank`]'s rules: no value runs
//! backwards, and each is what the session says.

mod fake;

use fake::{NoClock, NoSink, Simulated};
use proptest::prelude::*;
use tally_abi::{
    Mode, SessionConfig, Slice, Value,
    bank::{
        ALWAYS, COUNTER_WORDS, HEADER_WORDS, NOBODY, PAGE_WORDS, SCALE_BITS, counter, header, words,
    },
    session,
    trace::End,
};
use tally_engine::{
    Always, Demand, Layout, Multiplexer, Selector, Session, bank::Page, plan::Place,
};

const SLICE: u64 = 10_000;
const CONFIG: SessionConfig = SessionConfig {
    mode: Mode::User,
    slice: Slice::Cycles(SLICE),
    budget_ppm: session::NO_BUDGET_PPM,
};
/// Eight events and the cycles.
const EVENTS: usize = 9;
/// Added to the index of an always-counted event, to tell its counter from the general ones.
const FIXED: u32 = 100;

/// A session with a bank, its CPU, and a reader.
struct Bench {
    pmu: Simulated,
    multiplexer: Multiplexer<Simulated>,
    session: Session,
    pages: Vec<&'static Page>,
}

impl Bench {
    fn new(counters: u32, seed: u64, value: u64) -> Bench {
        let layout = Layout { general: ((1_u16 << counters) - 1) as u8, reference: true, extra: 0 };
        let mut demands: Vec<_> = (0..8).map(|e| Demand::general(Selector(e), 0xff)).collect();
        demands.push(Demand::always(Always::Cycles));
        let pmu = Simulated::showing(value);
        let mut session = Session::open(9, 0x5000, CONFIG, seed, demands, &layout).unwrap();
        let count = words(EVENTS).div_ceil(PAGE_WORDS);
        let pages: Vec<&'static Page> =
            (0..count).map(|_| &*Box::leak(Box::<Page>::default())).collect();
        assert!(session.expose(pages.clone().into(), |place| match place {
            Place::General { counter, .. } => counter.into(),
            Place::Always(event) => FIXED + event as u32,
        }));
        Bench { multiplexer: Multiplexer::new(pmu.clone(), 0, 0), pmu, session, pages }
    }

    fn word(&self, index: usize) -> u64 {
        self.pages[index / PAGE_WORDS].load(index % PAGE_WORDS)
    }

    fn counter(&self, event: usize, word: usize) -> u64 {
        self.word(HEADER_WORDS + event * COUNTER_WORDS + word)
    }

    /// What a program reads, and the estimate without regard to what was told.
    fn read(&self, event: usize) -> (u64, u64) {
        assert_eq!(self.word(header::SEQUENCE) % 2, 0);
        let place = self.counter(event, counter::PLACE);
        let (group, rdpmc) = (place & u64::from(u32::MAX), (place >> 32) as u32);
        let since =
            |now: u64, base: usize| u64::from((now as u32).wrapping_sub(self.word(base) as u32));
        if group >= ALWAYS {
            let event = Always::ALL[(group - ALWAYS) as usize];
            let total = self.word(header::TOTAL + event as usize);
            let count = match self.word(header::GROUP) {
                NOBODY => total,
                _ => total + since(self.pmu.always(event), header::ALWAYS_BASE + event as usize),
            };
            return (count, count);
        }
        let mut events = self.counter(event, counter::EVENTS);
        if group == self.word(header::GROUP) {
            let index = rdpmc as usize;
            events += since(self.pmu.general(index), header::BASE + index);
        }
        let scale = self.counter(event, counter::SCALE);
        let estimate = ((u128::from(events) * u128::from(scale)) >> SCALE_BITS) as u64;
        (estimate.max(self.counter(event, counter::TOLD)), estimate)
    }

    fn resume(&mut self) {
        self.multiplexer.resume(&mut self.session, &NoClock);
    }

    fn suspend(&mut self, end: End) {
        self.multiplexer.suspend(&mut self.session, end, &NoClock, &mut NoSink);
    }

    fn sync(&mut self) {
        self.multiplexer.sync(&mut self.session, &NoClock);
    }

    fn tell_errors(&mut self, count: usize) {
        if self.session.is_running() {
            self.sync();
        }
        self.session.tell_errors(count);
    }

    fn run(&mut self, cycles: u64, events: &[u64; 8]) {
        if self.pmu.run(cycles, cycles * (events[0] % 5), events) {
            self.multiplexer.overflow(Some(&mut self.session), &NoClock, &mut NoSink);
        }
    }
}

/// Without the word of what was told, this program's estimates would run backwards many times.
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

#[test]
fn one_group_is_exact_from_the_first_event_on() {
    let mut bench = Bench::new(8, 1, fake::WIDTH - 5);
    bench.resume();
    bench.run(100, &[1, 2, 3, 4, 5, 6, 7, 8]);
    let counts: Vec<u64> = (0..EVENTS).map(|event| bench.read(event).0).collect();
    assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7, 8, 100]);
}

proptest! {
    /// Whatever happens between two readings: no value runs backwards, and the kernel says the same
    /// whenever it is asked.
    #[test]
    fn no_value_runs_backwards(
        seed: u64,
        counters in 1_u32..9,
        start in 0..=fake::WIDTH,
        steps in prop::collection::vec(
            (0_u8..8, 1_u64..25_000, prop::array::uniform8(0_u64..1 << 20)), 1..120),
    ) {
        let mut bench = Bench::new(counters, seed, start);
        let mut last = [0; EVENTS];
        for (what, cycles, events) in steps {
            let running = bench.session.is_running();
            match (what, running) {
                (0, true) => bench.suspend(End::SwitchedOut),
                (1, true) => bench.suspend(End::Stopped),
                (2, true) => bench.sync(),
                (3, _) => bench.tell_errors(3),
                (4, _) => {
                    bench.tell_errors(EVENTS);
                    for event in 0..EVENTS {
                        let told = match bench.session.read(event).value {
                            Value::Exact { count } => count,
                            Value::Estimated { estimate, .. } => estimate,
                            Value::NotMeasured { .. } => continue,
                        };
                        // The kernel rounds, readers cut off.
                        prop_assert!(bench.read(event).0.abs_diff(told) <= 2);
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
