//! Events on the counter unit, which takes the vendor's event selects.

use tally_engine::Pinned;

use super::{Catalogue, Resolved, processors::Vendor};
use crate::registers::{
    amd::{CYCLES_NOT_IN_HALT, PerfCtl, RETIRED_INSTRUCTIONS},
    intel::PerfEvtSel,
    unit::UnitConfig,
};

impl Catalogue {
    /// Returns the configuration of a counter unit's counter for an event; `None` for an event that
    /// the unit cannot count: a metric, one that needs an extra register, a second unit mask or the
    /// equal flag, or AMD's reference cycles.
    pub fn on_unit(&self, event: &Resolved) -> Option<UnitConfig> {
        if event.demand.extra.is_some() || event.demand.metric.is_some() {
            return None;
        }
        let Some(pinned) = event.demand.pinned else {
            let select = event.demand.selector.0;
            // The unit has neither a second unit mask nor the equal flag.
            let version_6 = PerfEvtSel::SECOND_UMASK | PerfEvtSel::EQUAL;
            let is_wide = self.is_intels() && select & version_6.bits() != 0;
            return (!is_wide).then(|| UnitConfig::of_select(select));
        };
        let select = match (self.processor.vendor, pinned) {
            // The fixed counters' events have code 0 and unit masks from 1 on.
            (Vendor::Intel, _) => PerfEvtSel::event(0, 1 + pinned as u8).bits(),
            (Vendor::Amd, Pinned::Instructions) => PerfCtl::event(RETIRED_INSTRUCTIONS, 0).bits(),
            (Vendor::Amd, Pinned::Cycles) => PerfCtl::event(CYCLES_NOT_IN_HALT, 0).bits(),
            (Vendor::Amd, Pinned::Reference) => return None,
        };
        let mut config = UnitConfig::of_select(select);
        config.set(UnitConfig::USR, event.mode.user());
        config.set(UnitConfig::OS, event.mode.kernel());
        Some(config)
    }
}
