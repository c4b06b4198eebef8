//! Use of the PMU by others, firmware or a hypervisor: counters that they left on, controls that
//! they write while the driver has them, and freezing on overflow.

use super::features::Features;
use crate::{
    bus::{Bus, CountingBus},
    init::{ControlValue, InitError, counters},
    registers::{
        Register,
        branches::LbrCtl,
        intel::{
            DebugCtl, FixedCtrCtrl, PebsEnable, PerfCapabilities, PerfEvtSel, PerfGlobalCtrl,
            PerfGlobalInuse, PerfGlobalOvfCtrl, PerfGlobalStatus,
        },
    },
};

/// Returns the control of a counter that is on: its own control and the global one both enable it.
/// The global control alone does not count: its bits for general counters are set after reset.
pub(crate) fn left_on<B: Bus>(
    bus: &mut CountingBus<B>,
    features: &Features,
) -> Option<ControlValue> {
    let found = first_on(bus, features)?;
    let in_use = bus.try_get::<PerfGlobalInuse>(0).map(|all| all.bits());
    Some(ControlValue { in_use, ..found })
}

fn first_on<B: Bus>(bus: &mut CountingBus<B>, features: &Features) -> Option<ControlValue> {
    let global: PerfGlobalCtrl = bus.try_get(0)?;
    for index in counters(features.general | features.reserved) {
        let select = bus.try_get_at(features.addresses.select(index))?;
        if select & PerfEvtSel::EN.bits() != 0 && global.bits() >> index & 1 == 1 {
            return Some(of_select(features, index, select));
        }
    }
    let fixed: FixedCtrCtrl = bus.try_get(0)?;
    let is_on =
        |index: u32| fixed.bits() >> (4 * index) & 3 != 0 && global.bits() >> (32 + index) & 1 == 1;
    (0..16).any(is_on).then(|| of_fixed(fixed))
}

/// Writes 0 to a register that may not exist, if it has another value.
fn clear_if_set<B: Bus, R: Register>(bus: &mut CountingBus<B>) {
    if bus.try_get::<R>(0).is_some_and(|value| value.raw() != 0) {
        bus.try_put(0, R::from_raw(0));
    }
}

/// Returns a control that has another value than the driver wrote: `fixed`, and `select` of each
/// counter for groups.
pub(super) fn changed<B: Bus>(
    bus: &mut CountingBus<B>,
    fixed: FixedCtrCtrl,
    features: &Features,
    select: impl Fn(u8) -> u64,
) -> Option<ControlValue> {
    let now: FixedCtrCtrl = bus.get(0);
    if now != fixed {
        return Some(of_fixed(now));
    }
    counters(features.general).find_map(|index| {
        let now = bus.get_at(features.addresses.select(index));
        (now != select(index)).then(|| of_select(features, index, now))
    })
}

fn of_select(features: &Features, index: u8, value: u64) -> ControlValue {
    let (register, index) = (features.addresses.select_name(), Some(index));
    ControlValue { register, index, value, in_use: None }
}

fn of_fixed(fixed: FixedCtrCtrl) -> ControlValue {
    ControlValue { register: FixedCtrCtrl::NAME, index: None, value: fixed.bits(), in_use: None }
}

/// Turns off records of branches and of events, which firmware or a boot loader may have turned on
/// and whose writes cost programs time, and freezing on overflow; unfreezes the counters. A
/// hypervisor may lack a register, or fault on writes of bits that it never set.
///
/// Turns freezing in system-management mode on: its code belongs neither to the kernel nor to a
/// program, and would be included in counts of ring 0.
pub(super) fn turn_off<B: Bus>(
    bus: &mut CountingBus<B>,
    features: &Features,
    capabilities: PerfCapabilities,
) -> Result<(), InitError> {
    if features.capabilities
        && let Some(debug) = bus.try_get::<DebugCtl>(0)
    {
        let mut wanted = debug.difference(DebugCtl::FREEZE_PERFMON_ON_PMI | DebugCtl::BRANCHES);
        if capabilities.contains(PerfCapabilities::FREEZE_WHILE_SMM) {
            wanted |= DebugCtl::FREEZE_WHILE_SMM;
        }
        if wanted != debug {
            bus.try_put(0, wanted);
        }
    }
    clear_if_set::<_, PebsEnable>(bus);
    clear_if_set::<_, LbrCtl>(bus);
    let status: PerfGlobalStatus = bus.first_get(0)?;
    if status.contains(PerfGlobalStatus::CTR_FRZ) {
        bus.first_put(0, PerfGlobalOvfCtrl::CTR_FRZ)?;
    }
    Ok(())
}
