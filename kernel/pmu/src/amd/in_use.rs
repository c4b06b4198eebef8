//! What others left: whether somebody counts already, and whether overflows freeze the counters.

use super::Facts;
use crate::{
    Bus, InitError,
    bus::CountingBus,
    driver::counters,
    registers::{
        Register,
        amd::{
            DebugCtl, PerfCntrGlobalCtl, PerfCntrGlobalStatus, PerfCntrGlobalStatusClr, PerfCtl,
        },
    },
};

/// A counter is in use if its own select and, where there is one, the global control enable it.
pub(super) fn refuse<B: Bus>(bus: &mut CountingBus<B>, facts: &Facts) -> Result<(), InitError> {
    let global = match facts.global {
        true => bus.get::<PerfCntrGlobalCtl>(0).bits(),
        false => u64::MAX,
    };
    for index in counters(facts.counters) {
        let select: PerfCtl = bus.get(index);
        if select.contains(PerfCtl::EN) && global >> index & 1 == 1 {
            let (register, value) = (PerfCtl::NAME, select.bits());
            return Err(InitError::CounterInUse { register, index, value });
        }
    }
    Ok(())
}

/// As the Intel driver does.
pub(super) fn thaw<B: Bus>(bus: &mut CountingBus<B>, facts: &Facts) {
    if !facts.freeze {
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
