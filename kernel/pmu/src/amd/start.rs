//! Take-over of the PMU.

use tally_abi::branches::BranchFilter;

use super::{Amd, CYCLES, Features, branches, ibs::Ibs, in_use};
use crate::{
    bus::{Bus, CountingBus},
    init::{ControlValue, InitError, counters},
    registers::{
        Register,
        amd::{CYCLES_NOT_IN_HALT, PerfCntrGlobalCtl, PerfCntrGlobalStatusClr, PerfCtl, PerfCtr},
    },
    selects::Selects,
};

impl<B: Bus> Amd<B> {
    /// Takes over the PMU of the CPU that `bus` accesses, and leaves all counters disabled.
    pub(crate) fn new(bus: B, features: Features) -> Result<Self, InitError> {
        let mut bus = CountingBus::new(bus);
        in_use::turn_off(&mut bus, &features)?;
        let mut driver = Amd {
            bus,
            features,
            counters: features.counters | features.reserved,
            selects: Selects::new(),
            enabled: false,
            timer: CYCLES,
            armed: 0,
            acknowledged: 0,
            disables_all: false,
            branches: None,
            ibs: None,
        };
        if features.global {
            driver.bus.first_put(0, PerfCntrGlobalCtl::empty())?;
            driver.bus.first_put(0, PerfCntrGlobalStatusClr::empty())?;
        }
        driver.refuse_if_not_writable()?;
        driver.acknowledge(driver.counters.into());
        if features.reserved != 0 && features.global {
            driver.control(driver.reserved());
        }
        Ok(driver)
    }

    fn refuse_if_not_writable(&mut self) -> Result<(), InitError> {
        // A Merge that is left on an odd counter makes it part of the value below it.
        for index in counters(self.counters) {
            self.bus.first_put(index, PerfCtl::empty())?;
        }
        for index in counters(self.counters) {
            let (select, count) = (PerfCtl::event(CYCLES_NOT_IN_HALT, 0), PerfCtr(0x1234));
            self.bus.first_put(index, select)?;
            if self.bus.get::<PerfCtl>(index) != select {
                return Err(InitError::NotWritable { register: PerfCtl::NAME, index });
            }
            self.bus.put(index, PerfCtl::empty());
            self.bus.first_put(index, count)?;
            if self.bus.get::<PerfCtr>(index) != count {
                return Err(InitError::NotWritable { register: PerfCtr::NAME, index });
            }
        }
        Ok(())
    }

    /// Lets samples of precise events be precise, if `route` can let the interrupt of an entry of
    /// the extended local vector table come as an overflow interrupt.
    pub(crate) fn sample_precisely(&mut self, route: impl FnOnce(u8) -> bool) {
        let found = self.features.samples_ops.then(|| Ibs::find(&mut self.bus)).flatten();
        self.ibs = found.and_then(|(ibs, entry)| route(entry).then_some(ibs));
    }

    /// See [`crate::Driver::can_sample_precisely`].
    pub(crate) fn can_sample_precisely(&self) -> bool {
        self.ibs.is_some()
    }

    /// See [`crate::Driver::record_branches`].
    pub(crate) fn record_branches(&mut self) {
        self.branches = branches::find(&mut self.bus, self.features.branches);
    }

    /// See [`crate::Driver::branch_filters`].
    pub(crate) fn branch_filters(&self) -> BranchFilter {
        self.branches.as_ref().map_or(BranchFilter::default(), |records| records.filters())
    }

    /// See [`crate::Driver::changed_by_others`].
    pub(crate) fn changed_by_others(&mut self) -> Option<ControlValue> {
        let is_on = self.features.global || self.enabled;
        let off = if is_on { PerfCtl::empty() } else { PerfCtl::EN };
        counters(self.features.counters).find_map(|index| {
            let now: PerfCtl = self.bus.get(index);
            let written = self.held(index.into()).difference(off);
            (now != written).then(|| in_use::of_select(index, now))
        })
    }
}
