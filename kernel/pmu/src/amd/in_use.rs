//! Use of the PMU by others, firmware or a hypervisor: counters that they left on, and freezing on
//! overflow.

use super::features::Features;
use crate::{
    bus::{Bus, CountingBus},
    init::{ControlValue, InitError, counters},
    registers::{
        Register,
        amd::{
            DebugCtl, DebugExtnCfg, PerfCntrGlobalCtl, PerfCntrGlobalStatus,
            PerfCntrGlobalStatusClr, PerfCtl,
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
    let (register, index) = (PerfCtl::NAME, Some(index));
    ControlValue { register, index, value: select.bits(), in_use: None }
}

/// Turns records of branches and freezing on overflow off, and unfreezes what is frozen.
pub(super) fn turn_off<B: Bus>(
    bus: &mut CountingBus<B>,
    features: &Features,
) -> Result<(), InitError> {
    if !features.freeze {
        return Ok(());
    }
    if let Some(debug) = bus.try_get::<DebugCtl>(0)
        && debug.intersects(DebugCtl::FREEZE_PMC_ON_PMI | DebugCtl::LBR)
    {
        bus.try_put(0, debug.difference(DebugCtl::FREEZE_PMC_ON_PMI | DebugCtl::LBR));
    }
    if let Some(records) = bus.try_get::<DebugExtnCfg>(0)
        && records.contains(DebugExtnCfg::LBRV2)
    {
        bus.try_put(0, records.difference(DebugExtnCfg::LBRV2));
    }
    let status: PerfCntrGlobalStatus = bus.first_get(0)?;
    let frozen = PerfCntrGlobalStatus::PMC_FROZEN | PerfCntrGlobalStatus::LBR_FROZEN;
    let frozen = (status & frozen).bits();
    if frozen != 0 {
        bus.first_put(0, PerfCntrGlobalStatusClr::from_bits_retain(frozen))?;
    }
    Ok(())
}
