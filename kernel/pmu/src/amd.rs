//! Driver for AMD's core counters: the core extension, with or without PerfMonV2.
//!
//! There are no fixed counters: counter 0 counts cycles and counter 1 instructions in every slice,
//! and one of the two is the slice timer; groups use the other counters. Only the timer and
//! counters that are preloaded for thresholds raise PMIs and are written by the driver during
//! sessions.
//!
//! # Pitfalls, and how the driver avoids them
//! - A counter's event changes only while the counter is disabled, and another write enables it:
//!   otherwise the first counts are not accurate ("Performance Monitoring Counters", note on
//!   PERF_CTL). PerfMonV2 disables and enables all counters at once by its global control; without
//!   it each changed counter costs two writes.
//! - An event that can happen more than 15 times a cycle takes an even counter, and the event Merge
//!   on the odd one after it, enabled before it ("Large Increment per Cycle Events"). With
//!   global registers both are enabled at once; without them a session with such events disables
//!   all counters at each switch, and they are enabled from the last to the first. The pair has 64
//!   bits: the engine masks what it reads to 48, and a preload writes the upper 16 too, as the pair
//!   overflows after 64.
//! - The overflow is acknowledged after the reload, and the timer is reloaded only while it does
//!   not count, for the reasons given in the Intel driver.
//! - The top bit of the timer shows whether it has overflowed, as in the Intel driver: without
//!   PerfMonV2 there is no status register. If the bit is still set, the interrupt is the overflow
//!   of a preloaded counter.

mod branches;
mod each;
mod features;
mod ibs;
mod in_use;
mod interrupts;
mod start;

pub(crate) use self::{features::Features, in_use::left_on};

use self::{branches::Extended, ibs::Ibs};

use tally_abi::{
    Mode,
    branches::{Branch, MAX_BRANCHES},
};
use tally_engine::{
    CounterMask, Counts, Group, Pinned, Pmu, PreciseRecords, Selector, Setup, Switch, Widths,
    for_each_counter,
};

use crate::{
    branches::BranchRecords,
    bus::{Bus, CountingBus},
    init::counters,
    registers::{
        Register,
        amd::{
            CYCLES_NOT_IN_HALT, MERGED, PerfCntrGlobalCtl, PerfCntrGlobalStatusClr, PerfCtl,
            PerfCtr, RETIRED_INSTRUCTIONS,
        },
    },
    selects::Selects,
};

const CYCLES: u8 = 0;
const INSTRUCTIONS: u8 = 1;
/// Maximum number of counters.
const COUNTERS: usize = 6;
/// Counters that are not available to groups.
pub(crate) const PINNED: u16 = 1 << CYCLES | 1 << INSTRUCTIONS;
/// Counters of a full group: all six without the pinned ones.
const FULL: u16 = ((1 << COUNTERS) - 1) & !PINNED;
/// Width of a counter (manual, "Performance Monitoring Counters").
pub(crate) const WIDTH_BITS: u8 = 48;

/// Driver of one CPU's PMU. The fields that a group switch needs come first, in two cache lines.
#[derive(Debug)]
#[repr(C)]
pub struct Amd<B: Bus> {
    /// Whether counters are enabled, by the global control or by their own enable bits.
    enabled: bool,
    /// Whether every switch disables all counters: the session counts in ring 0, and thus the
    /// driver's own code too, or it has pairs of counters, and each counter its own enable bit.
    disables_all: bool,
    /// Index of the slice timer's counter.
    timer: u8,
    /// Status bits that are acknowledged: the timer, the preloaded counters, frozen records.
    acknowledged: u64,
    /// Mask of all counters, including those reserved for others.
    counters: u16,
    /// Mask of counters that are preloaded for thresholds.
    armed: u16,
    features: Features,
    bus: CountingBus<B>,
    /// Event selects as last written. The enable bit is set for each counter that has an event;
    /// without global registers the bit in the register also follows [`Self::enabled`].
    selects: Selects<FULL>,
    /// State of branch records, if there are any.
    branches: Option<BranchRecords<Extended>>,
    /// State of the op sampler, if its samples can be taken.
    ibs: Option<Ibs>,
}

impl<B: Bus> Amd<B> {
    /// Writes an event select if its value changes.
    fn select(&mut self, index: usize, wanted: PerfCtl) {
        if self.held(index) != wanted {
            self.disable_to_change();
            if self.features.global {
                self.bus.put(index as u8, wanted);
            } else {
                self.select_each(index, wanted);
            }
            self.selects.set_held(index, Selector(wanted.bits()));
        }
    }

