//! Take-over of the PMU.

use tally_engine::{MAX_EXTRA, Pinned};

use super::{CYCLES, Features, Intel, extra::present_extra, in_use, register_of, timer::Timer};
use crate::{
    bus::{Bus, CountingBus},
    init::{ControlValue, InitError, counters},
    registers::{
        Register,
        intel::{FixedCtr, FixedCtrCtrl, PerfCapabilities, PerfEvtSel, PerfGlobalCtrl, Pmc},
    },
    selects::Selects,
};

impl<B: Bus> Intel<B> {
    /// Takes over the PMU of the CPU that `bus` accesses, and leaves all counters disabled.
    pub(crate) fn new(bus: B, mut features: Features) -> Result<Self, InitError> {
        let mut bus = CountingBus::new(bus);
        features.extra = present_extra(&mut bus, features.extra);
        let capabilities = if features.capabilities { bus.try_get(0) } else { None };
        let capabilities = capabilities.unwrap_or(PerfCapabilities::empty());
        in_use::turn_off(&mut bus, &features, capabilities)?;
        bus.first_put(0, PerfGlobalCtrl::empty())?;
        bus.first_put(0, FixedCtrCtrl::empty())?;
        let mut driver = Intel {
            bus,
            features,
            general: features.general | features.reserved,
            selects: Selects::new(),
            extra: [0; MAX_EXTRA],
            fixed: FixedCtrCtrl::empty(),
            timer: Timer::new(Pinned::Cycles, &features),
            armed: 0,
            must_stop: false,
            full_width: capabilities.contains(PerfCapabilities::FW_WRITE),
        };
        for index in counters(driver.general) {
            driver.bus.first_put(index, PerfEvtSel::empty())?;
        }
        let overflows = driver.all_overflows();
        driver.bus.first_put(0, overflows)?;
        driver.refuse_if_not_writable()?;
        if features.reserved != 0 {
            driver.enable_reserved();
        }
        Ok(driver)
    }

    fn refuse_if_not_writable(&mut self) -> Result<(), InitError> {
        let probe = FixedCtr(0x1234);
        for event in self.always() {
            self.bus.first_put(event as u8, FixedCtr(0))?;
        }
        self.bus.put(CYCLES, probe);
        if self.bus.get::<FixedCtr>(CYCLES) != probe {
            return Err(InitError::NotWritable { register: FixedCtr::NAME, index: CYCLES });
        }
        let probe = PerfEvtSel::event(0x3c, 0);
        for index in counters(self.general) {
            self.bus.first_put(index, Pmc(0))?;
            self.bus.put(index, probe);
            if self.bus.get::<PerfEvtSel>(index) != probe {
                return Err(InitError::NotWritable { register: PerfEvtSel::NAME, index });
            }
            self.bus.put(index, PerfEvtSel::empty());
        }
        Ok(())
    }

    /// Mask of the extra registers that exist, by the planner's numbers.
    pub(crate) fn extra(&self) -> u8 {
        self.features.extra
    }

    /// See [`crate::Driver::changed_by_others`].
    pub(crate) fn changed_by_others(&mut self) -> Option<ControlValue> {
        let Intel { bus, features, selects, fixed, .. } = self;
        let select = |index| register_of(selects.held()[usize::from(index)]);
        in_use::changed(bus, *fixed, features.general, select)
    }
}
