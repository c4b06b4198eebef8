//! Accesses to the counter unit's registers.

use tally_model::Counts;

use crate::{
    counter::CounterInput,
    mode::SignalMode,
    pmu::{
        access::{AccessResult, Unmodelled, select},
        state::VirtualPmu,
    },
    profile::Vendor,
    unit::{
        CAPABILITIES_VALUE, CONTROL_RUN, COUNT, COUNTERS, Moment, Unit, UnitRegister, WORD, config,
    },
};

/// The bits of `CONFIG` that select event and rings, as in an event select.
const SELECT: u64 =
    0xffff | select::USR | select::OS | select::EDGE | select::INV | 0xff << select::CMASK_SHIFT;
/// AMD's upper four bits of the event's code.
const CODE_HIGH: u64 = 0xf << 32;
/// The other bits of `CONFIG` that may be written; writes to the read-only bit are ignored.
const OTHERS: u64 = config::INT | config::EN | config::MODE | config::SUPPORTED;

impl VirtualPmu {
    /// Adds a counter unit, if `has_unit`.
    #[must_use]
    pub fn with_unit(mut self, has_unit: bool) -> VirtualPmu {
        self.unit = has_unit.then(Unit::new);
        self
    }

    /// The number of the unit's counters; 0 without a unit.
    pub fn unit_counters(&self) -> u32 {
        if self.unit.is_some() { COUNTERS as u32 } else { 0 }
    }

    /// RDMSR, if there is a unit and the address is in its block.
    pub(super) fn unit_rdmsr(&mut self, msr: u32, counts: &[Counts; 2]) -> Option<AccessResult> {
        let now = Moment { counts, geometry: &self.profile.geometry };
        let unit = self.unit.as_mut()?;
        Some(AccessResult::Done(match UnitRegister::at(msr)? {
            UnitRegister::Config(index) => unit.config(index, now),
            UnitRegister::Count(index) => unit.count(index, now),
            UnitRegister::Threshold(index) => unit.threshold(index),
            UnitRegister::Control => u64::from(unit.runs()),
            UnitRegister::Capabilities => CAPABILITIES_VALUE,
            UnitRegister::Status(word) => unit.status(word),
            UnitRegister::Reserved => return Some(AccessResult::Fault),
        }))
    }

    /// WRMSR, if there is a unit and the address is in its block.
    pub(super) fn unit_wrmsr(
        &mut self,
        msr: u32,
        value: u64,
        counts: &[Counts; 2],
    ) -> Option<AccessResult> {
        let unit = self.unit.as_mut()?;
        let now = Moment { counts, geometry: &self.profile.geometry };
        match UnitRegister::at(msr)? {
            UnitRegister::Config(index) => return Some(self.configure(index, value, counts)),
            UnitRegister::Count(index) => unit.set_count(index, value, now),
            UnitRegister::Threshold(index) if value & !WORD == 0 => {
                unit.set_threshold(index, value, now);
            }
            UnitRegister::Control if value & !CONTROL_RUN == 0 => unit.run(value != 0, now),
            UnitRegister::Status(word) => unit.clear_status(word, value),
            _ => return Some(AccessResult::Fault),
        }
        Some(AccessResult::Done(0))
    }

    /// RDPMC, if there is a unit and it has this index.
    pub(super) fn unit_rdpmc(&mut self, index: u32, counts: &[Counts; 2]) -> Option<AccessResult> {
        let counter = index.checked_sub(COUNT).map(|counter| counter as usize);
        let counter = counter.filter(|counter| *counter < COUNTERS)?;
        let now = Moment { counts, geometry: &self.profile.geometry };
        Some(AccessResult::Done(self.unit.as_mut()?.count(counter, now)))
    }

    /// Writes a counter's `CONFIG`. An event or mode that the model does not have counts nothing,
    /// and reads as not supported.
    fn configure(&mut self, index: usize, value: u64, counts: &[Counts; 2]) -> AccessResult {
        let code_high = if self.profile.vendor == Vendor::Amd { CODE_HIGH } else { 0 };
        let mode = SignalMode::decode((value & config::MODE) >> config::MODE_SHIFT);
        let (0, Some(mode)) = (value & !(SELECT | code_high | OTHERS), mode) else {
            return AccessResult::Fault;
        };
        let select = value & (SELECT | code_high);
        let rings = [select::USR, select::OS].map(|ring| value & ring != 0);
        let input = CounterInput::of(self.unit_events(select), rings);
        let input = input.in_mode(mode, &self.profile.geometry);
        if input.is_none() && value & config::EN != 0 {
            self.unmodelled.push(Unmodelled::Unit(value));
        }
        let now = Moment { counts, geometry: &self.profile.geometry };
        if let Some(unit) = &mut self.unit {
            unit.set_config(index, value, input, now);
        }
        AccessResult::Done(0)
    }
}
