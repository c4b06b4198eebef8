//! A program with a logical counter bank, on a simulated PMU: it reads and switches its counters by
//! [`tally_abi::bank`]'s rules.

use crate::fake::{NoClock, NoSink, Simulated};
use tally_abi::{
    Mode, SessionConfig, Shares, Slice,
    bank::{
        BUSY, COUNTER_WORDS, DETACHED, HEADER_WORDS, PAGE_WORDS, PINNED_SLOT, READ_BYTES, STOPPED,
        counter, half_width, header, value, words, writable,
    },
    session,
    trace::End,
};
use tally_engine::{
    Demand, Layout, Multiplexer, Pinned, Selector, Session, Widths, bank::Page,
    plan::CounterAssignment,
};

pub const SLICE: u64 = 10_000;
pub const CONFIG: SessionConfig = SessionConfig {
    mode: Mode::User,
    slice: Slice::Cycles(SLICE),
    budget_ppm: session::NO_BUDGET_PPM,
    shares: Shares::Planned,
    exclusive: false,
    unit: false,
    scope: tally_abi::Scope::Program,
};
/// Number of events: eight, and the cycles.
pub const EVENTS: usize = 9;

/// A session with a bank, its CPU, and a reader.
pub struct Bench {
    pub pmu: Simulated,
    pub multiplexer: Multiplexer<Simulated>,
    pub session: Session,
    pub own: &'static Page,
    pub pages: Vec<&'static Page>,
    /// Action between two steps of stopping and starting the program's counters, and the number of
    /// the step before which it happens.
    pub between: Option<(u32, Between)>,
}

pub type Between = fn(&mut Bench);

impl Bench {
    pub fn new(counters: u32, seed: u64, value: u64) -> Bench {
        Bench::sharing(Shares::Planned, counters, seed, value)
    }

    pub fn sharing(shares: Shares, counters: u32, seed: u64, value: u64) -> Bench {
        let layout = Layout {
            general: (1 << counters) - 1,
            reference: true,
            extra: 0,
            widths: Widths::of(48),
        };
        let mut demands: Vec<_> = (0..8).map(|e| Demand::general(Selector(e), 0xff)).collect();
        demands.push(Demand::pinned(Pinned::Cycles));
        let pmu = Simulated::showing(value);
        let mut session = {
            let config = SessionConfig { shares, ..CONFIG };
            Session::open(9, 0x5000, config, seed, demands, &layout).unwrap()
        };
        let count = words(EVENTS).div_ceil(PAGE_WORDS);
        let pages: Vec<&'static Page> =
            (0..count).map(|_| &*Box::leak(Box::<Page>::default())).collect();
        let own: &'static Page = Box::leak(Box::default());
        assert!(session.map_bank(own, pages.clone().into(), |assigned| match assigned {
            CounterAssignment::General { counter, .. } => counter.into(),
            CounterAssignment::Pinned(event) => PINNED_SLOT as u32 + event as u32,
            CounterAssignment::Metric(_) => panic!("no list here has metrics"),
        }));
        let multiplexer = Multiplexer::new(pmu.clone(), 0, 0);
        Bench { multiplexer, pmu, session, own, pages, between: None }
    }

    pub fn word(&self, index: usize) -> u64 {
        self.pages[index / PAGE_WORDS].load(index % PAGE_WORDS)
    }

    pub fn counter(&self, event: usize, word: usize) -> u64 {
        self.word(HEADER_WORDS + event * COUNTER_WORDS + word)
    }

    /// Returns the count of an event's basis.
    pub fn count(&self, event: usize) -> u64 {
        let state = self.own.load(writable::CONTROL) as u32;
        assert_ne!(state, BUSY);
        let basis = self.counter(event, counter::ASSIGNMENT);
        let (slot, sum) = (basis as u16 as usize, (basis >> 16) as u16 as usize);
        let since = match state {
            DETACHED => 0,
            state if state & STOPPED != 0 => u64::from(self.own.load(writable::HELD + slot) as u32),
            _ => {
                let origin = self.own.load(writable::ORIGIN + slot) as u32;
                u64::from(self.rdpmc((basis >> 32) as usize).wrapping_sub(origin))
            }
        };
        self.word(sum) + since
    }

    /// Returns a program's reading, and the estimate independent of earlier readings.
    pub fn read(&self, event: usize) -> (u64, u64) {
        let estimate = value(self.count(event), self.counter(event, counter::RATE));
        (estimate.max(self.counter(event, counter::PUBLISHED_MAX)), estimate)
    }

