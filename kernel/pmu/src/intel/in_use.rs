//! The PMU's state before the driver: counters in use by firmware or a hypervisor, and freezing on
//! overflow.

use super::features::Features;
use crate::{
    bus::{Bus, CountingBus},
    init::{InitError, counters},
    registers::{
        Register,
        intel::{
            DebugCtl, FixedCtr, FixedCtrCtrl, PerfEvtSel, PerfGlobalCtrl, PerfGlobalOvfCtrl,
            PerfGlobalStatus,
        },
    },
};

/// A counter is in use if its own control and the global one both enable it. The global one alone
/// means nothing: its bits for general counters are set after reset.
pub(super) fn refuse<B: Bus>(
    bus: &mut CountingBus<B>,
    features: &Features,
) -> Result<(), InitError> {
    let global: PerfGlobalCtrl = bus.get(0);
    for index in counters(features.general | features.reserved) {
        let select: PerfEvtSel = bus.get(index);
        if select.contains(PerfEvtSel::EN) && global.bits() >> index & 1 == 1 {
            let register = PerfEvtSel::NAME;
            return Err(InitError::CounterInUse { register, index, value: select.bits() });
        }
    }
    let fixed: FixedCtrCtrl = bus.get(0);
    for index in 0..3 {
        let enabled = fixed.bits() >> (4 * index) & 3 != 0;
        if enabled && global.bits() >> (32 + index) & 1 == 1 {
            let value = fixed.bits();
            return Err(InitError::CounterInUse { register: FixedCtr::NAME, index, value });
        }
    }
    Ok(())
}

/// A boot loader may have had overflows freeze the counters, and one of them may have. Both are
/// looked at first, as some hypervisors fault writes of bits that they never show.
pub(super) fn thaw<B: Bus>(bus: &mut CountingBus<B>, features: &Features) {
    if features.capabilities {
        let debug: DebugCtl = bus.get(0);
        if debug.contains(DebugCtl::FREEZE_PERFMON_ON_PMI) {
            bus.put(0, debug.difference(DebugCtl::FREEZE_PERFMON_ON_PMI));
        }
    }
    let status: PerfGlobalStatus = bus.get(0);
    if status.contains(PerfGlobalStatus::CTR_FRZ) {
        bus.put(0, PerfGlobalOvfCtrl::CTR_FRZ);
    }
}