    /// Writes a counter, and the upper part of its value if the counter after it has that part.
    fn set(&mut self, index: u8, value: u64) {
        if self.selects.held().get(usize::from(index) + 1) == Some(&Selector(MERGED.bits())) {
            self.bus.put(index + 1, PerfCtr(value >> WIDTH_BITS));
        }
        self.bus.put(index, PerfCtr(value & self.widths().general));
    }

    /// Value last written to an event select.
    fn held(&self, index: usize) -> PerfCtl {
        PerfCtl::from_bits_retain(self.selects.held()[index].0)
    }

    /// With global registers, disables all counters by one access before the first event changes;
    /// `enable` reverts this.
    #[inline(always)]
    fn disable_to_change(&mut self) {
        if self.features.global {
            self.disable();
        }
    }

    /// Clears status bits.
    fn acknowledge(&mut self, bits: u64) {
        if self.features.global {
            // One access: without it the status bit would stay set, and readers of the status would
            // miss the next overflow.
            let bits = PerfCntrGlobalStatusClr::from_bits_retain(bits);
            self.bus.put(0, bits);
        }
    }

    #[inline(never)]
    fn enable(&mut self) {
        if !self.enabled {
            self.enabled = true;
            self.gate();
        }
    }

    fn disable(&mut self) {
        if self.enabled {
            self.enabled = false;
            self.gate();
        }
    }

    /// Value of the global control that enables all counters.
    fn all(&self) -> PerfCntrGlobalCtl {
        PerfCntrGlobalCtl::from_bits_retain(self.counters.into())
    }

    /// Value of the global control that enables only the counters reserved for others.
    fn reserved(&self) -> PerfCntrGlobalCtl {
        PerfCntrGlobalCtl::from_bits_retain(self.features.reserved.into())
    }

    /// Writes the global control.
    #[inline(always)]
    fn control(&mut self, counters: PerfCntrGlobalCtl) {
        self.bus.put(0, counters);
    }

    /// Enables all counters or only those reserved for others: by one access with global registers,
    /// otherwise by one access for each counter that has an event.
    fn gate(&mut self) {
        if self.features.global {
            let counters = if self.enabled { self.all() } else { self.reserved() };
            self.control(counters);
        } else {
            self.gate_each();
        }
    }

    /// Resumes after an interrupt in which the timer has not overflowed.
    #[cold]
    #[inline(never)]
    fn resume(&mut self) {
        self.enable();
    }
}

#[cfg(test)]
impl<B: Bus> Amd<B> {
    pub(crate) fn model(&mut self) -> &mut B {
        self.bus.inner()
    }
}

impl<B: Bus> Pmu for Amd<B> {
    fn program(&mut self, group: &Group, setup: &Setup, slice: u64) {
        let timer = match setup.timer {
            Pinned::Instructions => Pinned::Instructions,
            _ => Pinned::Cycles,
        };
        self.timer = counter_of(timer);
        self.selects.time_by(timer, self.widths().pinned);
        self.acknowledged = 1 << self.timer;
        if self.branches.as_mut().is_some_and(|branches| branches.set(setup.branches)) {
            self.acknowledged |= PerfCntrGlobalStatusClr::LBR_FROZEN.bits();
        }
        self.ibs.iter_mut().for_each(|ibs| ibs.configure(setup.precise));
        self.disables_all = setup.kernel || setup.pairs && !self.features.global;
        // Clears the selects that this group does not use, so that its program cannot read counts
        // of other sessions.
        for_each_counter(self.features.counters & !PINNED, |index| {
            self.select(index, PerfCtl::from_bits_retain(group.selectors[index].0));
        });
        for (event, counter, code) in [
            (Pinned::Cycles, CYCLES, CYCLES_NOT_IN_HALT),
            (Pinned::Instructions, INSTRUCTIONS, RETIRED_INSTRUCTIONS),
        ] {
            let mut select = always(code, setup.mode);
            select.set(PerfCtl::INT, setup.timer == event);
            self.select(counter.into(), select);
        }
        let first = slice.wrapping_neg() & self.widths().pinned;
        reload(&mut self.bus, self.timer, &first);
    }

    fn enable(&mut self) {
        if let Some(branches) = &mut self.branches {
            branches.start(&mut self.bus);
        }
        self.enable();
    }

    fn can_restore(&self) -> bool {
        true
    }

