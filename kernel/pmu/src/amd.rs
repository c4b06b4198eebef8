//! The driver for AMD's core counters: the core extension, with or without PerfMonV2.
//!
//! There are no fixed counters: counter 0 counts cycles and counter 1 instructions in every slice,
//! and one of the two is the slice timer; groups use the rest. The timer and counters that are
//! preloaded for thresholds are the only ones that raise PMIs and that the driver writes for
//! sessions.
//!
//! # Pitfalls, and how the driver avoids them
//! - A counter's event changes only while the counter is disabled, and another write enables it:
//!   the manual says that the first counts are not accurate otherwise ("Performance Monitoring
//!   Counters", note on PERF_CTL). PerfMonV2 does that for all at once with its global control;
//!   without it each changed counter costs two writes.
//! - The overflow is acknowledged after the reload, and the timer is reloaded only while it does
//!   not count; see the Intel driver.
//! - The timer's own top bit shows whether it has overflowed, as in the Intel driver: without
//!   PerfMonV2 there is no status register at all. The overflow of a preloaded counter is
//!   recognized by it too.

mod each;
mod features;
mod in_use;

pub(crate) use self::features::Features;

use core::mem::take;

use tally_abi::{Mode, bank::PINNED_SLOT};
use tally_engine::{
    CounterMask, Counts, Group, MAX_GENERAL, Pinned, Pmu, Selector, Setup, Switch, Widths,
    for_each_counter,
};

use crate::{
    bus::{Bus, CountingBus},
    init::{InitError, counters},
    registers::{
        Register,
        amd::{
            CYCLES_NOT_IN_HALT, PerfCntrGlobalCtl, PerfCntrGlobalStatusClr, PerfCtl, PerfCtr,
            RETIRED_INSTRUCTIONS,
        },
    },
    selects::Selects,
};

const CYCLES: u8 = 0;
const INSTRUCTIONS: u8 = 1;
/// Counters that groups cannot use.
pub(crate) const PINNED: u8 = 1 << CYCLES | 1 << INSTRUCTIONS;
/// The counters of a full group: of six, those that are left.
const FULL: u8 = 0x3f & !PINNED;
/// Counters are 48 bits wide (manual, "Performance Monitoring Counters").
pub(crate) const WIDTH_BITS: u8 = 48;

/// The driver of one CPU's PMU. What a group switch needs comes first, in two cache lines.
#[derive(Debug)]
#[repr(C)]
pub struct Amd<B: Bus> {
    /// Whether counters are enabled, by the global control or one by one.
    enabled: bool,
    /// Whether the session counts ring 0, and so the driver too.
    counts_kernel: bool,
    /// The slice timer's counter.
    timer: u8,
    /// Counters whose overflow is acknowledged: the timer's, and those that were preloaded.
    acknowledged: u8,
    /// All counters, those of others included, as a mask.
    counters: u8,
    /// Counters that are preloaded for thresholds, as a mask.
    armed: u8,
    features: Features,
    bus: CountingBus<B>,
    /// Without global registers the registers' enable bits follow [`Self::enabled`]; here they are
    /// set in any case.
    selects: Selects<FULL>,
}

impl<B: Bus> Amd<B> {
    /// Takes over the PMU of the CPU behind `bus`, and leaves it with no counter enabled.
    pub(crate) fn new(bus: B, features: Features) -> Result<Self, InitError> {
        let mut bus = CountingBus::new(bus);
        in_use::refuse(&mut bus, &features)?;
        in_use::thaw(&mut bus, &features);
        let mut driver = Amd {
            bus,
            features,
            counters: features.counters | features.reserved,
            selects: Selects::new(),
            enabled: false,
            timer: CYCLES,
            armed: 0,
            acknowledged: 0,
            counts_kernel: false,
        };
        if features.global {
            driver.bus.put(0, PerfCntrGlobalCtl::empty());
        }
        driver.refuse_if_not_writable()?;
        driver.acknowledge(driver.counters);
        if features.reserved != 0 && features.global {
            driver.control(driver.reserved());
        }
        Ok(driver)
    }

    fn refuse_if_not_writable(&mut self) -> Result<(), InitError> {
        for index in counters(self.counters) {
            let (select, count) = (PerfCtl::event(CYCLES_NOT_IN_HALT, 0), PerfCtr(0x1234));
            self.bus.put(index, select);
            if self.bus.get::<PerfCtl>(index) != select {
                return Err(InitError::NotWritable { register: PerfCtl::NAME, index });
            }
            self.bus.put(index, PerfCtl::empty());
            self.bus.put(index, count);
            if self.bus.get::<PerfCtr>(index) != count {
                return Err(InitError::NotWritable { register: PerfCtr::NAME, index });
            }
        }
        Ok(())
    }

