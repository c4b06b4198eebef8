//! A counter: a sum of signals since it was started.

use tally_model::{Counts, GROWTH_PER_SLOT, Geometry, Privilege, Signal};

use crate::event::{Conversion, Event};

/// Input of a counter: events, in rings. Several of AMD's unit-mask bits together select several
/// events.
#[derive(Clone, Debug, Default)]
pub(crate) struct CounterInput {
    pub(crate) events: Vec<&'static Event>,
    /// Events whose counts are subtracted. Their sum never exceeds that of `events`.
    pub(crate) less: Vec<&'static Event>,
    pub(crate) user: bool,
    pub(crate) kernel: bool,
}

impl CounterInput {
    /// Makes an input from events in rings.
    pub(crate) fn of(events: Vec<&'static Event>, [user, kernel]: [bool; 2]) -> CounterInput {
        CounterInput { events, less: Vec::new(), user, kernel }
    }

    /// The count up to now.
    pub(crate) fn total(&self, counts: &[Counts; 2], geometry: &Geometry) -> u64 {
        let sum = |events: &[&Event], ring| {
            events.iter().map(|event| event.in_ring(counts, ring, geometry)).sum::<u64>()
        };
        let in_ring = |ring| sum(&self.events, ring) - sum(&self.less, ring);
        let user = if self.user { in_ring(Privilege::User) } else { 0 };
        user + if self.kernel { in_ring(Privilege::Kernel) } else { 0 }
    }

    /// Maximum growth of the count per slot of the clock.
    pub(crate) fn growth_per_slot(&self) -> u64 {
        let signals = self.events.iter().flat_map(|event| event.signals);
        let all: u64 = signals.map(|signal| signal.growth_per_slot()).sum();
        all.max(GROWTH_PER_SLOT)
    }
}

/// A counter of some width.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counter {
    /// The value when the counter was last started or written, or when it last overflowed.
    base: u64,
    /// The source's total at that time.
    since: u64,
    running: bool,
    source: CounterInput,
}

impl Counter {
    /// Returns whether the counter counts.
    pub(crate) fn is_running(&self) -> bool {
        self.running
    }

    /// Adds one if the counter counts instructions that retire in ring 3.
    pub(crate) fn overcount(&mut self) {
        let counts_instructions = |event: &&Event| event.signals == [Signal::Instructions];
        if self.running && self.source.user && self.source.events.iter().any(counts_instructions) {
            self.base += 1;
        }
    }

    /// Adds counts from outside the model's counts.
    pub(crate) fn add(&mut self, counts: &[Counts; 2], geometry: &Geometry) {
        if self.running {
            self.base += self.source.total(counts, geometry);
        }
    }

    /// The value; beyond the width if an overflow has not been handled yet.
    pub(crate) fn unwrapped(&self, counts: &[Counts; 2], geometry: &Geometry) -> u64 {
        if self.running {
            self.base + (self.source.total(counts, geometry) - self.since)
        } else {
            self.base
        }
    }

    /// The value, below `1 << width`.
    pub(crate) fn value(&self, counts: &[Counts; 2], geometry: &Geometry, width: u8) -> u64 {
        self.unwrapped(counts, geometry) & ((1 << width) - 1)
    }

    /// Wraps the value if it is beyond the width. Returns whether it was, that is, an overflow.
    pub(crate) fn wrap(&mut self, counts: &[Counts; 2], geometry: &Geometry, width: u8) -> bool {
        let unwrapped = self.unwrapped(counts, geometry);
        let overflowed = unwrapped >> width != 0;
        if overflowed {
            self.set(unwrapped & ((1 << width) - 1), counts, geometry);
        }
        overflowed
    }

    /// Minimum number of slots before the counter can overflow.
    pub(crate) fn slots_to_overflow(
        &self,
        counts: &[Counts; 2],
        geometry: &Geometry,
        width: u8,
    ) -> u64 {
        let left = (1u64 << width).saturating_sub(self.unwrapped(counts, geometry));
        left / self.growth_per_slot()
    }

    /// Maximum growth of the value per slot of the clock.
    pub(crate) fn growth_per_slot(&self) -> u64 {
        self.source.growth_per_slot()
    }

    /// Sets the value.
    pub(crate) fn set(&mut self, value: u64, counts: &[Counts; 2], geometry: &Geometry) {
        self.base = value;
        self.since = if self.running { self.source.total(counts, geometry) } else { 0 };
    }

    /// Starts the counter with `source` as input, or stops it if there is none.
    pub(crate) fn run(
        &mut self,
        source: Option<CounterInput>,
        counts: &[Counts; 2],
        geometry: &Geometry,
    ) {
        let value = self.unwrapped(counts, geometry);
        self.running = source.is_some();
        self.source = source.unwrap_or_default();
        self.set(value, counts, geometry);
    }
}

/// The events of Intel's fixed counters, in their order (SDM vol. 3, "Fixed-function Performance
/// Counters").
pub(crate) static FIXED: [Event; 4] = [
    Event::new(
        "INST_RETIRED.ANY",
        0,
        1,
        &[Signal::Instructions],
        "Instructions retired, on a fixed counter.",
    ),
    Event::new(
        "CPU_CLK_UNHALTED.THREAD",
        0,
        2,
        &[Signal::Slots],
        "Core cycles while not halted, on a fixed counter.",
    )
    .conversion(Conversion::SlotsAsCycles),
    Event::new(
        "CPU_CLK_UNHALTED.REF_TSC",
        0,
        3,
        &[Signal::Slots],
        "Time-stamp counter ticks while not halted, on a fixed counter.",
    )
    .conversion(Conversion::SlotsAsReference),
    Event::new(
        "TOPDOWN.SLOTS",
        0,
        4,
        &[Signal::Slots],
        "Pipeline slots that passed while not halted, on a fixed counter.",
    ),
];
