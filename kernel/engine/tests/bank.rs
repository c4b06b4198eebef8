//! The logical counter bank on a simulated PMU, read and switched by [`tally_abi::bank`]'s rules: no
//! value runs backwards, each is what the session says, and what happens while the program has
//! stopped its counters is in none.

// Long because the program's side of the bank, in Rust, is part of it.

mod fake;

use fake::{NoClock, NoSink, Simulated};
use proptest::prelude::*;
use tally_abi::{
    Mode, SessionConfig, Shares, Slice, Value,
    bank::{
        AGAIN, ALWAYS, ALWAYS_SLOT, BUSY, COUNTER_WORDS, HEADER_WORDS, NOBODY, PAGE_WORDS,
        SCALE_BITS, SLOTS, STOPPED, counter, header, own, words,
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
    shares: Shares::Planned,
};
/// Eight events and the cycles.
const EVENTS: usize = 9;

/// A session with a bank, its CPU, and a reader.
struct Bench {
    pmu: Simulated,
    multiplexer: Multiplexer<Simulated>,
    session: Session,
    own: &'static Page,
    pages: Vec<&'static Page>,
    /// What the program does between the steps of stopping and starting its counters, and before
    /// which step.
    between: Option<(u32, Between)>,
}

type Between = fn(&mut Bench);

impl Bench {
    fn new(counters: u32, seed: u64, value: u64) -> Bench {
        Bench::sharing(Shares::Planned, counters, seed, value)
    }

    fn sharing(shares: Shares, counters: u32, seed: u64, value: u64) -> Bench {
        let layout = Layout { general: ((1_u16 << counters) - 1) as u8, reference: true, extra: 0 };
        let mut demands: Vec<_> = (0..8).map(|e| Demand::general(Selector(e), 0xff)).collect();
        demands.push(Demand::always(Always::Cycles));
        let pmu = Simulated::showing(value);
        let config = SessionConfig { shares, ..CONFIG };
        let mut session = Session::open(9, 0x5000, config, seed, demands, &layout).unwrap();
        let count = words(EVENTS).div_ceil(PAGE_WORDS);
        let pages: Vec<&'static Page> =
            (0..count).map(|_| &*Box::leak(Box::<Page>::default())).collect();
        let own: &'static Page = Box::leak(Box::default());
        assert!(session.expose(own, pages.clone().into(), |place| match place {
            Place::General { counter, .. } => counter.into(),
            Place::Always(event) => ALWAYS_SLOT as u32 + event as u32,
        }));
        let multiplexer = Multiplexer::new(pmu.clone(), 0, 0);
        Bench { multiplexer, pmu, session, own, pages, between: None }
    }

    fn word(&self, index: usize) -> u64 {
        self.pages[index / PAGE_WORDS].load(index % PAGE_WORDS)
    }

    fn counter(&self, event: usize, word: usize) -> u64 {
        self.word(HEADER_WORDS + event * COUNTER_WORDS + word)
    }

    /// What a program reads, and the estimate without regard to what was told.
    fn read(&self, event: usize) -> (u64, u64) {
        let switch = self.own.load(own::SWITCH) as u32;
        assert_ne!(switch, BUSY);
        let place = self.counter(event, counter::PLACE);
        let (group, slot) = (place as u32, (place >> 32) as usize);
        let since = |slot: usize| match switch & STOPPED {
            0 => {
                let base = (self.word(header::BASE + slot) as u32)
                    .wrapping_add(self.own.load(own::SKIPPED + slot) as u32);
                u64::from(self.rdpmc(slot).wrapping_sub(base))
            }
            _ => u64::from(self.own.load(own::HELD + slot) as u32),
        };
        if u64::from(group) >= ALWAYS {
            let event = (u64::from(group) - ALWAYS) as usize;
            let total = self.word(header::TOTAL + event);
            let count = if switch == NOBODY { total } else { total + since(ALWAYS_SLOT + event) };
            return (count, count);
        }
        let mut events = self.counter(event, counter::EVENTS);
        if group == switch & !STOPPED {
            events += since(slot);
        }
        let scale = self.counter(event, counter::SCALE);
        let estimate = ((u128::from(events) * u128::from(scale)) >> SCALE_BITS) as u64;
        (estimate.max(self.counter(event, counter::TOLD)), estimate)
    }

    fn resume(&mut self) {
        if !self.session.is_running() {
            self.multiplexer.resume(&mut self.session, &NoClock);
        }
    }

    fn suspend(&mut self, end: End) {
        self.multiplexer.suspend(&mut self.session, end, &NoClock, &mut NoSink);
    }

    fn sync(&mut self) {
        self.multiplexer.sync(&mut self.session, &NoClock, &mut NoSink);
    }

    /// What RDPMC shows of a slot's counter.
    fn rdpmc(&self, slot: usize) -> u32 {
        match slot.checked_sub(ALWAYS_SLOT) {
            Some(event) => self.pmu.always(Always::ALL[event]) as u32,
            None => self.pmu.general(slot) as u32,
        }
    }

    /// A step of the program's: something may come between it and the one before.
    fn step(&mut self) {
        if let Some((steps, what)) = &mut self.between {
            *steps = steps.saturating_sub(1);
            if *steps == 0 {
                let what = *what;
                self.between = None;
                what(self);
            }
        }
    }

    fn note(&mut self, to: usize, less: usize, switch: u64) -> bool {
        let used = self.word(header::USED);
        (0..SLOTS).filter(|slot| used >> slot & 1 == 1).all(|slot| {
            self.step();
            let old = self.own.load(to + slot);
            self.step();
            if self.own.load(own::SWITCH) != switch {
                return false;
            }
            self.step();
            let count = self.rdpmc(slot);
            self.step();
            let count = count.wrapping_sub(self.word(header::BASE + slot) as u32);
            self.step();
            let count = count.wrapping_sub(self.own.load(less + slot) as u32);
            self.step();
            self.own.exchange(to + slot, old, switch >> 32 << 32 | u64::from(count))
        })
    }

    /// The program stops its counters.
    fn stop(&mut self) {
        loop {
            let switch = self.own.load(own::SWITCH);
            assert_ne!(switch as u32, BUSY);
            if switch as u32 & STOPPED != 0 {
                return;
            }
            if self.note(own::HELD, own::SKIPPED, switch) {
                self.step();
                if self.own.exchange(own::SWITCH, switch, switch | u64::from(STOPPED)) {
                    return;
                }
            }
        }
    }

    /// The program starts them: whether by a system call.
    fn start(&mut self) -> bool {
        loop {
            let switch = self.own.load(own::SWITCH);
            if switch as u32 == NOBODY {
                self.resume();
                return true;
            }
            if switch as u32 & STOPPED == 0 {
                return false;
            }
            if self.note(own::SKIPPED, own::HELD, switch) {
                self.step();
                let started = switch & !u64::from(STOPPED) | u64::from(AGAIN) << 32;
                if self.own.exchange(own::SWITCH, switch, started) {
                    return false;
                }
            }
        }
    }

    /// All that was counted of each event, not scaled, after a last [`Bench::stop`].
    fn held(&mut self) -> [u64; EVENTS] {
        self.sync();
        core::array::from_fn(|event| match self.session.plan().places[event] {
            Place::General { group, counter } => self.session.sample(group, counter).event.events,
            Place::Always(_) => self.read(event).0,
        })
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
    // The slice, or the program's turn, ends meanwhile: the kernel leaves the program alone.
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

/// Everything that can come between two steps: a slice that ends; one that ends and whose program
/// looks, stops and starts in an upcall; the program's turn.
const BETWEEN: [Between; 3] = [
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
];

/// Whatever comes between two steps of stopping or starting, it is counted as a whole or not at all,
/// in every counter alike, and later stops and starts are exact.
#[test]
fn an_interruption_of_the_switch_is_counted_as_a_whole_or_not_at_all() {
    for (between, what) in BETWEEN.into_iter().enumerate() {
        let (mut whole, mut none) = (0, 0);
        for (counters, steps) in [8, 3].into_iter().flat_map(|c| (1..160).map(move |s| (c, s))) {
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

/// A program may write what it likes: it deceives itself about its counts, and no more.
#[test]
fn nonsense_in_the_programs_page_hurts_nobody_else() {
    let mut bench = Bench::new(3, 1, 0);
    bench.resume();
    for turn in 0..200_u64 {
        for word in 0..PAGE_WORDS {
            let value = match (word, turn % 4) {
                (own::SWITCH, 0) => bench.own.load(own::SWITCH) | u64::from(STOPPED),
                (own::SWITCH, 1) => bench.own.load(own::SWITCH) | u64::from(AGAIN) << 32,
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
    /// Whatever happens between two readings: no value runs backwards, and the kernel says the same
    /// whenever it is asked.
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
