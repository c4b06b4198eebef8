//! Simulated PMU, clock and sink for tests of the engine.

#![allow(dead_code, reason = "each test uses its own part of this")]

use std::{cell::RefCell, rc::Rc};

use tally_abi::{
    Mode,
    bank::PINNED_SLOT,
    trace::{SliceRecord, ThresholdRecord},
};
use tally_engine::{
    Clock, CounterMask, Counts, Group, MAX_GENERAL, Pinned, Pmu, Selector, Setup, Sink, Switch,
    Widths, for_each_counter,
};

/// Mask of a counter's value: all counters are 48 bits wide.
pub const WIDTH: u64 = (1 << 48) - 1;

/// A PMU that counts eight events. A selector is the number of an event, modulo eight. Clones are
/// handles of the same PMU: one for the engine, one for the program.
#[derive(Clone, Default)]
pub struct Simulated(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    counters: Counts,
    group: Group,
    counting: bool,
    /// Whether the PMU counts ring 0 too, and thus the engine's own code.
    kernel: bool,
    /// Whether the overflow path is running.
    held: bool,
    /// Cycles and instructions that were counted.
    truth: (u64, u64),
    msr_accesses: u64,
    /// Slices that were armed, in order.
    armed: Vec<u64>,
    /// Mask of slots that were preloaded and interrupt.
    preloaded: u16,
    /// Number of preloads so far.
    preloads: u64,
    /// Minimum number of events that a counter was preloaded with.
    nearest: Option<u64>,
}

impl Simulated {
    /// Makes a PMU whose counters all have the value `value`.
    pub fn showing(value: u64) -> Simulated {
        let pmu = Simulated::default();
        let mut counters = Counts::default();
        counters.general = [value; MAX_GENERAL];
        Pinned::ALL.into_iter().for_each(|event| counters[event] = value);
        pmu.0.borrow_mut().counters = counters;
        pmu
    }

    /// Runs a program for some cycles. Returns whether the slice timer has overflowed.
    pub fn run(&self, cycles: u64, instructions: u64, events: &[u64; 8]) -> bool {
        let mut state = self.0.borrow_mut();
        if !state.counting || state.held {
            return false;
        }
        state.truth.0 += cycles;
        state.truth.1 += instructions;
        let group = state.group;
        let counters = &mut state.counters;
        let add = |counter: &mut u64, more: u64| *counter = (*counter + more) & WIDTH;
        add(&mut counters[Pinned::Cycles], cycles);
        add(&mut counters[Pinned::Instructions], instructions);
        add(&mut counters[Pinned::Reference], cycles / 2);
        for (counter, selector) in group.selectors.iter().enumerate() {
            // An unused counter continues with its old event: the engine must not depend on it.
            add(&mut counters.general[counter], events[selector.0 as usize % 8]);
        }
        let preloaded = state.preloaded;
        let general = (0..8).filter(|slot| preloaded >> slot & 1 == 1);
        let always = Pinned::ALL
            .into_iter()
            .filter(|event| preloaded >> (PINNED_SLOT + *event as usize) & 1 == 1);
        let counters = &state.counters;
        counters[Pinned::Cycles] >> 47 == 0
            || general.clone().any(|slot| counters.general[slot] >> 47 == 0)
            || always.clone().any(|event| counters[event] >> 47 == 0)
    }

    /// Returns the cycles and instructions that were counted so far.
    pub fn truth(&self) -> (u64, u64) {
        self.0.borrow().truth
    }

    /// Lets time pass in the engine: ring 0 continues.
    fn engine(&self) {
        if self.0.borrow().kernel {
            self.run(7, 3, &[1; 8]);
        }
    }

    /// Returns how often counters were preloaded.
    pub fn preloads(&self) -> u64 {
        self.0.borrow().preloads
    }

    /// Returns the minimum number of events that a counter was preloaded with.
    pub fn nearest_preload(&self) -> Option<u64> {
        self.0.borrow().nearest
    }

    /// Returns whether a counter besides the timer may interrupt.
    pub fn is_armed(&self) -> bool {
        self.0.borrow().preloaded != 0
    }

    /// Returns the result of RDPMC for a general counter.
    pub fn general(&self, counter: usize) -> u64 {
        self.0.borrow().counters.general[counter]
    }

    /// Returns the result of RDPMC for a pinned event's counter.
    pub fn always(&self, event: Pinned) -> u64 {
        self.0.borrow().counters[event]
    }

    pub fn armed(&self) -> Vec<u64> {
        self.0.borrow().armed.clone()
    }

    fn read_others(&self, set: CounterMask, counts: &mut Counts) {
        let state = self.0.borrow();
        counts[Pinned::Instructions] = state.counters[Pinned::Instructions];
        if set.reference {
            counts[Pinned::Reference] = state.counters[Pinned::Reference];
        }
        for_each_counter(set.general, |counter| {
            counts.general[counter] = state.counters.general[counter];
        });
    }

