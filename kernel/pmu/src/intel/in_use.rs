//! State of the PMU before the driver starts: counters in use by firmware or a hypervisor, and
//! freezing on overflow.

use super::features::Features;
use crate::{
    bus::{Bus, CountingBus},
    init::{InitError, counters},
    registers::{
        Register,
        intel::{
            DebugCtl, FixedCtr, FixedCtrCtrl, PerfCapabilities, PerfEvtSel, PerfGlobalCtrl,
            PerfGlobalOvfCtrl, PerfGlobalStatus,
        },
    },
};

/// Refuses a counter in use: its own control and the global one both enable it. The global control
/// alone does not count: its bits for general counters are set after reset.
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

/// Turns freezing on overflow off, which a boot loader may have turned on, and unfreezes the
/// counters. Both registers are written only if necessary, because some hypervisors fault on writes
/// of bits that they never set.
///
/// Turns freezing in system-management mode on: its code belongs neither to the kernel nor to a
/// program, and would be included in counts of ring 0.
pub(super) fn set_freezing<B: Bus>(
    bus: &mut CountingBus<B>,
    features: &Features,
    capabilities: PerfCapabilities,
) {
    if features.capabilities {
        let debug: DebugCtl = bus.get(0);
        let mut wanted = debug.difference(DebugCtl::FREEZE_PERFMON_ON_PMI);
        if capabilities.contains(PerfCapabilities::FREEZE_WHILE_SMM) {
            wanted |= DebugCtl::FREEZE_WHILE_SMM;
        }
        if wanted != debug {
            bus.put(0, wanted);
        }
    }
    let status: PerfGlobalStatus = bus.get(0);
    if status.contains(PerfGlobalStatus::CTR_FRZ) {
        bus.put(0, PerfGlobalOvfCtrl::CTR_FRZ);
    }
}