    /// Returns the half width of the 95 % interval of a program's reading now; NaN while it is not
    /// known.
    pub fn half_width(&self, event: usize) -> f64 {
        let words: [u64; COUNTER_WORDS] = core::array::from_fn(|word| self.counter(event, word));
        half_width(&words, self.count(event))
    }

    pub fn resume(&mut self) {
        if !self.session.is_running() {
            self.multiplexer.resume(&mut self.session, &NoClock, &mut NoSink);
        }
    }

    pub fn suspend(&mut self, end: End) {
        self.multiplexer.suspend(&mut self.session, end, &NoClock, &mut NoSink);
    }

    pub fn sync(&mut self) {
        self.multiplexer.sync(&mut self.session, &NoClock, &mut NoSink);
    }

    /// Returns the result of RDPMC for a slot's counter.
    pub fn rdpmc(&self, slot: usize) -> u32 {
        match slot.checked_sub(PINNED_SLOT) {
            Some(event) => self.pmu.always(Pinned::ALL[event]) as u32,
            None => self.pmu.general(slot) as u32,
        }
    }

    /// Executes a step of the program. Returns whether there was an interruption since the previous
    /// step.
    fn is_interrupted(&mut self) -> bool {
        let Some((steps, what)) = &mut self.between else { return false };
        *steps = steps.saturating_sub(1);
        if *steps > 0 {
            return false;
        }
        let what = *what;
        self.between = None;
        what(self);
        true
    }

    fn set_own(&self, index: usize, value: u64) {
        assert!(self.own.exchange(index, self.own.load(index), value));
    }

    /// Executes a restartable sequence from its first instruction: stops or starts the program's
    /// counters if its state, as a signed number, `is_due`. `None` if it was interrupted.
    fn sequence(&mut self, is_due: fn(i32) -> bool, [less, to]: [usize; 2]) -> Option<bool> {
        let ready = |bench: &mut Bench| (!bench.is_interrupted()).then_some(());
        ready(self)?;
        if !is_due(self.own.load(writable::CONTROL) as i32) {
            return Some(false);
        }
        let general = (self.word(header::READS) / READ_BYTES) as usize;
        let first = self.word(header::FIRST) as usize;
        let reference = self.word(header::USED) >> (PINNED_SLOT + 2) & 1;
        let pinned = PINNED_SLOT..PINNED_SLOT + 2 + reference as usize;
        for slot in (first..first + general).rev().chain(pinned) {
            ready(self)?;
            let count = self.rdpmc(slot);
            ready(self)?;
            let count = count.wrapping_sub(self.own.load(less + slot) as u32);
            ready(self)?;
            self.set_own(to + slot, count.into());
        }
        ready(self)?;
        let control = self.own.load(writable::CONTROL);
        self.set_own(writable::CONTROL, control.wrapping_add(STOPPED.into()));
        Some(true)
    }

    /// Stops the program's counters.
    pub fn stop(&mut self) {
        let arrays = [writable::ORIGIN, writable::HELD];
        while self.sequence(|state| state >= 0, arrays).is_none() {}
        assert_ne!(self.own.load(writable::CONTROL) as u32 & STOPPED, 0);
    }

    /// Starts the program's counters. Returns whether a system call was made.
    pub fn start(&mut self) -> bool {
        let arrays = [writable::HELD, writable::ORIGIN];
        while self.sequence(|state| state < BUSY as i32, arrays).is_none() {}
        let state = self.own.load(writable::CONTROL) as u32;
        assert_ne!(state, BUSY);
        if state == DETACHED {
            self.resume();
        }
        state == DETACHED
    }

    /// Returns the unscaled counts of all events, after a last [`Bench::stop`].
    pub fn held(&mut self) -> [u64; EVENTS] {
        self.sync();
        core::array::from_fn(|event| match self.session.plan().assignments[event] {
            CounterAssignment::General { group, counter } => {
                self.session.sample(group, counter).event.events
            }
            CounterAssignment::Pinned(_) | CounterAssignment::Metric(_) => self.read(event).0,
        })
    }

    pub fn publish_errors(&mut self, calls: usize) {
        if self.session.is_running() {
            self.sync();
        }
        self.session.publish_errors(calls);
    }

    pub fn run(&mut self, cycles: u64, events: &[u64; 8]) {
        if self.pmu.run(cycles, cycles * (events[0] % 5), events) {
            self.multiplexer.overflow(Some(&mut self.session), &NoClock, || NoSink);
        }
    }
}
