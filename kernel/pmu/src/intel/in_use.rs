//! Use of the PMU by others, firmware or a hypervisor: counters that they left on, controls that
//! they write while the driver has them, and freezing on overflow.

use super::features::Features;
use crate::{
    bus::{Bus, CountingBus},
    init::{ControlValue, InitError, counters},
    registers::{
        Register,
        intel::{
            DebugCtl, FixedCtrCtrl, PerfCapabilities, PerfEvtSel, PerfGlobalCtrl,
            PerfGlobalOvfCtrl, PerfGlobalStatus,
        },
    },
};

/// Returns the control of a counter that is on: its own control and the global one both enable it.
/// The global control alone does not count: its bits for general counters are set after reset.
pub(crate) fn left_on<B: Bus>(
    bus: &mut CountingBus<B>,
    features: &Features,
) -> Option<ControlValue> {
    let global: PerfGlobalCtrl = bus.try_get(0)?;
    for index in counters(features.general | features.reserved) {
        let select: PerfEvtSel = bus.try_get(index)?;
        if select.contains(PerfEvtSel::EN) && global.bits() >> index & 1 == 1 {
            return Some(of_select(index, select));
        }
    }
    let fixed: FixedCtrCtrl = bus.try_get(0)?;
    let is_on =
        |index: u32| fixed.bits() >> (4 * index) & 3 != 0 && global.bits() >> (32 + index) & 1 == 1;
    (0..3).any(is_on).then(|| of_fixed(fixed))
}

/// Returns a control that has another value than the driver wrote: `fixed`, and `select` of each
/// counter in the mask `general`.
pub(super) fn changed<B: Bus>(
    bus: &mut CountingBus<B>,
    fixed: FixedCtrCtrl,
    general: u8,
    select: impl Fn(u8) -> PerfEvtSel,
) -> Option<ControlValue> {
    let now: FixedCtrCtrl = bus.get(0);
    if now != fixed {
        return Some(of_fixed(now));
    }
    counters(general).find_map(|index| {
        let now: PerfEvtSel = bus.get(index);
        (now != select(index)).then(|| of_select(index, now))
    })
}

fn of_select(index: u8, select: PerfEvtSel) -> ControlValue {
    ControlValue { register: PerfEvtSel::NAME, index: Some(index), value: select.bits() }
}

fn of_fixed(fixed: FixedCtrCtrl) -> ControlValue {
    ControlValue { register: FixedCtrCtrl::NAME, index: None, value: fixed.bits() }
}

/// Turns freezing on overflow off, which a boot loader may have turned on, and unfreezes the
/// counters. A hypervisor may lack the register, or fault on writes of bits that it never set.
///
/// Turns freezing in system-management mode on: its code belongs neither to the kernel nor to a
/// program, and would be included in counts of ring 0.
pub(super) fn set_freezing<B: Bus>(
    bus: &mut CountingBus<B>,
    features: &Features,
    capabilities: PerfCapabilities,
) -> Result<(), InitError> {
    if features.capabilities
        && let Some(debug) = bus.try_get::<DebugCtl>(0)
    {
        let mut wanted = debug.difference(DebugCtl::FREEZE_PERFMON_ON_PMI);
        if capabilities.contains(PerfCapabilities::FREEZE_WHILE_SMM) {
            wanted |= DebugCtl::FREEZE_WHILE_SMM;
        }
        if wanted != debug {
            bus.try_put(0, wanted);
        }
    }
    let status: PerfGlobalStatus = bus.first_get(0)?;
    if status.contains(PerfGlobalStatus::CTR_FRZ) {
        bus.first_put(0, PerfGlobalOvfCtrl::CTR_FRZ)?;
    }
    Ok(())
}
