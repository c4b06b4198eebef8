//! The input of a general counter by its event select.
//!
//! Code, unit mask, counter mask, invert and edge are matched as one pattern with the events of the
//! profile. If no event has all of them, the missing modifiers are applied to the event that has
//! the others, provided that the model has that event's level or its episodes ([`crate::mode`]).
//! Any other select counts nothing and is reported ([`Unmodelled::Select`]).

use crate::{
    counter::CounterInput,
    event::{Event, TALLY_CODE},
    mode::SignalMode,
    offcore,
    pmu::{
        access::{Unmodelled, select},
        load_latency,
        state::VirtualPmu,
    },
    profile::Vendor,
};

/// The bits of an event select that choose the rings.
const IN_RINGS: u64 = select::USR | select::OS;

/// Fields of an event select other than the rings.
struct Encoding {
    code: u16,
    umask: u16,
    cmask: u8,
    inv: bool,
    edge: bool,
}

/// Makes an input of events in the rings of an event select.
fn in_rings(value: u64, events: Vec<&'static Event>) -> CounterInput {
    CounterInput::of(events, [select::USR, select::OS].map(|ring| value & ring != 0))
}

/// Returns whether the events cover the whole unit mask of an AMD select value.
fn is_whole(value: u64, events: &[&Event]) -> bool {
    let umask = value >> 8 & 0xff;
    events.first().is_some_and(|event| u64::from(event.umask) == umask)
        || events.len() == umask.count_ones() as usize
}

impl VirtualPmu {
    /// The input that the event select of general counter `index` selects.
    pub(super) fn source(&mut self, index: usize) -> CounterInput {
        if self.is_holding && self.held.is_some_and(|held| usize::from(held.index) == index) {
            return CounterInput::default();
        }
        if self.is_part_of_none(index) {
            return CounterInput::default();
        }
        let value = self.selects[index];
        let reported = self.unmodelled.len();
        let mut events = match self.profile.vendor {
            Vendor::Intel => self.intel_events(index, value),
            Vendor::Amd => self.amd_events(value),
        };
        if events.is_empty() && self.unmodelled.len() == reported {
            match self.modified(value) {
                Some((input, counters)) if counters >> index & 1 != 0 => return input,
                _ => self.unmodelled.push(Unmodelled::Select(value)),
            }
        }
        events.retain(|event| self.missing.is_none_or(|missing| missing.name != event.name));
        in_rings(value, events)
    }

    /// The input if a select value's invert and edge, and a counter mask of 1, are applied to the
    /// event without them; and the counters that have the event.
    fn modified(&self, value: u64) -> Option<(CounterInput, u16)> {
        let Encoding { code, umask, cmask, inv, edge } = self.encoding(value);
        if self.profile.vendor == Vendor::Intel && value & select::EQUAL != 0 {
            return None;
        }
        let mode = match (edge, inv) {
            (true, _) => SignalMode::EdgeRising,
            // The comparison is inverted, if there is one.
            (false, true) if cmask > 0 => SignalMode::LevelLow,
            (false, true) => return None,
            (false, false) => SignalMode::LevelHigh,
        };
        let without = [cmask, 0].into_iter().filter(|without| *without == cmask || cmask == 1);
        let mut plain =
            without.filter_map(|cmask| self.profile.event(code, umask, cmask, false, false));
        // The invert can be a part of a vendor's event.
        let inverted = (inv && edge).then(|| self.profile.event(code, umask, cmask, true, false));
        let event = inverted.flatten().or_else(|| plain.next())?;
        let is_missing = self.missing.is_some_and(|missing| missing.name == event.name);
        let input = in_rings(value, vec![event]).in_mode(mode, &self.profile.geometry);
        let input = input.filter(|_| !is_missing)?;
        Some((input, event.counters))
    }

    fn encoding(&self, value: u64) -> Encoding {
        // Bits 40 and 41 of AMD's selects count in guests or hosts only.
        let second = if self.profile.vendor == Vendor::Intel { value >> 32 & 0xff00 } else { 0 };
        let high = if self.profile.vendor == Vendor::Amd { value >> 24 & 0xf00 } else { 0 };
        Encoding {
            code: (value & 0xff | high) as u16,
            umask: (value >> 8 & 0xff | second) as u16,
            cmask: (value >> select::CMASK_SHIFT) as u8,
            inv: value & select::INV != 0,
            edge: value & select::EDGE != 0,
        }
    }

