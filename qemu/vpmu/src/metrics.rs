//! PERF_METRICS: the uses of a core's slots, as fractions (SDM vol. 3, "Performance Metrics").
//!
//! The model knows for every slot its user, or the cause why it has none. The register divides the
//! slots of each kind by the slots that passed. Slots that are neither retiring, nor bad
//! speculation, nor front-end bound are back-end bound, so that the four parts of the first level
//! add up to the whole.

use tally_model::{Counts, Geometry, Signal::*};

use crate::{
    counter::{Counter, CounterInput, FIXED},
    event::Event,
    profiles::{BAD_SPECULATION_SLOTS, FETCH_SLOTS},
};

/// A use of slots, as an event. It has no name and no sentence, as the register has no events.
const fn slots_of(signals: &'static [tally_model::Signal]) -> Event {
    Event::new("", 0, 0, signals, "")
}

static RETIRING: Event = slots_of(&[Uops]);
static BAD_SPECULATION: Event = slots_of(BAD_SPECULATION_SLOTS);
static FRONT_END: Event = slots_of(FETCH_SLOTS);
/// Part of retiring: micro-operations from the microcode sequencer.
static HEAVY: Event = slots_of(&[UopsMicrocode]);
/// Part of front-end bound: cycles in which fetch delivered nothing.
static FETCH_LATENCY: Event = slots_of(&[SlotsFetchLatency]);
/// Part of back-end bound: waiting for data.
static MEMORY_BOUND: Event = slots_of(&[SlotsMemory]);

/// First level in the register's order, without back-end bound, which is the rest.
static FIRST_LEVEL: [&Event; 3] = [&RETIRING, &BAD_SPECULATION, &FRONT_END];
/// Second level in the register's order. Slots of all pipeline clears count as mispredictions.
static SECOND_LEVEL: [&Event; 4] = [&HEAVY, &BAD_SPECULATION, &FETCH_LATENCY, &MEMORY_BOUND];

/// The register value of a fraction of 1.
const WHOLE: u64 = 0xff;

/// The register's parts.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    slots: Counter,
    parts: Vec<(&'static Event, Counter)>,
}

impl Metrics {
    /// The register after reset, with the second level or without.
    pub(crate) fn new(second_level: bool) -> Metrics {
        let second: &[&Event] = if second_level { &SECOND_LEVEL } else { &[] };
        let parts = FIRST_LEVEL.iter().chain(second);
        let parts = parts.map(|event| (*event, Counter::default())).collect();
        Metrics { slots: Counter::default(), parts }
    }

    /// The bits that can be written.
    pub(crate) fn valid(&self) -> u64 {
        u64::MAX >> (64 - 8 * (self.parts.len() + 1))
    }

    /// Starts counting in the rings of fixed counter 3, or stops.
    pub(crate) fn run(
        &mut self,
        rings: Option<(bool, bool)>,
        counts: &[Counts; 2],
        geometry: &Geometry,
    ) {
        let source = |event: &'static Event| {
            rings.map(|(user, kernel)| CounterInput::of(vec![event], [user, kernel]))
        };
        self.slots.run(source(&FIXED[3]), counts, geometry);
        for (event, counter) in &mut self.parts {
            counter.run(source(event), counts, geometry);
        }
    }

    /// The register's value.
    pub(crate) fn read(&self, counts: &[Counts; 2], geometry: &Geometry) -> u64 {
        let slots = self.slots.unwrapped(counts, geometry);
        let parts = self.parts.iter().map(|(_, part)| part.unwrapped(counts, geometry));
        let mut parts: Vec<u64> = parts.map(|part| part.min(slots)).collect();
        let rest = slots.saturating_sub(parts.iter().take(3).sum());
        parts.insert(3, rest);
        let fraction = |part: u64| {
            let (part, slots) = (u128::from(part), u128::from(slots));
            ((part * u128::from(WHOLE) + slots / 2) / slots.max(1)) as u64
        };
        parts.iter().rev().fold(0, |value, part| value << 8 | fraction(*part))
    }

    /// Writes the register: sets the fractions of `slots`, the value of fixed counter 3.
    pub(crate) fn write(
        &mut self,
        value: u64,
        slots: u64,
        counts: &[Counts; 2],
        geometry: &Geometry,
    ) {
        self.slots.set(if value == 0 { 0 } else { slots }, counts, geometry);
        let places = (0..3).chain(4..);
        for ((_, part), place) in self.parts.iter_mut().zip(places) {
            let part_of = u128::from(slots) * u128::from(value >> (8 * place) & WHOLE);
            part.set((part_of / u128::from(WHOLE)) as u64, counts, geometry);
        }
    }

    /// Wraps the slots if they are beyond their width; returns whether they were.
    pub(crate) fn wrap(&mut self, counts: &[Counts; 2], geometry: &Geometry, width: u8) -> bool {
        self.slots.is_running() && self.slots.wrap(counts, geometry, width)
    }
}
