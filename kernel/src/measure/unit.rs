//! Counts of the counter unit beside a session (decision 68): its whole list, all the time, of the
//! program in ring 3.
//!
//! The context has the counts while its program is off the CPUs or the session is not started.
//! Otherwise the CPU's unit has the counts since then.

use alloc::{format, vec, vec::Vec};

use tally_abi::{Error, Mode};
use tally_pmu::{
    CounterUnit, DetectedPmu, Resolved, UNIT_COUNTERS, UnitCounter, UnitError, bus::Native,
    registers::unit::UnitConfig, virtual_pmu,
};

use super::refusal::Refusal;

/// The counter unit of a CPU.
pub type Unit = CounterUnit<Native>;

/// The unit of the executing CPU, if it has one. Once for each CPU.
pub fn of_this_cpu() -> Option<Unit> {
    if virtual_pmu::unit_counters() == 0 {
        return None;
    }
    // SAFETY: (1) this is ring 0; (2) the virtual PMU says that its unit is there, on every CPU;
    // (3) the driver stays with this CPU.
    CounterUnit::new(unsafe { Native::new() })
}

/// The counts of a list on the unit.
pub struct UnitCounts {
    configs: Vec<UnitConfig>,
    /// Counts from before the unit was loaded.
    counts: Vec<u64>,
    /// The counters of the CPU's unit, while the events are loaded.
    counters: Vec<UnitCounter>,
}

fn refused(error: Error, detail: alloc::string::String) -> Refusal {
    Refusal { error, detail }
}

impl UnitCounts {
    /// Makes the counts of these events, 0 at first.
    ///
    /// # Errors
    /// There is no unit, it cannot count an event of the list, the list is too long, or it counts
    /// ring 0.
    pub fn new(found: &DetectedPmu, events: &[Resolved]) -> Result<UnitCounts, Refusal> {
        if virtual_pmu::unit_counters() == 0 {
            let why = "this machine has no counter unit: the virtual PMU has one with --vpmu \
                       unit=yes, and no processor";
            return Err(refused(Error::NoPmu, why.into()));
        }
        if events.len() > UNIT_COUNTERS {
            let many = events.len();
            let why = format!(
                "{many} events are more than the {UNIT_COUNTERS} counters of the unit: list fewer"
            );
            return Err(refused(Error::TooManyEvents, why));
        }
        let configs = events.iter().map(|event| config_of(found, event));
        let configs: Vec<UnitConfig> = configs.collect::<Result<_, _>>()?;
        let counts = vec![0; configs.len()];
        Ok(UnitCounts { configs, counts, counters: Vec::with_capacity(events.len()) })
    }

    /// Loads the events into the unit, which counts from now on.
    pub fn load(&mut self, unit: &mut Unit) {
        for config in &self.configs {
            let counter = unit.add(*config).expect("the virtual PMU models the event");
            self.counters.push(counter);
        }
        unit.start();
    }

    /// Unloads the events, and adds the unit's counts.
    pub fn unload(&mut self, unit: &mut Unit) {
        unit.stop();
        for (count, counter) in self.counts.iter_mut().zip(self.counters.drain(..)) {
            *count = count.wrapping_add(unit.read(counter));
        }
        unit.clear();
    }

    /// Returns whether the events are on the CPU's unit.
    pub fn is_loaded(&self) -> bool {
        !self.counters.is_empty()
    }

    /// The counts up to now, in the order of the list; the events are on no unit.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }
}

/// The unit's configuration for an event.
fn config_of(found: &DetectedPmu, event: &Resolved) -> Result<UnitConfig, Refusal> {
    let name = &event.name;
    if event.mode != Mode::User {
        let why = format!("{name}: a session counts ring 3 alone on the counter unit: omit ring 0");
        return Err(refused(Error::EventNotSupported, why));
    }
    found.catalogue().on_unit(event).ok_or_else(|| {
        let why = UnitError::NotSupported;
        refused(Error::EventNotSupported, format!("{name}: {why}"))
    })
}
