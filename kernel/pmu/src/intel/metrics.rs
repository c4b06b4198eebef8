//! PERF_METRICS, which counts while fixed counter 3 does.

use tally_abi::Mode;
use tally_engine::Metrics;

use super::features::Features;
use crate::{
    bus::{Bus, CountingBus},
    registers::intel::{FixedCtrCtrl, PerfGlobalCtrl, PerfMetrics, RDPMC_FIXED, RDPMC_METRICS},
};

/// Number of the counter of slots among the fixed counters.
const SLOTS: u8 = 3;
/// Enables of that counter and of PERF_METRICS.
pub(super) const ENABLE: PerfGlobalCtrl = PerfGlobalCtrl::FIXED3.union(PerfGlobalCtrl::METRICS);

/// The control of the counter of slots at the privileges of `mode`.
pub(super) fn slots_at(mode: Mode) -> FixedCtrCtrl {
    let mut control = FixedCtrCtrl::empty();
    control.set(FixedCtrCtrl::OS3, mode.kernel());
    control.set(FixedCtrCtrl::USR3, mode.user());
    control
}

/// Sets the counter of slots to 0, and then PERF_METRICS.
pub(super) fn clear<B: Bus>(bus: &mut CountingBus<B>, features: &Features) {
    bus.put_at(features.addresses.fixed(SLOTS), 0);
    bus.put(0, PerfMetrics(0));
}

/// Reads the counter of slots and PERF_METRICS, and sets both to 0.
pub(super) fn take<B: Bus>(bus: &mut CountingBus<B>, features: &Features) -> Metrics {
    let slots = bus.count(RDPMC_FIXED | u32::from(SLOTS));
    let fractions = bus.count(RDPMC_METRICS);
    clear(bus, features);
    Metrics::new(slots, fractions)
}
