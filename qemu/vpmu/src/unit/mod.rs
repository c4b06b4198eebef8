//! The counter unit of a CPU: 256 counters of 64 bits that count at the same time.
//!
//! The design is that of Salapura and others, "Next-Generation Performance Counters: Towards
//! Monitoring over Thousand Concurrent Events" (ISPASS 2008); decision 55 lists the differences.
//! Like the rest of the crate, it gets the model's counts up to now, and its counters are
//! differences of them. Time is the model's cycles in both rings.
//!
//! Invariant: a counter's value is the sum of its input while it counted. A counter is updated when
//! it is accessed and, if its threshold raises an interrupt, also whenever [`Unit::sync`] is
//! called. Events between two updates are assumed to be evenly spaced.

mod hybrid;
mod registers;

use tally_model::{Counts, Geometry, Signal};

use crate::counter::CounterInput;

use self::hybrid::{Cycles, HybridCounter, MOST_EVENTS};
pub(crate) use self::{
    hybrid::{COUNTERS, WORD},
    registers::{CAPABILITIES_VALUE, CONTROL_RUN, COUNT, UnitRegister, config},
};

/// The words of `STATUS`.
const STATUS_WORDS: usize = COUNTERS / 64;

/// The model's counts, with the geometry that is needed to read them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment<'a> {
    pub(crate) counts: &'a [Counts; 2],
    pub(crate) geometry: &'a Geometry,
}

impl Moment<'_> {
    /// Core cycles up to now, in both rings.
    fn cycle(self) -> u64 {
        let slots: u64 = self.counts.iter().map(|ring| ring[Signal::Slots]).sum();
        slots / u64::from(self.geometry.width)
    }
}

/// A counter with its configuration.
#[derive(Clone, Debug, Default)]
struct UnitCounter {
    /// `CONFIG` without the read-only bit.
    config: u64,
    /// Input; `None` if the model does not have the event in this mode.
    input: Option<CounterInput>,
    hybrid: HybridCounter,
    /// The input's total at the last update.
    seen: u64,
    /// The cycle of the last update. The out-of-order pipeline charges slots of dispatch ahead of
    /// its clock, more in a cycle than a counter can count: then this is ahead of the clock, too.
    cycle: u64,
}

impl UnitCounter {
    /// The input that is counted while the unit is started.
    fn enabled(&self) -> Option<&CounterInput> {
        self.input.as_ref().filter(|_| self.config & config::EN != 0)
    }

    /// Events since the last update.
    fn new_events(&self, runs: bool, now: Moment<'_>) -> u64 {
        let input = self.enabled().filter(|_| runs);
        input.map_or(0, |input| input.total(now.counts, now.geometry) - self.seen)
    }

    /// Updates the counter; returns whether its threshold has fired.
    fn advance(&mut self, index: usize, runs: bool, now: Moment<'_>) -> bool {
        let events = self.new_events(runs, now);
        let end = self.cycle + events.div_ceil(MOST_EVENTS);
        let time = Cycles { from: self.cycle, to: end.max(now.cycle()) };
        self.seen += events;
        self.cycle = time.to;
        self.hybrid.count(events, time, index)
    }

    /// Starts counting at the present total.
    fn restart(&mut self, now: Moment<'_>) {
        let input = self.enabled();
        self.seen = input.map_or(0, |input| input.total(now.counts, now.geometry));
    }
}

/// The counter unit of one CPU.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    counters: Vec<UnitCounter>,
    /// Whether the counters count: the start/stop register.
    runs: bool,
    /// Bits of the thresholds that have fired.
    status: [u64; STATUS_WORDS],
}

impl Unit {
    /// Makes a unit after reset: stopped, everything 0.
    pub(crate) fn new() -> Unit {
        let counters = vec![UnitCounter::default(); COUNTERS];
        Unit { counters, runs: false, status: [0; STATUS_WORDS] }
    }

    /// Updates the counters whose thresholds raise interrupts; returns whether an interrupt is
    /// raised.
    pub(crate) fn sync(&mut self, now: Moment<'_>) -> bool {
        let mut raised = false;
        for index in 0..COUNTERS {
            if self.counters[index].hybrid.has_interrupts() {
                raised |= self.advance(index, now);
            }
        }
        raised
    }

    /// Updates a counter; returns whether an interrupt is raised.
    fn advance(&mut self, index: usize, now: Moment<'_>) -> bool {
        let fires = self.counters[index].advance(index, self.runs, now);
        self.status[index / 64] |= u64::from(fires) << (index % 64);
        fires
    }

    /// Returns whether any counter counts.
    pub(crate) fn is_counting(&self) -> bool {
        self.runs && self.counters.iter().any(|counter| counter.enabled().is_some())
    }

    /// Minimum number of slots before a threshold can fire.
    pub(crate) fn slots_to_fire(&self, now: Moment<'_>) -> u64 {
        let slots = |counter: &UnitCounter| {
            let input = counter.enabled().filter(|_| self.runs)?;
            let new = counter.new_events(self.runs, now);
            let left = counter.hybrid.events_to_fire().saturating_sub(new);
            counter.hybrid.has_interrupts().then(|| left / input.growth_per_slot())
        };
        self.counters.iter().filter_map(slots).min().unwrap_or(u64::MAX >> 1)
    }

    /// The value of a counter.
    pub(crate) fn count(&mut self, index: usize, now: Moment<'_>) -> u64 {
        self.advance(index, now);
        self.counters[index].hybrid.value()
    }

    /// Sets the value of a counter.
    pub(crate) fn set_count(&mut self, index: usize, value: u64, now: Moment<'_>) {
        self.advance(index, now);
        self.counters[index].hybrid.set_value(value);
    }

    /// `CONFIG` of a counter.
    pub(crate) fn config(&mut self, index: usize, now: Moment<'_>) -> u64 {
        self.advance(index, now);
        let counter = &self.counters[index];
        let supported = if counter.input.is_some() { config::SUPPORTED } else { 0 };
        counter.config | supported
    }

    /// Sets `CONFIG` of a counter, whose event and mode give `input`.
    pub(crate) fn set_config(
        &mut self,
        index: usize,
        value: u64,
        input: Option<CounterInput>,
        now: Moment<'_>,
    ) {
        self.advance(index, now);
        let counter = &mut self.counters[index];
        counter.config = value & !config::SUPPORTED;
        counter.input = input;
        counter.hybrid.set_interrupts(value & config::INT != 0);
        counter.restart(now);
    }

    /// `THRESHOLD` of a counter.
    pub(crate) fn threshold(&self, index: usize) -> u64 {
        self.counters[index].hybrid.threshold()
    }

    /// Sets `THRESHOLD` of a counter.
    pub(crate) fn set_threshold(&mut self, index: usize, word: u64, now: Moment<'_>) {
        self.advance(index, now);
        self.counters[index].hybrid.set_threshold(word);
    }

    /// Returns whether the unit is started.
    pub(crate) fn runs(&self) -> bool {
        self.runs
    }

    /// Starts or stops all counters.
    pub(crate) fn run(&mut self, runs: bool, now: Moment<'_>) {
        for index in 0..COUNTERS {
            self.advance(index, now);
            self.counters[index].restart(now);
        }
        self.runs = runs;
    }

    /// A word of `STATUS`.
    pub(crate) fn status(&self, word: usize) -> u64 {
        self.status[word]
    }

    /// Clears the bits of a word of `STATUS` that are set in `bits`.
    pub(crate) fn clear_status(&mut self, word: usize, bits: u64) {
        self.status[word] &= !bits;
    }
}
