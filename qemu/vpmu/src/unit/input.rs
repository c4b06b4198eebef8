//! What a counter of the unit counts: an event, or its level or its edges (section 6 of the paper).
//!
//! The model counts sums. Of few signals it also has the level: at most one cause of a cycle
//! without retirement is charged in a cycle, so the sum of one is the number of cycles in which it
//! is high, and the other cycles are those in which it is low. And of few it counts the episodes:
//! each page walk and each division is one. All other levels and edges are not supported.

use tally_model::{Counts, Geometry, Signal};

use crate::{
    counter::{CounterInput, FIXED},
    event::{Conversion, Event},
};

/// How a counter counts its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalMode {
    /// The event, as a general counter does: any number of it in a cycle.
    Events,
    /// Cycles in which the signal is high.
    LevelHigh,
    /// Cycles in which it is low.
    LevelLow,
    /// Its changes from low to high.
    EdgeRising,
    /// Its changes from high to low.
    EdgeFalling,
}

impl SignalMode {
    const ALL: [SignalMode; 5] = [
        SignalMode::Events,
        SignalMode::LevelHigh,
        SignalMode::LevelLow,
        SignalMode::EdgeRising,
        SignalMode::EdgeFalling,
    ];

    /// The mode of this number in `CONFIG`.
    pub(crate) fn decode(number: u64) -> Option<SignalMode> {
        SignalMode::ALL.get(number as usize).copied()
    }
}

/// The signals that are summed over the cycles of their episodes, and the number of these. An
/// episode begins and ends between two readings: the model counts each as a whole.
static EPISODES: [(Signal, Event); 4] = [
    (Signal::ItlbWalkCycles, episodes(&[Signal::ItlbWalks])),
    (Signal::DtlbLoadWalkCycles, episodes(&[Signal::DtlbLoadWalks])),
    (Signal::DtlbStoreWalkCycles, episodes(&[Signal::DtlbStoreWalks])),
    (Signal::DividerActive, episodes(&[Signal::Divisions])),
];

const fn episodes(signals: &'static [Signal]) -> Event {
    Event::new("", 0, 0, signals, "Episodes of another signal.")
}

/// What a counter counts: one sum less another one.
#[derive(Clone, Debug)]
pub(crate) struct UnitInput {
    sum: CounterInput,
    less: CounterInput,
}

impl UnitInput {
    /// The input of these events in this mode; none if the model does not have it.
    pub(crate) fn new(source: CounterInput, mode: SignalMode) -> Option<UnitInput> {
        let CounterInput { ref events, user, kernel } = source;
        let of = |event| CounterInput { events: vec![event], user, kernel };
        let (sum, less) = match mode {
            _ if events.is_empty() => return None,
            SignalMode::Events => (source, CounterInput::default()),
            SignalMode::LevelHigh if is_level(events) => (source, CounterInput::default()),
            SignalMode::LevelLow if is_level(events) => (of(&FIXED[1]), source),
            SignalMode::EdgeRising | SignalMode::EdgeFalling => {
                (of(episodes_of(events)?), CounterInput::default())
            }
            SignalMode::LevelHigh | SignalMode::LevelLow => return None,
        };
        Some(UnitInput { sum, less })
    }

    /// Its count so far.
    pub(super) fn total(&self, counts: &[Counts; 2], geometry: &Geometry) -> u64 {
        self.sum.total(counts, geometry) - self.less.total(counts, geometry)
    }

    /// The most by which it can grow for each slot of the clock.
    pub(super) fn growth_per_slot(&self) -> u64 {
        self.sum.growth_per_slot()
    }
}

/// Returns whether at most one of the events' signals is high in a cycle, and each in one event.
fn is_level(events: &[&Event]) -> bool {
    let signals: Vec<Signal> = events.iter().flat_map(|event| event.signals).copied().collect();
    let is_once = |signal| signals.iter().filter(|other| *other == signal).count() == 1;
    events.iter().all(|event| event.conversion == Conversion::Plain)
        && !signals.is_empty()
        && signals.iter().all(|signal| Signal::STALLS.contains(signal) && is_once(signal))
}

/// The number of the episodes whose cycles the events count.
fn episodes_of(events: &[&Event]) -> Option<&'static Event> {
    let [Event { signals: [cycles], conversion: Conversion::Plain, .. }] = events else {
        return None;
    };
    EPISODES.iter().find(|(signal, _)| signal == cycles).map(|(_, event)| event)
}
