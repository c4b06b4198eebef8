//! Whether somebody else counts already.

use super::Facts;
use crate::{
    Bus, InitError,
    bus::Counted,
    driver::counters,
    registers::{
        Register,
        intel::{FixedCtr, FixedCtrCtrl, PerfEvtSel, PerfGlobalCtrl},
    },
};

/// A counter is in use if its own control and the global one both enable it. The global one alone
/// means nothing: its bits for general counters are set after reset.
pub(super) fn refuse<B: Bus>(bus: &mut Counted<B>, facts: &Facts) -> Result<(), InitError> {
    let global: PerfGlobalCtrl = bus.get(0);
    for index in counters(facts.general) {
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
