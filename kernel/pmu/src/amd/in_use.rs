//! State of the PMU before the driver starts: counters in use by firmware or a hypervisor, and
//! freezing on overflow.

use super::features::Features;
use crate::{
    bus::{Bus, CountingBus},
    init::{InitError, counters},
    registers::{
        Register,
        amd::{
            DebugCtl, PerfCntrGlobalCtl, PerfCntrGlobalStatus, PerfCntrGlobalStatusClr, PerfCtl,
        },
    },
};

/// Refuses a counter in use: its own select and, if it exists, the global control enable it.
pub(super) fn refuse<B: Bus>(
    bus: &mut CountingBus<B>,
    features: &Features,
) -> Result<(), InitError> {
    let global = if features.global { bus.get::<PerfCntrGlobalCtl>(0).bits() } else { u64::MAX };
    for index in counters(features.counters | features.reserved) {
        let select: PerfCtl = bus.get(index);
        if select.contains(PerfCtl::EN) && global >> index & 1 == 1 {
            let (register, value) = (PerfCtl::NAME, select.bits());
            return Err(InitError::CounterInUse { register, index, value });
        }
    }
    Ok(())
}

/// Turns freezing on overflow off, and unfreezes the counters if they are frozen.
pub(super) fn thaw<B: Bus>(bus: &mut CountingBus<B>, features: &Features) {
    if !features.freeze {
        return;
    }
    let debug: DebugCtl = bus.get(0);
    if debug.contains(DebugCtl::FREEZE_PMC_ON_PMI) {
        bus.put(0, debug.difference(DebugCtl::FREEZE_PMC_ON_PMI));
    }
    let status: PerfCntrGlobalStatus = bus.get(0);
    if status.contains(PerfCntrGlobalStatus::PMC_FROZEN) {
        bus.put(0, PerfCntrGlobalStatusClr::PMC_FROZEN);
    }
}
