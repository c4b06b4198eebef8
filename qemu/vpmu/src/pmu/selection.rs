//! What an event select makes a general counter count.
//!
//! Code, unit mask, counter mask, invert and edge are matched as one pattern with the events of the
//! profile. A counter mask, invert or edge that the vendor's event does not have is not applied to
//! the event's count: such a select counts nothing and is reported ([`Unmodelled::Select`]).

use crate::{
    counter::CounterInput,
    event::{Event, TALLY_CODE},
    offcore,
    pmu::{
        access::{Unmodelled, select},
        state::VirtualPmu,
    },
    profile::Vendor,
};

/// The bits of an event select that choose the rings.
const IN_RINGS: u64 = select::USR | select::OS;

/// Returns whether the events are all that an AMD select value selects.
fn is_whole(value: u64, events: &[&Event]) -> bool {
    let umask = (value >> 8) as u8;
    events.first().is_some_and(|event| event.umask == umask)
        || events.len() == umask.count_ones() as usize
}

impl VirtualPmu {
    /// What the event select of general counter `index` makes it count.
    pub(super) fn source(&mut self, index: usize) -> CounterInput {
        if self.is_holding && self.held.is_some_and(|held| usize::from(held.index) == index) {
            return CounterInput::default();
        }
        let value = self.selects[index];
        let reported = self.unmodelled.len();
        let mut events = match self.profile.vendor {
            Vendor::Intel => self.intel_events(index, value),
            Vendor::Amd => self.amd_events(value),
        };
        if events.is_empty() && self.unmodelled.len() == reported {
            self.unmodelled.push(Unmodelled::Select(value));
        }
        events.retain(|event| self.missing.is_none_or(|missing| missing.name != event.name));
        CounterInput { events, user: value & select::USR != 0, kernel: value & select::OS != 0 }
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
        let event = self.intel_event(value);
        event.filter(|event| event.counters >> index & 1 != 0).into_iter().collect()
    }

    /// The off-core response register that a select value counts by.
    fn offcore_slot(&self, value: u64) -> Option<usize> {
        let code = (value & 0xff) as u16;
        let plain = value >> 8 & 0xff == 1 && value >> select::CMASK_SHIFT == 0;
        self.profile.offcore.iter().position(|offcore| plain && *offcore == code)
    }

    fn intel_event(&self, value: u64) -> Option<&'static Event> {
        self.profile.event(
            (value & 0xff) as u16,
            (value >> 8) as u8,
            (value >> select::CMASK_SHIFT) as u8,
            value & select::INV != 0,
            value & select::EDGE != 0,
        )
    }

    /// Returns whether the profile models the event of a select value, on any of its counters;
    /// `filter` is the value of the off-core response register.
    pub fn models(&self, value: u64, filter: u64) -> bool {
        match self.profile.vendor {
            Vendor::Intel if self.offcore_slot(value).is_some() => {
                !offcore::is_beyond_model(filter)
            }
            Vendor::Intel => self.intel_event(value).is_some(),
            Vendor::Amd => !self.amd_known(value).is_empty(),
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
    /// that it selects, or none. Event 0 of Intel's has the fixed counters' events, by their unit
    /// masks.
    pub(super) fn unit_events(&self, value: u64) -> Vec<&'static Event> {
        let mut events: Vec<&Event> = match self.profile.vendor {
            Vendor::Intel => {
                let fixed = self.profile.fixed_events().iter();
                let is_it = |event: &&Event| value & !IN_RINGS == u64::from(event.umask) << 8;
                fixed.filter(is_it).chain(self.intel_event(value)).collect()
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
    /// profile knows. What the other bits select does not occur in the model.
    fn amd_known(&self, value: u64) -> Vec<&'static Event> {
        let code = (value & 0xff | value >> 24 & 0xf00) as u16;
        let umask = (value >> 8) as u8;
        let cmask = (value >> select::CMASK_SHIFT) as u8;
        let (inv, edge) = (value & select::INV != 0, value & select::EDGE != 0);
        if let Some(event) = self.profile.event(code, umask, cmask, inv, edge) {
            return vec![event];
        }
        if code == TALLY_CODE {
            // Its unit masks are numbers.
            return Vec::new();
        }
        let bits = (0..8).map(|bit| 1u8 << bit).filter(|bit| umask & bit != 0);
        bits.filter_map(|bit| self.profile.event(code, bit, cmask, inv, edge)).collect()
    }
}
