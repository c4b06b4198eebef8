//! Take-over of the PMU.

use tally_engine::{MAX_EXTRA, Pinned};

use tally_abi::branches::BranchFilter;

use super::{
    Addresses, CYCLES, Features, Intel, branches,
    extra::present_extra,
    features::RecordSupport,
    in_use,
    precise::{DebugStore, Precise, RecordBuffer},
    timer::Timer,
};
use crate::{
    bus::{Bus, CountingBus},
    init::{ControlValue, InitError, counters},
    registers::{
        Register,
        intel::{
            FixedCtr, FixedCtrCtrl, PerfCapabilities, PerfEvtSel, PerfGlobalCtrl,
            PerfGlobalOvfCtrl, Pmc,
        },
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
        // CPUID does not tell, and a hypervisor may hide the register. Meteor Lake denies it.
        features.metrics &= capabilities.contains(PerfCapabilities::METRICS);
        features.records = features.records.by(capabilities);
        in_use::turn_off(&mut bus, &features, capabilities)?;
        bus.first_put(0, PerfGlobalCtrl::empty())?;
        bus.first_put(0, FixedCtrCtrl::empty())?;
        let mut driver = Intel {
            bus,
            features,
            general: features.general | features.reserved,
            selects: Selects::new(),
            addresses: features.addresses.selects(),
            extra: [0; MAX_EXTRA],
            fixed: FixedCtrCtrl::empty(),
            timer: Timer::new(Pinned::Cycles, &features, PerfGlobalOvfCtrl::empty()),
            armed: 0,
            must_stop: false,
            recording: 0,
            precise: None,
            capabilities,
            branches: None,
            full_width: features.addresses == Addresses::Version6
                || capabilities.contains(PerfCapabilities::FW_WRITE),
        };
        for index in counters(driver.general) {
            let addresses = features.addresses;
            driver.bus.first_put_at(addresses.select(index), 0, addresses.select_name())?;
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
        let probe = 0x1234;
        let addresses = self.features.addresses;
        for event in self.always() {
            self.bus.first_put_at(addresses.fixed(event as u8), 0, FixedCtr::NAME)?;
        }
        let cycles = addresses.fixed(CYCLES);
        self.bus.put_at(cycles, probe);
        if self.bus.get_at(cycles) != probe {
            return Err(InitError::NotWritable { register: FixedCtr::NAME, index: CYCLES });
        }
        let probe = PerfEvtSel::event(0x3c, 0).bits();
        for index in counters(self.general) {
            self.bus.first_put_at(addresses.counter(index), 0, Pmc::NAME)?;
            let select = addresses.select(index);
            self.bus.put_at(select, probe);
            if self.bus.get_at(select) != probe {
                return Err(InitError::NotWritable { register: addresses.select_name(), index });
            }
            self.bus.put_at(select, 0);
        }
        Ok(())
    }

    /// Mask of the extra registers that exist, by the planner's numbers.
    pub(crate) fn extra(&self) -> u8 {
        self.features.extra
    }

    /// See [`crate::Driver::has_metrics`].
    pub(crate) fn has_metrics(&self) -> bool {
        self.features.metrics
    }

    /// See [`crate::Driver::sample_precisely`].
    pub(crate) fn sample_precisely(
        &mut self,
        store: impl FnOnce() -> &'static DebugStore,
        buffer: impl FnOnce() -> Option<(&'static RecordBuffer, u64)>,
    ) {
        let Intel { bus, features, capabilities, .. } = self;
        self.precise = match features.records {
            RecordSupport::None => None,
            RecordSupport::DebugStore { exact } => {
                Precise::in_store(bus, (exact, capabilities.pebs_format()), store())
            }
            RecordSupport::Buffer { exact } => {
                buffer().and_then(|memory| Precise::in_buffer(bus, exact, memory))
            }
        };
    }

    /// See [`crate::Driver::can_sample_precisely`].
    pub(crate) fn can_sample_precisely(&self) -> bool {
        self.precise.is_some()
    }

    /// See [`crate::Driver::record_branches`].
    pub(crate) fn record_branches(&mut self) {
        let Intel { bus, features, capabilities, .. } = self;
        self.branches = branches::find(bus, features.branches, *capabilities);
    }

    /// See [`crate::Driver::branch_filters`].
    pub(crate) fn branch_filters(&self) -> BranchFilter {
        self.branches.as_ref().map_or(BranchFilter::default(), |records| records.filters())
    }

    /// See [`crate::Driver::changed_by_others`].
    pub(crate) fn changed_by_others(&mut self) -> Option<ControlValue> {
        let Intel { bus, features, selects, fixed, .. } = self;
        let select = |index| selects.held()[usize::from(index)].0;
        in_use::changed(bus, *fixed, features, select)
    }
}