    fn change(&self, changed: u16, selectors: &[Selector; MAX_GENERAL], slice: u64) {
        let mut state = self.0.borrow_mut();
        for_each_counter(changed, |counter| {
            state.preloaded &= !(1 << counter);
            state.group.selectors[counter] = selectors[counter];
        });
        state.counters[Pinned::Cycles] = slice.wrapping_neg() & WIDTH;
        state.armed.push(slice);
        state.msr_accesses += 1;
    }

    pub fn is_counting(&self) -> bool {
        self.0.borrow().counting
    }
}

impl Pmu for Simulated {
    fn program(&mut self, group: &Group, setup: &Setup, slice: u64) {
        assert!(!self.is_counting());
        self.change(u16::MAX, &group.selectors, slice);
        self.0.borrow_mut().kernel = setup.kernel;
    }

    fn enable(&mut self) {
        assert!(!self.is_counting());
        self.0.borrow_mut().counting = true;
    }

    fn can_restore(&self) -> bool {
        true
    }

    fn restore(&mut self, group: &Group, _: Mode, values: &Counts) {
        assert!(!self.is_counting());
        let mut state = self.0.borrow_mut();
        state.group = *group;
        state.counters = *values;
        state.counting = true;
    }

    fn stop(&mut self) {
        self.engine();
        let mut state = self.0.borrow_mut();
        (state.counting, state.held) = (false, false);
        state.preloaded = 0;
    }

    fn is_counting(&mut self) -> bool {
        Simulated::is_counting(self)
    }

    fn scrub(&mut self) {
        self.0.borrow_mut().counters = Counts::default();
    }

    fn read(&mut self, set: CounterMask) -> Counts {
        self.engine();
        let mut counts = Counts::default();
        counts[Pinned::Cycles] = self.0.borrow().counters[Pinned::Cycles];
        self.read_others(set, &mut counts);
        counts
    }

    fn switch(&mut self, next: &Switch, counts: &mut Counts) -> bool {
        if self.0.borrow().counters[Pinned::Cycles] >> 47 == 1 {
            return false;
        }
        self.0.borrow_mut().held = true;
        let Switch { general, reference, .. } = *next;
        *counts = self.read(CounterMask { general, reference });
        self.change(next.changed, &next.selectors, next.length.into());
        true
    }

    fn ack_and_resume(&mut self) {
        self.0.borrow_mut().msr_accesses += 1;
        self.0.borrow_mut().held = false;
    }

    fn preload(&mut self, slot: usize, remaining: u64) -> u64 {
        self.engine();
        let mut state = self.0.borrow_mut();
        let value = remaining.wrapping_neg() & WIDTH;
        match slot.checked_sub(PINNED_SLOT) {
            Some(event) => state.counters[Pinned::ALL[event]] = value,
            None => state.counters.general[slot] = value,
        }
        state.preloaded |= 1 << slot;
        state.preloads += 1;
        state.nearest = Some(state.nearest.map_or(remaining, |nearest| nearest.min(remaining)));
        value
    }

    fn disarm(&mut self) {
        let mut state = self.0.borrow_mut();
        state.preloaded = 0;
    }

    fn widths(&self) -> Widths {
        Widths { pinned: WIDTH, general: WIDTH }
    }

    fn msr_accesses(&self) -> u64 {
        self.0.borrow().msr_accesses
    }
}

/// Clock that stands still.
pub struct NoClock;

impl Clock for NoClock {
    fn tsc(&self) -> u64 {
        0
    }

    fn core_cycles(&self) -> Option<u64> {
        None
    }
}

/// Clock that a test sets.
#[derive(Default)]
pub struct SetClock(pub std::cell::Cell<u64>);

impl Clock for SetClock {
    fn tsc(&self) -> u64 {
        self.0.get()
    }

    fn core_cycles(&self) -> Option<u64> {
        None
    }
}

/// Clock that advances by one at each reading.
#[derive(Default)]
pub struct Ticking(std::cell::Cell<u64>);

impl Ticking {
    /// Lets `ticks` pass.
    pub fn pass(&self, ticks: u64) {
        self.0.set(self.0.get() + ticks);
    }
}

impl Clock for Ticking {
    fn tsc(&self) -> u64 {
        self.0.set(self.0.get() + 1);
        self.0.get()
    }

    fn core_cycles(&self) -> Option<u64> {
        None
    }
}

/// Discards all records.
pub struct NoSink;

impl Sink for NoSink {
    fn record(&mut self, _: impl FnOnce() -> SliceRecord) {}
    fn threshold(&mut self, _: ThresholdRecord) {}
}

/// Keeps every record.
#[derive(Default)]
pub struct Records(pub Vec<SliceRecord>);

impl Sink for Records {
    fn record(&mut self, record: impl FnOnce() -> SliceRecord) {
        self.0.push(record());
    }

    fn threshold(&mut self, _: ThresholdRecord) {}
}