    /// Writes a select, if it changes.
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

    /// The value in a select.
    fn held(&self, index: usize) -> PerfCtl {
        PerfCtl::from_bits_retain(self.selects.held()[index].0)
    }

    /// With global registers, disables all counters by one access before the first event changes;
    /// `enable` undoes it.
    #[inline(always)]
    fn disable_to_change(&mut self) {
        if self.features.global {
            self.disable();
        }
    }

    /// Clears overflow bits.
    fn acknowledge(&mut self, counters: u8) {
        if self.features.global {
            // One access: the status bit would stay set, and readers of the status would miss the
            // next overflow.
            let bits = PerfCntrGlobalStatusClr::from_bits_retain(u64::from(counters));
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

    /// The global control's value with all counters enabled.
    fn all(&self) -> PerfCntrGlobalCtl {
        PerfCntrGlobalCtl::from_bits_retain(self.counters.into())
    }

    /// The global control's value with the counters of others alone.
    fn reserved(&self) -> PerfCntrGlobalCtl {
        PerfCntrGlobalCtl::from_bits_retain(self.features.reserved.into())
    }

    /// Writes the global control.
    #[inline(always)]
    fn control(&mut self, counters: PerfCntrGlobalCtl) {
        self.bus.put(0, counters);
    }

    /// Enables all counters, or those of others alone: one access with global registers, else one
    /// for each counter that has an event.
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
        self.counts_kernel = setup.kernel;
        // Selects that this group does not use are cleared: its program must not read others'
        // counts.
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
        self.enable();
    }

    fn can_restore(&self) -> bool {
        true
    }

    fn restore(&mut self, group: &Group, mode: Mode, values: &Counts) {
        for index in counters(self.features.counters) {
            let at = usize::from(index);
            let (select, value) = match index {
                CYCLES => (always(CYCLES_NOT_IN_HALT, mode), values[Pinned::Cycles]),
                INSTRUCTIONS => (always(RETIRED_INSTRUCTIONS, mode), values[Pinned::Instructions]),
                _ if group.used >> index & 1 == 1 => {
                    (PerfCtl::from_bits_retain(group.selectors[at].0), values.general[at])
                }
                _ => (PerfCtl::empty(), 0),
            };
            self.select(at, select);
            self.bus.put(index, PerfCtr(value));
        }
        self.enable();
    }

    fn stop(&mut self) {
        self.disable();
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
        // To change events, with one access, or to keep the handler's own out of the session.
        if next.changed != 0 || self.counts_kernel {
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
            bus.put_uncounted_from::<PerfCtl>(index as u8, &wanted.0);
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
        let always = slot.checked_sub(PINNED_SLOT).and_then(|event| Pinned::ALL.get(event));
        let index = always.map_or(slot % MAX_GENERAL, |event| counter_of(*event).into());
        if index != usize::from(self.timer) {
            self.armed |= 1 << index;
            self.acknowledged |= 1 << index;
            self.select(index, self.held(index) | PerfCtl::INT);
        }
        let value = remaining.wrapping_neg() & self.widths().general;
        self.bus.put(index as u8, PerfCtr(value));
        value
    }

    fn disarm(&mut self) {
        for_each_counter(take(&mut self.armed), |index| {
            self.select(index, self.held(index).difference(PerfCtl::INT));
        });
    }

    fn widths(&self) -> Widths {
        Widths::of(WIDTH_BITS.into())
    }

    #[inline(always)]
    fn msr_accesses(&self) -> u64 {
        self.bus.msr_accesses
    }
}

/// Sets the timer's counter.
#[inline(always)]
fn reload<B: Bus>(bus: &mut CountingBus<B>, timer: u8, value: &u64) {
    // One access: no other counter is written.
    bus.put_from::<PerfCtr>(timer, value);
}

/// RDPMC's ECX for a pinned event's counter.
#[inline(always)]
pub(crate) fn rdpmc_pinned(event: Pinned) -> u32 {
    counter_of(event).into()
}

/// A pinned event's counter. (There is none for reference cycles.)
#[inline(always)]
fn counter_of(event: Pinned) -> u8 {
    if event == Pinned::Cycles { CYCLES } else { INSTRUCTIONS }
}

/// A pinned event's select.
fn always(code: u16, mode: Mode) -> PerfCtl {
    let mut select = PerfCtl::event(code, 0) | PerfCtl::EN;
    select.set(PerfCtl::USR, mode.user());
    select.set(PerfCtl::OS, mode.kernel());
    select
}
