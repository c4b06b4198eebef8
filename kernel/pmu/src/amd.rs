//! The driver for AMD's core counters: the core extension, with or without PerfMonV2.
//!
//! There are no fixed counters: counter 0 counts cycles and counter 1 instructions in every slice,
//! and one of the two is the slice timer, the only counter that interrupts; groups use the rest.
//! The timer is the only counter ever written.
//!
//! # Traps, and what is done about them
//! - A counter's event changes only while the counter is disabled, and another write enables it:
//!   the manual says that the first counts are not accurate otherwise ("Performance Monitoring
//!   Counters", note on PERF_CTL). PerfMonV2 does that for all at once with its global control;
//!   without it each changed counter costs two writes.
//! - The overflow is acknowledged after the reload, and the timer is reloaded only while it does not
//!   count; see the Intel driver.
//! - Whether the timer has overflowed is told by its own top bit, as in the Intel driver: without
//!   PerfMonV2 there is no status register at all.

use tally_engine::{
    Accesses, Counts, Group, MAX_GENERAL, Pmu, Selector, Set, Setup, Unit, Widths, counters,
};

use crate::{
    Bus, InitError,
    bus::Counted,
    registers::{
        Register,
        amd::{
            CYCLES_NOT_IN_HALT, PerfCntrGlobalCtl, PerfCntrGlobalStatusClr, PerfCtl, PerfCtr,
            RETIRED_INSTRUCTIONS,
        },
    },
};

const CYCLES: u8 = 0;
const INSTRUCTIONS: u8 = 1;
/// Counters that groups cannot use.
pub(crate) const ALWAYS: u8 = 1 << CYCLES | 1 << INSTRUCTIONS;
/// Counters are 48 bits wide (manual, "Performance Monitoring Counters").
pub(crate) const WIDTH_BITS: u8 = 48;

/// What CPUID says of an AMD PMU, as far as the driver cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// All counters, as a mask.
    pub(crate) counters: u8,
    /// Whether there are PerfMonV2's global registers.
    pub(crate) global: bool,
}

/// The driver of one CPU's PMU.
#[derive(Debug)]
pub struct Amd<B: Bus> {
    bus: Counted<B>,
    facts: Facts,
    /// What the event selects hold. Without global registers their enable bits come and go with
    /// [`Self::enabled`], and are set here all the same.
    selects: [PerfCtl; MAX_GENERAL],
    /// Whether counters are let count, by whichever way there is.
    enabled: bool,
    /// Which counter is the slice timer.
    timer: u8,
    /// Whether the session's events go on being counted in ring 0, and so in the driver too.
    counts_kernel: bool,
    counting: bool,
}

impl<B: Bus> Amd<B> {
    /// Takes over the PMU of the CPU that `bus` leads to, and leaves it with nothing counting.
    pub(crate) fn new(bus: B, facts: Facts) -> Result<Self, InitError> {
        let mut bus = Counted::new(bus);
        let global = match facts.global {
            true => bus.get::<PerfCntrGlobalCtl>(0).bits(),
            false => u64::MAX,
        };
        for index in counters(facts.counters).map(|index| index as u8) {
            let select: PerfCtl = bus.get(index);
            if select.contains(PerfCtl::EN) && global >> index & 1 == 1 {
                let (register, value) = (PerfCtl::NAME, select.bits());
                return Err(InitError::CounterInUse { register, index, value });
            }
        }
        let selects = [PerfCtl::empty(); MAX_GENERAL];
        let mut driver = Amd {
            bus,
            facts,
            selects,
            enabled: false,
            timer: CYCLES,
            counts_kernel: false,
            counting: false,
        };
        if facts.global {
            driver.bus.put(0, PerfCntrGlobalCtl::empty());
        }
        driver.refuse_if_not_writable()?;
        driver.acknowledge(facts.counters);
        Ok(driver)
    }

