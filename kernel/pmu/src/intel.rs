//! Driver for Intel's architectural performance monitoring, versions 2 to 6.
//!
//! Fixed counters 0 (instructions), 1 (core cycles) and 2 (reference cycles) count in every slice.
//! Counter 1, or 0 for slices of instructions, is the slice timer. Only the timer and counters that
//! are preloaded for thresholds raise PMIs and are written by the driver during sessions: the
//! others continue to count across group switches, and the engine computes differences. Therefore
//! IA32_PERF_CAPABILITIES.FW_WRITE matters only to direct mode. A write of minus at most 2³⁰,
//! truncated to the counter's width, has the same effect on a processor that takes the full width
//! and on one that takes 32 bits and sign-extends them.
//!
//! # Pitfalls, and how the driver avoids them
//! - The overflow is acknowledged after the reload: before the reload, the timer has already
//!   overflowed and nothing is lost, but a counter that still counts could set the bit again.
//! - The timer is reloaded only while it does not count. In user mode ring 0 counts nothing for the
//!   session. In the other modes a write to the global control stops all counters and another one
//!   enables them.
//! - The driver never lets overflows freeze the counters ("Streamlined Freeze PMI"). A freeze loses
//!   the events from the overflow to the interrupt, in ring 3 too, and nothing unfreezes the
//!   counters if the interrupt does not come (decision 50).
//! - The timer's own top bit, which the reload sets and the overflow clears, shows whether the
//!   timer has overflowed. It is read by RDPMC; IA32_PERF_GLOBAL_STATUS would need a far slower
//!   RDMSR. The interrupt comes some instructions late (skid), so the top bit is always clear by
//!   then.
//! - An event that needs a value in an extra register (off-core responses) would count with a wrong
//!   value if the register were written after the selector. Therefore the register is written
//!   first, while nothing counts.
//! - If the timer's top bit is still set, the interrupt is the overflow of a counter that is
//!   preloaded for a threshold. It is acknowledged together with the timer's.
//! - WRMSR to these registers is serializing, so no event of the old group is counted under the new
//!   selector.

mod addresses;
mod branches;
mod extra;
mod features;
mod in_use;
mod interrupts;
mod metrics;
mod precise;
mod start;
mod timer;

pub use self::precise::{DebugStore, RecordBuffer};
pub(crate) use self::{
    addresses::Addresses,
    branches::BranchSupport,
    extra::{extra_address, extra_register},
    features::{Features, RecordSupport},
    in_use::left_on,
};
use self::{branches::Stack, precise::Precise, timer::Timer};
pub(crate) use crate::registers::intel::RDPMC_METRICS;

use tally_abi::{
    Mode,
    branches::{Branch, MAX_BRANCHES},
};
use tally_engine::{
    CounterMask, Counts, Group, MAX_EXTRA, MAX_GENERAL, Metrics, Pinned, Pmu, PreciseRecords,
    Selector, Setup, Switch, Widths, for_each_counter,
};

use crate::{
    branches::BranchRecords,
    bus::{Bus, CountingBus},
    init::counters,
    registers::intel::{
        FixedCtrCtrl, PerfCapabilities, PerfGlobalCtrl, PerfGlobalOvfCtrl, RDPMC_FIXED,
    },
    selects::Selects,
};

// A fixed counter's number is its event's value.
const _: () = assert!(Pinned::Instructions as u8 == 0);
/// Counters of a full group with hyperthreading, which leaves four to each thread.
const FULL: u16 = 0x0f;
const CYCLES: u8 = Pinned::Cycles as u8;
const _: () = assert!(CYCLES == 1 && Pinned::Reference as u8 == 2);

/// Driver of one CPU's PMU. The fields that a group switch needs come first, in two cache lines.
#[derive(Debug)]
#[repr(C)]
pub struct Intel<B: Bus> {
    /// Whether the overflow path has to stop counting because the session counts ring 0.
    must_stop: bool,
    bus: CountingBus<B>,
    timer: Timer,
    selects: Selects<FULL>,
    /// Addresses of the event selects.
    addresses: [u32; MAX_GENERAL],
    features: Features,
    /// Mask of all general counters, including those reserved for others.
    general: u16,
    /// Values last written to the extra registers.
    extra: [u64; MAX_EXTRA],
    /// Value last written to IA32_FIXED_CTR_CTRL.
    fixed: FixedCtrCtrl,
    /// Mask of general counters that are preloaded.
    armed: u16,
    /// Whether general counters can be written in full width.
    full_width: bool,
    /// Mask of the slots whose counters store precise records.
    recording: u16,
    /// State of precise samples, if they can be taken.
    precise: Option<Precise>,
    /// IA32_PERF_CAPABILITIES.
    capabilities: PerfCapabilities,
    /// State of branch records, if there are any.
    branches: Option<BranchRecords<Stack>>,
}

