//! Operation without global registers: each counter has its own enable bit.

use tally_engine::{Counts, Selector, Switch};

use super::{Amd, COUNTERS, rdpmc_pinned, reload};
use crate::{
    bus::{Bus, CountingBus},
    registers::amd::PerfCtl,
};

impl<B: Bus> Amd<B> {
    /// Implements [`tally_engine::Pmu::switch`].
    #[inline(never)]
    pub(super) fn switch_each(&mut self, next: &Switch, counts: &mut Counts) -> bool {
        if self.disables_all {
            self.disable();
        }
        let Amd { selects, bus, enabled, .. } = self;
        if !selects.read::<false, _>(bus, rdpmc_pinned, next, counts) {
            self.enable();
            return false;
        }
        let select = |wanted: &Selector| PerfCtl::from_bits_retain(wanted.0);
        selects.change(next, |index, wanted| put_select(bus, *enabled, index, select(wanted)));
        reload(bus, self.timer, &selects.reload(next));
        true
    }

    /// Writes an event select.
    pub(super) fn select_each(&mut self, index: usize, wanted: PerfCtl) {
        put_select(&mut self.bus, self.enabled, index, wanted);
    }

    /// Enables each counter that has an event, or none.
    #[inline(never)]
    pub(super) fn gate_each(&mut self) {
        for step in 0..COUNTERS {
            // Merge is enabled before the event below it, and disabled after it.
            let index = if self.enabled { COUNTERS - 1 - step } else { step };
            let select = self.held(index);
            if !select.is_empty() {
                let off = if self.enabled { PerfCtl::empty() } else { PerfCtl::EN };
                self.bus.put(index as u8, select.difference(off));
            }
        }
    }
}

/// Changes a counter's event, without global registers. Costs one access, and a second one if the
/// counter is enabled: the new event must be written before the counter is enabled.
fn put_select<B: Bus>(bus: &mut CountingBus<B>, enabled: bool, index: usize, wanted: PerfCtl) {
    bus.put(index as u8, wanted.difference(PerfCtl::EN));
    if enabled {
        bus.put(index as u8, wanted);
    }
}