    fn restore(&mut self, group: &Group, mode: Mode, values: &Counts) {
        for index in counters(self.features.counters).rev() {
            let at = usize::from(index);
            let select = PerfCtl::from_bits_retain(group.selectors[at].0);
            let (select, value) = match index {
                CYCLES => (always(CYCLES_NOT_IN_HALT, mode), values[Pinned::Cycles]),
                INSTRUCTIONS => (always(RETIRED_INSTRUCTIONS, mode), values[Pinned::Instructions]),
                _ if group.used >> index & 1 == 1 => (select, values.general[at]),
                // Merge, or nothing.
                _ => (select, 0),
            };
            self.select(at, select);
            self.bus.put(index, PerfCtr(value & self.widths().general));
        }
        self.enable();
    }

    fn stop(&mut self) {
        self.disable();
        if let Some(branches) = &mut self.branches {
            branches.stop(&mut self.bus);
        }
        self.disarm();
        self.acknowledge(self.acknowledged);
    }

    fn is_counting(&mut self) -> bool {
        if self.features.global {
            let enabled: PerfCntrGlobalCtl = self.bus.get(0);
            return !enabled.difference(self.reserved()).is_empty();
        }
        let Amd { features, bus, .. } = self;
        counters(features.counters).any(|index| bus.get::<PerfCtl>(index).contains(PerfCtl::EN))
    }

    fn take_precise(&mut self) -> PreciseRecords {
        self.ibs.as_mut().map(Ibs::take).unwrap_or_default()
    }

    fn branches(&mut self, to: &mut [Branch; MAX_BRANCHES]) -> usize {
        let Amd { bus, branches, .. } = self;
        branches.as_ref().map_or(0, |branches| branches.read(bus, to))
    }

    fn clear_branches(&mut self) {
        let Amd { bus, branches, .. } = self;
        branches.iter().for_each(|branches| branches.clear(bus));
    }

    fn scrub(&mut self) {
        for index in counters(self.features.counters) {
            self.bus.put(index, PerfCtr(0));
        }
    }

    fn read(&mut self, set: CounterMask) -> Counts {
        let mut counts = Counts::default();
        for event in [Pinned::Cycles, Pinned::Instructions] {
            counts[event] = self.bus.count(rdpmc_pinned(event));
        }
        for_each_counter(set.general, |index| {
            counts.general[index] = self.bus.count(index as u32);
        });
        counts
    }

    #[inline(always)]
    fn switch(&mut self, next: &Switch, counts: &mut Counts) -> bool {
        if !self.features.global {
            return self.switch_each(next, counts);
        }
        // Disables the counters by one access: to change events, or to exclude the handler's own
        // events from the session.
        if next.changed != 0 || self.disables_all {
            debug_assert!(self.enabled);
            self.enabled = false;
            self.control(PerfCntrGlobalCtl::empty());
        }
        let Amd { selects, bus, .. } = self;
        if !selects.read::<false, _>(bus, rdpmc_pinned, next, counts) {
            self.resume();
            return false;
        }
        let Amd { selects, bus, .. } = self;
        bus.msr_accesses += selects.change(next, |index, wanted| {
            bus.put_uncounted_from_at(PerfCtl::address(index as u8), &wanted.0);
        });
        reload(bus, self.timer, &selects.reload(next));
        true
    }

    #[inline(always)]
    fn ack_and_resume(&mut self) {
        if !self.features.global {
            return self.enable();
        }
        self.acknowledge(self.acknowledged);
        if !self.enabled {
            self.enabled = true;
            self.control(self.all());
        }
    }

    fn preload(&mut self, slot: usize, remaining: u64) -> u64 {
        self.preload_slot(slot, remaining)
    }

    fn disarm(&mut self) {
        self.disarm_all();
    }

    fn widths(&self) -> Widths {
        Widths::of(WIDTH_BITS.into())
    }

    #[inline(always)]
    fn msr_accesses(&self) -> u64 {
        self.bus.msr_accesses
    }
}

/// Reloads the timer's counter.
#[inline(always)]
fn reload<B: Bus>(bus: &mut CountingBus<B>, timer: u8, value: &u64) {
    // One access: writes this counter only.
    bus.put_from_at(PerfCtr::address(timer), value);
}

/// ECX operand of RDPMC for a pinned event's counter.
#[inline(always)]
pub(crate) fn rdpmc_pinned(event: Pinned) -> u32 {
    counter_of(event).into()
}

/// Counter of a pinned event. (Reference cycles have none.)
#[inline(always)]
fn counter_of(event: Pinned) -> u8 {
    if event == Pinned::Cycles { CYCLES } else { INSTRUCTIONS }
}

/// Event select of a pinned event.
fn always(code: u16, mode: Mode) -> PerfCtl {
    let mut select = PerfCtl::event(code, 0) | PerfCtl::EN;
    select.set(PerfCtl::USR, mode.user());
    select.set(PerfCtl::OS, mode.kernel());
    select
}