impl<B: Bus> Intel<B> {
    /// Value that enables all counters; a counter without a selector counts nothing that is read.
    fn enabled(&self) -> PerfGlobalCtrl {
        let fixed = PerfGlobalCtrl::FIXED0 | PerfGlobalCtrl::FIXED1;
        let third =
            if self.features.reference { PerfGlobalCtrl::FIXED2 } else { PerfGlobalCtrl::empty() };
        let all = PerfGlobalCtrl::from_bits_retain(u64::from(self.general)) | fixed | third;
        if self.features.metrics { all | metrics::ENABLE } else { all }
    }

    /// Returns the pinned events that have a counter.
    fn always(&self) -> impl Iterator<Item = Pinned> + use<B> {
        let reference = self.features.reference;
        Pinned::ALL.into_iter().filter(move |event| *event != Pinned::Reference || reference)
    }

    /// Value that lets all fixed counters count at the privileges of `mode`.
    fn fixed_at(&self, mode: Mode) -> FixedCtrCtrl {
        let mut one = 0;
        if mode.kernel() {
            one |= FixedCtrCtrl::OS0.bits();
        }
        if mode.user() {
            one |= FixedCtrCtrl::USR0.bits();
        }
        let third = if self.features.reference { one << 8 } else { 0 };
        FixedCtrCtrl::from_bits_retain(one | one << 4 | third)
    }

    /// Writes the fixed counters' control if its value changes.
    fn control_fixed(&mut self, wanted: FixedCtrCtrl) {
        if wanted != self.fixed {
            self.bus.put(0, wanted);
            self.fixed = wanted;
        }
    }

    fn put_fixed(&mut self, event: Pinned, value: u64) {
        self.bus.put_at(self.features.addresses.fixed(event as u8), value);
    }

    /// Writes a selector if its value changes.
    fn select(&mut self, index: usize, wanted: Selector) {
        if self.selects.held()[index] != wanted {
            self.bus.put_at(self.addresses[index], wanted.0);
            self.selects.set_held(index, wanted);
        }
    }

    /// Clears the bits of all counters in the overflow status.
    #[inline(always)]
    fn acknowledge(&mut self) {
        self.bus.put(0, self.timer.acknowledge);
    }

    /// Resumes after an interrupt that was not caused by the timer's overflow.
    #[cold]
    #[inline(never)]
    fn resume(&mut self) {
        if self.must_stop {
            self.enable();
        }
    }

    fn enable(&mut self) {
        self.bus.put(0, self.enabled());
    }

    fn disable(&mut self) {
        self.bus.put(0, PerfGlobalCtrl::empty());
    }

    /// Disables all counters except those reserved for others.
    fn enable_reserved(&mut self) {
        self.bus.put(0, self.features.reserved());
    }
}

#[cfg(test)]
impl<B: Bus> Intel<B> {
    pub(crate) fn model(&mut self) -> &mut B {
        self.bus.inner()
    }
}

/// ECX operand of RDPMC for the counter of a pinned event.
#[inline(always)]
pub(crate) fn rdpmc_pinned(event: Pinned) -> u32 {
    RDPMC_FIXED | event as u32
}

impl<B: Bus> Pmu for Intel<B> {
    fn program(&mut self, group: &Group, setup: &Setup, slice: u64) {
        self.must_stop = setup.kernel;
        self.recording = 0;
        if let (Some(records), Some(precise)) = (setup.precise, &mut self.precise) {
            precise.configure(&mut self.bus, records);
        }
        let has_branches =
            self.branches.as_mut().is_some_and(|branches| branches.set(setup.branches));
        let frozen =
            if has_branches { PerfGlobalOvfCtrl::LBR_FRZ } else { PerfGlobalOvfCtrl::empty() };
        self.timer = Timer::new(setup.timer, &self.features, frozen);
        self.selects.time_by(setup.timer, self.features.widths.pinned);
        if group.extra.used != 0 {
            self.load_extra(group.extra.used, &group.extra.values);
        }
        // Clears counters that this group does not use: its program must not see what others left
        // in them.
        for_each_counter(self.features.general, |index| self.select(index, group.selectors[index]));
        let timer = FixedCtrCtrl::PMI0.bits() << (4 * setup.timer as u8);
        let mut fixed = self.fixed_at(setup.mode) | FixedCtrCtrl::from_bits_retain(timer);
        if setup.metrics {
            metrics::clear(&mut self.bus, &self.features);
            fixed |= metrics::slots_at(setup.mode);
        }
        self.control_fixed(fixed);
        let first = slice.wrapping_neg() & self.features.widths.pinned;
        self.bus.put_from_at(self.timer.address, &first);
    }

