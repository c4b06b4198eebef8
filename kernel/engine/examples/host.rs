//! The engine in a custom host, which only needs a PMU, a clock and a place for records:
//! `cargo run --package tally-engine --example host`.
//!
//! Here the PMU is words in memory, with two general counters for four events, the program is a
//! loop, and an interrupt is a call. A kernel does the same with registers; the documentation of
//! the traits has its obligations. Programs here neither see their logical counters, which
//! thresholds need, nor have counters of their own: the driver's methods for these features are
//! never called.

use std::cell::Cell;

use tally_abi::{
    Mode, Reading, SessionConfig, Value,
    trace::{End, SliceRecord, ThresholdRecord},
};
use tally_engine::{
    Clock, CounterMask, Counts, Demand, Group, Layout, Multiplexer, Pinned, Pmu, Selector, Session,
    Setup, Sink, Switch, Widths, for_each_counter,
};

/// Mask of a counter's value: counters are 48 bits wide.
const WIDTH: u64 = (1 << 48) - 1;
/// Events of selectors 0 to 3 in each step of the program; the last comes in bursts.
const STEP: [u64; 4] = [10, 200, 3_000, 0];
const BURST: u64 = 500;
const STEP_CYCLES: u64 = 5_000;
const STEP_INSTRUCTIONS: u64 = 8_000;

/// Registers and clock of the hardware.
#[derive(Default)]
struct Hardware {
    counters: Cell<Counts>,
    group: Cell<Group>,
    counting: Cell<bool>,
    tsc: Cell<u64>,
}

impl Hardware {
    /// Executes a step of the program, in which `events` happen. Returns whether the slice timer
    /// has overflowed.
    fn step(&self, events: [u64; 4]) -> bool {
        self.tsc.set(self.tsc.get() + STEP_CYCLES);
        if !self.counting.get() {
            return false;
        }
        let (mut counters, group) = (self.counters.get(), self.group.get());
        let add = |counter: &mut u64, more| *counter = (*counter + more) & WIDTH;
        add(&mut counters[Pinned::Cycles], STEP_CYCLES);
        add(&mut counters[Pinned::Instructions], STEP_INSTRUCTIONS);
        for_each_counter(group.used, |counter| {
            add(&mut counters.general[counter], events[group.selectors[counter].0 as usize]);
        });
        self.counters.set(counters);
        self.has_overflowed()
    }

    /// The timer counts up from minus the slice's length.
    fn has_overflowed(&self) -> bool {
        self.counters.get()[Pinned::Cycles] & (WIDTH ^ WIDTH >> 1) == 0
    }

    fn set(&self, group: &Group, slice: u64) {
        let mut counters = self.counters.get();
        counters[Pinned::Cycles] = slice.wrapping_neg() & WIDTH;
        self.counters.set(counters);
        self.group.set(*group);
    }
}

/// Driver of the hardware.
struct Driver<'a> {
    hardware: &'a Hardware,
}

impl Pmu for Driver<'_> {
    fn program(&mut self, group: &Group, setup: &Setup, slice: u64) {
        assert_eq!(setup.timer, Pinned::Cycles, "sessions here have slices of cycles");
        self.hardware.set(group, slice);
    }

    fn enable(&mut self) {
        self.hardware.counting.set(true);
    }

    fn can_restore(&self) -> bool {
        false
    }

    fn restore(&mut self, _: &Group, _: Mode, _: &Counts) {
        unreachable!("no counter can be loaded");
    }

    fn stop(&mut self) {
        self.hardware.counting.set(false);
    }

    fn is_counting(&mut self) -> bool {
        self.hardware.counting.get()
    }

    fn read(&mut self, _: CounterMask) -> Counts {
        self.hardware.counters.get()
    }

    fn switch(&mut self, next: &Switch, counts: &mut Counts) -> bool {
        if !self.hardware.has_overflowed() {
            return false;
        }
        *counts = self.hardware.counters.get();
        let mut group = self.hardware.group.get();
        for_each_counter(next.changed, |counter| {
            group.selectors[counter] = next.selectors[counter];
        });
        self.hardware.set(&group, next.length.into());
        true
    }

    /// The program stands still while the engine runs: there is nothing to resume.
    fn ack_and_resume(&mut self) {}

    fn scrub(&mut self) {
        self.hardware.counters.set(Counts::default());
    }

    fn preload(&mut self, _: usize, _: u64) -> u64 {
        unreachable!("no session has a bank");
    }

    fn disarm(&mut self) {
        unreachable!("no session has a bank");
    }

    fn widths(&self) -> Widths {
        Widths { pinned: WIDTH, general: WIDTH }
    }

    fn msr_accesses(&self) -> u64 {
        0
    }
}

