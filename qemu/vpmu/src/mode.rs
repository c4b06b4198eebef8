//! Signal modes: a counter counts a signal's events, its level or its edges (paper 002, section 6;
//! the counter mask, invert and edge of event selects).
//!
//! The model counts sums. It knows the levels of few signals only: a cycle has either retirement or
//! one cause without it, so the sum of some of these signals is the number of cycles in which one
//! is high; in the other cycles all are low. It also knows the episodes of few signals: each page
//! walk and each division is one, and the out-of-order pipeline counts the episodes of cycles
//! without retirement. All other levels and edges are not supported.

use std::slice;

use tally_model::{Geometry, Signal};

use crate::{
    counter::{CounterInput, FIXED},
    event::{Conversion, Event},
};

/// Mode in which a counter counts its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalMode {
    /// Events, as in a general counter: any number in a cycle.
    Events,
    /// Cycles in which the signal is high.
    LevelHigh,
    /// Cycles in which the signal is low.
    LevelLow,
    /// Changes of the signal from low to high.
    EdgeRising,
    /// Changes of the signal from high to low.
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

/// Signals that are sums over the cycles of episodes, each with the number of its episodes. An
/// episode never spans two readings: the model counts each as a whole.
static EPISODES: [(Signal, Event); 4] = [
    (Signal::ItlbWalkCycles, episodes(Signal::FETCH_WALKS)),
    (Signal::DtlbLoadWalkCycles, episodes(Signal::LOAD_WALKS)),
    (Signal::DtlbStoreWalkCycles, episodes(Signal::STORE_WALKS)),
    (Signal::DividerActive, episodes(&[Signal::Divisions])),
];

/// Episodes of cycles without retirement, in the model's order.
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
    /// The input of the same events in this mode; `None` if the model does not have it.
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

/// Returns whether at most one of the events' signals is high in a cycle, and each signal is in one
/// event only.
fn is_level(events: &[&Event]) -> bool {
    let signals: Vec<Signal> = events.iter().flat_map(|event| event.signals).copied().collect();
    let is_once = |signal| signals.iter().filter(|other| *other == signal).count() == 1;
    events.iter().all(|event| event.conversion == Conversion::Plain)
        && !signals.is_empty()
        && signals.iter().all(|signal| {
            (Signal::STALLS.contains(signal) || *signal == Signal::RetireCycles) && is_once(signal)
        })
}

/// The event that counts the episodes of the events' cycles.
fn episodes_of(events: &[&Event]) -> Option<&'static Event> {
    if is_level(events) {
        return stall_episodes_of(events);
    }
    let [Event { signals: [cycles], conversion: Conversion::Plain, .. }] = events else {
        return None;
    };
    EPISODES.iter().find(|(signal, _)| signal == cycles).map(|(_, event)| event)
}

/// The event that counts the episodes of cycles without retirement, if the events' signals are
/// their causes. Episodes of cycles with retirement are as many: each follows one of the former.
fn stall_episodes_of(events: &[&Event]) -> Option<&'static Event> {
    let signals: Vec<Signal> = events.iter().flat_map(|event| event.signals).copied().collect();
    let causes = if signals == [Signal::RetireCycles] { Signal::STALLS } else { &signals };
    let is_it = |(_, set): &(Signal, &[Signal])| {
        set.len() == causes.len() && set.iter().all(|cause| causes.contains(cause))
    };
    Signal::EPISODES.iter().position(is_it).map(|at| &STALL_EPISODES[at])
}