    fn refuse_if_not_writable(&mut self) -> Result<(), InitError> {
        for index in counters(self.facts.counters).map(|index| index as u8) {
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

    fn unit(&self) -> Unit {
        if self.timer == INSTRUCTIONS { Unit::Instructions } else { Unit::Cycles }
    }

    /// Writes the selects of `group` that are not in place. Those of counters that it does not use
    /// stay, as nobody reads what they count.
    #[inline]
    fn select(&mut self, group: &Group) {
        for index in counters(group.used & !ALWAYS & self.facts.counters) {
            let Selector(wanted) = group.selectors[index];
            self.put_select(index, PerfCtl::from_bits_retain(wanted));
        }
    }

    #[inline]
    fn put_select(&mut self, index: usize, wanted: PerfCtl) {
        if self.selects[index] == wanted {
            return;
        }
        // One access for each event that changes, and without global registers one more, as the
        // new event has to be in place, disabled, before it is enabled.
        if self.facts.global {
            // One access to disable all, before the first; `enable` makes up for it.
            self.disable();
            self.bus.put(index as u8, wanted);
        } else {
            self.bus.put(index as u8, wanted.difference(PerfCtl::EN));
            if self.enabled {
                self.bus.put(index as u8, wanted);
            }
        }
        self.selects[index] = wanted;
    }

    /// Sets the timer to overflow after `slice`.
    fn reload(&mut self, slice: u64) {
        let value = slice.wrapping_neg() & self.widths().always;
        // One access: the only counter that has to be written.
        self.bus.put(self.timer, PerfCtr(value));
    }

    /// Clears overflow bits.
    fn acknowledge(&mut self, counters: u8) {
        if self.facts.global {
            // One access: the status bit would stay set, and the next overflow go unseen by whoever
            // reads the status.
            let bits = PerfCntrGlobalStatusClr::from_bits_retain(u64::from(counters));
            self.bus.put(0, bits);
        }
    }

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

    /// Lets all counters count, or none: one access with global registers, else one for each counter
    /// that has an event.
    fn gate(&mut self) {
        if self.facts.global {
            let all = if self.enabled { u64::from(self.facts.counters) } else { 0 };
            self.bus.put(0, PerfCntrGlobalCtl::from_bits_retain(all));
            return;
        }
        for (index, select) in self.selects.iter().enumerate() {
            if !select.is_empty() {
                let off = if self.enabled { PerfCtl::empty() } else { PerfCtl::EN };
                self.bus.put(index as u8, select.difference(off));
            }
        }
    }
}

#[cfg(test)]
impl<B: Bus> Amd<B> {
    pub(crate) fn model(&mut self) -> &mut B {
        self.bus.inner()
    }
}

impl<B: Bus> Pmu for Amd<B> {
    fn start(&mut self, group: &Group, setup: &Setup, slice: u64) {
        self.timer = match setup.unit {
            Unit::Cycles => CYCLES,
            Unit::Instructions => INSTRUCTIONS,
        };
        self.counts_kernel = setup.mode.kernel();
        self.select(group);
        self.put_select(CYCLES.into(), always(CYCLES_NOT_IN_HALT, setup, Unit::Cycles));
        let instructions = always(RETIRED_INSTRUCTIONS, setup, Unit::Instructions);
        self.put_select(INSTRUCTIONS.into(), instructions);
        self.reload(slice);
        self.counting = true;
        self.enable();
    }

    fn stop(&mut self) {
        self.disable();
        self.counting = false;
        self.acknowledge(1 << self.timer);
    }

    #[inline]
    fn take_overflow(&mut self, counts: &mut Counts) -> bool {
        if !self.counting {
            return false;
        }
        if self.counts_kernel {
            // This handler's own events must not be the session's.
            self.disable();
        }
        let timer = self.bus.count(u32::from(self.timer));
        *counts.timer_mut(self.unit()) = timer;
        let overflowed = timer >> (WIDTH_BITS - 1) & 1 == 0;
        if !overflowed {
            self.enable();
        }
        overflowed
    }

    fn read(&mut self, set: Set) -> Counts {
        let mut counts = Counts::default();
        *counts.timer_mut(self.unit()) = self.bus.count(u32::from(self.timer));
        self.read_others(set, &mut counts);
        counts
    }

    #[inline]
    fn read_others(&mut self, set: Set, counts: &mut Counts) {
        if self.timer == CYCLES {
            counts.instructions = self.bus.count(u32::from(INSTRUCTIONS));
        } else {
            counts.cycles = self.bus.count(u32::from(CYCLES));
        }
        for index in counters(set.general & self.facts.counters & !ALWAYS) {
            counts.general[index] = self.bus.count(index as u32);
        }
    }

    #[inline]
    fn switch(&mut self, next: &Group, slice: u64) {
        self.select(next);
        self.reload(slice);
    }

    #[inline]
    fn release(&mut self) {
        self.acknowledge(1 << self.timer);
        self.enable();
    }

    fn widths(&self) -> Widths {
        let mask = (1 << WIDTH_BITS) - 1;
        Widths { always: mask, general: mask }
    }

    fn accesses(&self) -> Accesses {
        self.bus.accesses
    }
}

/// The select of an always-counted event; it interrupts if it is the slice timer.
fn always(code: u16, setup: &Setup, unit: Unit) -> PerfCtl {
    let mut select = PerfCtl::event(code, 0) | PerfCtl::EN;
    select.set(PerfCtl::USR, setup.mode.user());
    select.set(PerfCtl::OS, setup.mode.kernel());
    select.set(PerfCtl::INT, setup.unit == unit);
    select
}
