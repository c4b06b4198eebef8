//! What a counter makes of an event's signals: their events, their level or their edges (paper 002,
//! section 6; the counter mask, invert and edge of event selects).
//!
//! The model counts sums. Of few signals it also has the level: a cycle has retirement or one cause
//! of its absence, so the sum of some of these is the number of cycles in which one is high, and
//! the other cycles are those in which all are low. And of few it counts the episodes:
//! each page walk and each division is one, and the out-of-order pipeline has those of cycles
//! without retirement. All other levels and edges are not supported.

use std::slice;

use tally_model::{Geometry, Signal};

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
    (Signal::ItlbWalkCycles, episodes(Signal::FETCH_WALKS)),
    (Signal::DtlbLoadWalkCycles, episodes(Signal::LOAD_WALKS)),
    (Signal::DtlbStoreWalkCycles, episodes(Signal::STORE_WALKS)),
    (Signal::DividerActive, episodes(&[Signal::Divisions])),
];

/// Those of cycles without retirement, in the order of the model's.
static STALL_EPISODES: [Event; Signal::EPISODES.len()] = {
    let mut all = [episodes(&[]); Signal::EPISODES.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = episodes(slice::from_ref(&Signal::EPISODES[at].0)).out_of_order();
        at += 1;
    }
    all
};

const fn episodes(signals: &'static [Signal]) -> Event {
    Event::new("", 0, 0, signals, "Episodes of another signal.")
}

impl CounterInput {
    /// The input of the same events in this mode; none if the model does not have it.
    pub(crate) fn in_mode(self, mode: SignalMode, geometry: &Geometry) -> Option<CounterInput> {
        let is_met = |event: &&Event| event.needs.is_none_or(|need| need.is_met(geometry));
        let events = match mode {
            _ if self.events.is_empty() => return None,
            SignalMode::Events => return Some(self),
            SignalMode::LevelHigh => return is_level(&self.events).then_some(self),
            SignalMode::LevelLow if is_level(&self.events) => {
                return Some(CounterInput { events: vec![&FIXED[1]], less: self.events, ..self });
            }
            SignalMode::LevelLow => return None,
            SignalMode::EdgeRising | SignalMode::EdgeFalling => {
                episodes_of(&self.events).filter(is_met)?
            }
        };
        Some(CounterInput { events: vec![events], ..self })
    }
}

/// Returns whether at most one of the events' signals is high in a cycle, and each in one event.
fn is_level(events: &[&Event]) -> bool {
    let signals: Vec<Signal> = events.iter().flat_map(|event| event.signals).copied().collect();
    let is_once = |signal| signals.iter().filter(|other| *other == signal).count() == 1;
    events.iter().all(|event| event.conversion == Conversion::Plain)
        && !signals.is_empty()
        && signals.iter().all(|signal| {
            (Signal::STALLS.contains(signal) || *signal == Signal::RetireCycles) && is_once(signal)
        })
}

/// The number of the episodes whose cycles the events count.
fn episodes_of(events: &[&Event]) -> Option<&'static Event> {
    if is_level(events) {
        return stall_episodes_of(events);
    }
    let [Event { signals: [cycles], conversion: Conversion::Plain, .. }] = events else {
        return None;
    };
    EPISODES.iter().find(|(signal, _)| signal == cycles).map(|(_, event)| event)
}

/// Those of cycles without retirement: their causes are the events' signals. Cycles with retirement
/// begin as often, each behind one of these.
fn stall_episodes_of(events: &[&Event]) -> Option<&'static Event> {
    let signals: Vec<Signal> = events.iter().flat_map(|event| event.signals).copied().collect();
    let causes = if signals == [Signal::RetireCycles] { Signal::STALLS } else { &signals };
    let is_it = |(_, set): &(Signal, &[Signal])| {
        set.len() == causes.len() && set.iter().all(|cause| causes.contains(cause))
    };
    Signal::EPISODES.iter().position(is_it).map(|at| &STALL_EPISODES[at])
}