    fn enable(&mut self) {
        if let Some(branches) = &mut self.branches {
            branches.start(&mut self.bus);
        }
        self.enable();
    }

    fn can_restore(&self) -> bool {
        self.full_width
    }

    fn restore(&mut self, group: &Group, mode: Mode, values: &Counts) {
        self.load_extra(group.extra.used, &group.extra.values);
        for index in counters(self.features.general) {
            let at = usize::from(index);
            let used = group.used >> index & 1 == 1;
            self.select(at, group.selectors[at]);
            let value = if used { values.general[at] } else { 0 };
            self.bus.put_at(self.features.addresses.full_counter(index), value);
        }
        for event in self.always() {
            self.put_fixed(event, values[event]);
        }
        self.control_fixed(self.fixed_at(mode));
        self.enable();
    }

    fn stop(&mut self) {
        self.enable_reserved();
        if let Some(branches) = &mut self.branches {
            branches.stop(&mut self.bus);
        }
        self.disarm();
        self.acknowledge();
    }

    fn is_counting(&mut self) -> bool {
        let enabled: PerfGlobalCtrl = self.bus.get(0);
        !enabled.difference(self.features.reserved()).is_empty()
    }

    fn take_metrics(&mut self) -> Metrics {
        metrics::take(&mut self.bus, &self.features)
    }

    fn take_precise(&mut self) -> PreciseRecords {
        let Intel { bus, precise, .. } = self;
        precise.as_ref().map(|precise| precise.take(bus)).unwrap_or_default()
    }

    fn branches(&mut self, to: &mut [Branch; MAX_BRANCHES]) -> usize {
        let Intel { bus, branches, .. } = self;
        branches.as_ref().map_or(0, |branches| branches.read(bus, to))
    }

    fn clear_branches(&mut self) {
        let Intel { bus, branches, .. } = self;
        branches.iter().for_each(|branches| branches.clear(bus));
    }

    fn scrub(&mut self) {
        if self.features.metrics {
            metrics::clear(&mut self.bus, &self.features);
        }
        for index in counters(self.features.general) {
            self.bus.put_at(self.features.addresses.counter(index), 0);
        }
        for event in self.always() {
            self.put_fixed(event, 0);
        }
    }

    fn read(&mut self, set: CounterMask) -> Counts {
        let mut counts = Counts::default();
        for event in Pinned::ALL {
            if event != Pinned::Reference || set.reference {
                counts[event] = self.bus.count(rdpmc_pinned(event));
            }
        }
        for_each_counter(set.general, |index| {
            counts.general[index] = self.bus.count(index as u32);
        });
        counts
    }

    #[inline(always)]
    fn switch(&mut self, next: &Switch, counts: &mut Counts) -> bool {
        if self.must_stop {
            // One access: this handler's own events must not be counted in the session.
            self.disable();
        }
        let Intel { selects, bus, .. } = self;
        if !selects.read::<true, _>(bus, rdpmc_pinned, next, counts) {
            self.resume();
            return false;
        }
        if next.extra != 0 {
            self.load_extra_of(next);
        }
        let Intel { selects, bus, addresses, .. } = self;
        // One access for each event that changes, which is the minimum.
        let changes = selects.change(next, |index, wanted| {
            bus.put_uncounted_from_at(addresses[index], &wanted.0);
        });
        bus.msr_accesses += changes;
        // One access: writes this counter only.
        bus.put_from_at(self.timer.address, &selects.reload(next));
        true
    }

    #[inline(always)]
    fn ack_and_resume(&mut self) {
        self.acknowledge();
        if self.must_stop {
            // One access, the last: from here on the session's events are counted again.
            self.enable();
        }
    }

    fn has_lost_overflow(&mut self) -> bool {
        self.has_recorded_overflow()
    }

    fn preload(&mut self, slot: usize, remaining: u64) -> u64 {
        self.preload_slot(slot, remaining)
    }

    fn store_records(&mut self, slots: u16) {
        self.recording = slots;
    }

    fn disarm(&mut self) {
        self.disarm_all();
    }

    fn widths(&self) -> Widths {
        self.features.widths
    }

    #[inline(always)]
    fn msr_accesses(&self) -> u64 {
        self.bus.msr_accesses
    }
}