    /// The event that matches all of a select value's encoding.
    fn event(&self, value: u64) -> Option<&'static Event> {
        let Encoding { code, umask, cmask, inv, edge } = self.encoding(value);
        self.profile.event(code, umask, cmask, inv, edge)
    }

    fn intel_events(&mut self, index: usize, value: u64) -> Vec<&'static Event> {
        if let Some(slot) = self.offcore_slot(value)
            && index < 4
        {
            let filter = self.extra[slot];
            if offcore::is_beyond_model(filter) {
                self.unmodelled.push(Unmodelled::Offcore(filter));
            }
            return offcore::selected(filter);
        }
        if let Some(kind) = self.profile.pebs.filter(|_| load_latency::is_selected(value)) {
            let event = load_latency::is_on(kind, index).then_some(&load_latency::EVENT);
            return event.into_iter().collect();
        }
        // The model has no numbers of events in a cycle.
        if value & select::EQUAL != 0 && value >> select::CMASK_SHIFT & 0xff != 0 {
            return Vec::new();
        }
        let event = self.event(value);
        event.filter(|event| event.counters >> index & 1 != 0).into_iter().collect()
    }

    /// The latency in cycles above which loads are to be counted; `None` if no counter does.
    pub fn slow_load_cycles(&self) -> Option<u32> {
        self.profile.pebs?;
        let mut selects = self.selects.iter();
        let is_counted = selects.any(|value| load_latency::is_selected(*value));
        is_counted.then(|| load_latency::threshold(self.extra[load_latency::SLOT]))
    }

    /// The off-core response register that a select value uses.
    fn offcore_slot(&self, value: u64) -> Option<usize> {
        let code = (value & 0xff) as u16;
        let high = (value & !select::ADAPTIVE) >> select::CMASK_SHIFT;
        let plain = value >> 8 & 0xff == 1 && high == 0;
        self.profile.offcore.iter().position(|offcore| plain && *offcore == code)
    }

    /// Returns whether the profile models the event of a select value, on any of its counters;
    /// `filter` is the value of the off-core response register.
    pub fn models(&self, value: u64, filter: u64) -> bool {
        match self.profile.vendor {
            Vendor::Intel if self.offcore_slot(value).is_some() => {
                !offcore::is_beyond_model(filter)
            }
            Vendor::Intel if load_latency::is_selected(value) => self.profile.pebs.is_some(),
            Vendor::Intel => self.event(value).is_some() || self.modified(value).is_some(),
            Vendor::Amd => !self.amd_known(value).is_empty() || self.modified(value).is_some(),
        }
    }

    fn amd_events(&mut self, value: u64) -> Vec<&'static Event> {
        let events = self.amd_known(value);
        if !events.is_empty() && !is_whole(value, &events) {
            self.unmodelled.push(Unmodelled::UnitMask(value));
        }
        events
    }

    /// The events of a select value for a counter of the unit, which has no off-core filter: all
    /// that the value selects, or none. On Intel, event code 0 selects the fixed counters' events
    /// by their unit masks.
    pub(super) fn unit_events(&self, value: u64) -> Vec<&'static Event> {
        let mut events: Vec<&Event> = match self.profile.vendor {
            Vendor::Intel => {
                let fixed = self.profile.fixed_events().iter();
                let is_it = |event: &&Event| value & !IN_RINGS == u64::from(event.umask) << 8;
                fixed.filter(is_it).chain(self.event(value)).collect()
            }
            Vendor::Amd => self.amd_known(value),
        };
        if self.profile.vendor == Vendor::Amd && !is_whole(value, &events) {
            events.clear();
        }
        events.retain(|event| self.missing.is_none_or(|missing| missing.name != event.name));
        events
    }

    /// The events of a select value: one with its whole unit mask, or one for each bit that the
    /// profile knows. Events of the other bits do not occur in the model.
    fn amd_known(&self, value: u64) -> Vec<&'static Event> {
        if let Some(event) = self.event(value) {
            return vec![event];
        }
        let Encoding { code, umask, cmask, inv, edge } = self.encoding(value);
        if code == TALLY_CODE {
            // Unit masks of Tally's own events are numbers.
            return Vec::new();
        }
        let bits = (0..8).map(|bit| 1u16 << bit).filter(|bit| umask & bit != 0);
        bits.filter_map(|bit| self.profile.event(code, bit, cmask, inv, edge)).collect()
    }
}
