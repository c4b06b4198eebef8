//! Use of the PMU by others, firmware or a hypervisor: counters that they left on, and freezing on
//! overflow.

use super::features::Features;
use crate::{
    bus::{Bus, CountingBus},
    init::{ControlValue, InitError, counters},
    registers::{
        Register,
        amd::{
            DebugCtl, PerfCntrGlobalCtl, PerfCntrGlobalStatus, PerfCntrGlobalStatusClr, PerfCtl,
        },
    },
};

/// Returns the control of a counter that is on: its own select and, if it exists, the global
/// control enable it.
pub(crate) fn left_on<B: Bus>(
    bus: &mut CountingBus<B>,
    features: &Features,
) -> Option<ControlValue> {
    let global =
        if features.global { bus.try_get::<PerfCntrGlobalCtl>(0)?.bits() } else { u64::MAX };
    counters(features.counters | features.reserved).find_map(|index| {
        let select: PerfCtl = bus.try_get(index)?;
        let is_on = select.contains(PerfCtl::EN) && global >> index & 1 == 1;
        is_on.then(|| of_select(index, select))
    })
}

/// The value of a counter's select.
pub(super) fn of_select(index: u8, select: PerfCtl) -> ControlValue {
    ControlValue { register: PerfCtl::NAME, index: Some(index), value: select.bits() }
}

/// Turns freezing on overflow off, and unfreezes the counters if they are frozen.
pub(super) fn thaw<B: Bus>(bus: &mut CountingBus<B>, features: &Features) -> Result<(), InitError> {
    if !features.freeze {
        return Ok(());
    }
    if let Some(debug) = bus.try_get::<DebugCtl>(0)
        && debug.contains(DebugCtl::FREEZE_PMC_ON_PMI)
    {
        bus.try_put(0, debug.difference(DebugCtl::FREEZE_PMC_ON_PMI));
    }
    let status: PerfCntrGlobalStatus = bus.first_get(0)?;
    if status.contains(PerfCntrGlobalStatus::PMC_FROZEN) {
        bus.first_put(0, PerfCntrGlobalStatusClr::PMC_FROZEN)?;
    }
    Ok(())
}