impl Clock for Hardware {
    fn tsc(&self) -> u64 {
        self.tsc.get()
    }

    fn core_cycles(&self) -> Option<u64> {
        None
    }
}

/// Keeps the records of slices.
#[derive(Default)]
struct Records(Vec<SliceRecord>);

impl Sink for Records {
    fn record(&mut self, record: impl FnOnce() -> SliceRecord) {
        self.0.push(record());
    }

    fn threshold(&mut self, _: ThresholdRecord) {
        unreachable!("no session has a bank");
    }
}

/// Runs the program for a number of steps. Returns the readings, the true counts, and the records.
fn measure(steps: u64) -> (Vec<Reading>, [u64; 4], Vec<SliceRecord>) {
    let hardware = Hardware::default();
    let layout = Layout { general: 0b11, reference: false, extra: 0, widths: Widths::of(48) };
    let demands = (0..4).map(|event| Demand::general(Selector(event), layout.general)).collect();
    let mut session = Session::open(1, 0, SessionConfig::default(), 7, demands, &layout)
        .expect("two counters can count them two by two");
    // Each CPU has one, whose driver has taken over its PMU.
    let driver = Driver { hardware: &hardware };
    let mut multiplexer = Multiplexer::new(driver, 0, 0);
    let (mut records, mut truth) = (Records::default(), [0; 4]);
    // When the program is scheduled on the CPU.
    multiplexer.resume(&mut session, &hardware, &mut records);
    for step in 0..steps {
        let mut events = STEP;
        events[3] = if step / 100 % 7 == 0 { BURST } else { 0 };
        truth.iter_mut().zip(events).for_each(|(sum, more)| *sum += more);
        if hardware.step(events) {
            // The overflow interrupt.
            multiplexer.overflow(Some(&mut session), &hardware, || &mut records);
        }
    }
    // When it leaves the CPU, or stops counting.
    multiplexer.suspend(&mut session, End::Stopped, &hardware, &mut records);
    (session.readings(), truth, records.0)
}

fn main() {
    let (readings, truth, records) = measure(400_000);
    println!("{} slices", records.len());
    for (event, (reading, truth)) in readings.iter().zip(truth).enumerate() {
        match reading.value {
            Value::Exact { count } => println!("event {event}: {count}, exact; truth {truth}"),
            Value::Estimated { estimate, half_width_95, .. } => {
                println!("event {event}: {estimate} +- {half_width_95:.0}; truth {truth}");
            }
            Value::NotMeasured { reason } => println!("event {event}: {}", reason.message()),
        }
    }
}

#[test]
fn estimates_are_near_the_truth_and_slices_make_up_the_whole() {
    let (readings, truth, records) = measure(400_000);
    let cycles: u64 = records.iter().map(|record| record.cycles).sum();
    assert_eq!(cycles, 400_000 * STEP_CYCLES);
    for (reading, truth) in readings.iter().zip(truth) {
        let Value::Estimated { estimate, half_width_95, .. } = reading.value else {
            panic!("{reading:?}")
        };
        assert!(estimate.abs_diff(truth) as f64 <= 2.0 * half_width_95, "{reading:?}, {truth}");
        assert!(half_width_95 < 0.1 * truth as f64, "{reading:?}");
    }
}
