//! The driver for Intel's architectural performance monitoring, versions 2 to 5.
//!
//! Fixed counters 0 (instructions), 1 (core cycles) and 2 (reference cycles) count in every slice;
//! 1, or 0 for slices of instructions, is the slice timer, the only counter that interrupts. The
//! timer is the only counter ever written: general counters run on through changes of event, and
//! differences are taken. So IA32_PERF_CAPABILITIES.FW_WRITE does not matter; and a reload of minus
//! at most 2³⁰, cut to the counter's width, means the same to a processor that takes the width and
//! to one that takes 32 bits and extends their sign.
//!
//! # Traps, and what is done about them
//! - The overflow is acknowledged after the reload: before it, the timer is past its overflow and
//!   nothing is lost, but a counter that still counted could set the bit again.
//! - A timer is reloaded only while it does not count. In user mode ring 0 counts nothing of the
//!   session's. In the other modes the overflow itself freezes all counters until it is
//!   acknowledged (version 4, "Streamlined Freeze PMI"); where it cannot, a write to the global
//!   control stops them and another lets them go.
//! - Freezing loses what happens from the overflow to the interrupt (the skid); not freezing counts
//!   the way into the interrupt handler. So user mode, which the handler is not part of, does not
//!   freeze and is exact, and the other modes do, as the skid is the shorter: `bench switch`
//!   measures both.
//! - Whether the timer has overflowed is told by its own top bit, which the reload sets and the
//!   overflow clears: an RDPMC, where IA32_PERF_GLOBAL_STATUS would be a far slower RDMSR. The
//!   interrupt comes some instructions late (skid), so at that point the top bit is always clear.
//! - WRMSR to these registers waits for what came before, so no event of the old group is counted
//!   under the new selector.

use tally_engine::{
    Accesses, Counts, Group, MAX_GENERAL, Pmu, Selector, Set, Setup, Unit, Widths, counters,
};

use crate::{
    Bus, InitError,
    bus::Counted,
    registers::{
        Register,
        intel::{
            DebugCtl, FixedCtr, FixedCtrCtrl, PerfEvtSel, PerfGlobalCtrl, PerfGlobalOvfCtrl,
            RDPMC_FIXED,
        },
    },
};

const INSTRUCTIONS: u8 = 0;
const CYCLES: u8 = 1;
const REFERENCE: u8 = 2;

/// What CPUID says of an Intel PMU, as far as the driver cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// General counters, as a mask.
    pub(crate) general: u8,
    /// Whether fixed counter 2 is there.
    pub(crate) reference: bool,
    /// Whether an overflow interrupt can freeze all counters, from version 4 on.
    pub(crate) freeze: bool,
    pub(crate) widths: Widths,
}

/// The driver of one CPU's PMU.
#[derive(Debug)]
pub struct Intel<B: Bus> {
    bus: Counted<B>,
    facts: Facts,
    /// What the event selects hold.
    selectors: [Selector; MAX_GENERAL],
    /// What IA32_FIXED_CTR_CTRL holds.
    fixed: FixedCtrCtrl,
    /// Which fixed counter is the slice timer.
    timer: u8,
    /// Whether the session's events go on being counted in ring 0, and so in the driver too.
    counts_kernel: bool,
    /// Whether an overflow freezes the counters.
    freezes: bool,
    counting: bool,
}

impl<B: Bus> Intel<B> {
    /// Takes over the PMU of the CPU that `bus` leads to, and leaves it with nothing counting.
    pub(crate) fn new(bus: B, facts: Facts) -> Result<Self, InitError> {
        let mut bus = Counted::new(bus);
        refuse_if_in_use(&mut bus, &facts)?;
        bus.put(0, PerfGlobalCtrl::empty());
        bus.put(0, FixedCtrCtrl::empty());
        let mut driver = Intel {
            bus,
            facts,
            selectors: Default::default(),
            fixed: FixedCtrCtrl::empty(),
            timer: CYCLES,
            counts_kernel: false,
            freezes: false,
            counting: false,
        };
        for index in counters(facts.general) {
            driver.bus.put(index as u8, PerfEvtSel::empty());
        }
        driver.bus.put(0, driver.all_overflows());
        driver.refuse_if_not_writable()?;
        Ok(driver)
    }

    fn refuse_if_not_writable(&mut self) -> Result<(), InitError> {
        let probe = FixedCtr(0x1234);
        self.bus.put(CYCLES, probe);
        if self.bus.get::<FixedCtr>(CYCLES) != probe {
            return Err(InitError::NotWritable { register: FixedCtr::NAME, index: CYCLES });
        }
        let probe = PerfEvtSel::event(0x3c, 0);
        for index in counters(self.facts.general).map(|index| index as u8) {
            self.bus.put(index, probe);
            if self.bus.get::<PerfEvtSel>(index) != probe {
                return Err(InitError::NotWritable { register: PerfEvtSel::NAME, index });
            }
            self.bus.put(index, PerfEvtSel::empty());
        }
        Ok(())
    }

    fn all_overflows(&self) -> PerfGlobalOvfCtrl {
        PerfGlobalOvfCtrl::from_bits_retain(self.enabled().bits()) | self.frozen()
    }

    /// What acknowledges a freeze too, where there is one.
    fn frozen(&self) -> PerfGlobalOvfCtrl {
        match self.freezes {
            true => PerfGlobalOvfCtrl::CTR_FRZ,
            false => PerfGlobalOvfCtrl::empty(),
        }
    }

    /// Whether the overflow path has to stop the session's counting by itself.
    fn must_stop(&self) -> bool {
        self.counts_kernel && !self.freezes
    }

    /// Lets overflows freeze the counters, or not.
    fn set_freeze(&mut self, freezes: bool) {
        if self.freezes != freezes {
            let mut debug: DebugCtl = self.bus.get(0);
            debug.set(DebugCtl::FREEZE_PERFMON_ON_PMI, freezes);
            self.bus.put(0, debug);
            self.freezes = freezes;
        }
    }

    /// All counters that there are: one without a selector of its own counts nothing that is read.
    fn enabled(&self) -> PerfGlobalCtrl {
        let fixed = PerfGlobalCtrl::FIXED0 | PerfGlobalCtrl::FIXED1;
        let third =
            if self.facts.reference { PerfGlobalCtrl::FIXED2 } else { PerfGlobalCtrl::empty() };
        PerfGlobalCtrl::from_bits_retain(u64::from(self.facts.general)) | fixed | third
    }

    fn unit(&self) -> Unit {
        if self.timer == INSTRUCTIONS { Unit::Instructions } else { Unit::Cycles }
    }

    fn fixed_for(&self, setup: &Setup) -> FixedCtrCtrl {
        let mut one = 0;
        if setup.mode.kernel() {
            one |= FixedCtrCtrl::OS0.bits();
        }
        if setup.mode.user() {
            one |= FixedCtrCtrl::USR0.bits();
        }
        let third = if self.facts.reference { one << 8 } else { 0 };
        let timer = match setup.unit {
            Unit::Cycles => FixedCtrCtrl::PMI1,
            Unit::Instructions => FixedCtrCtrl::PMI0,
        };
        FixedCtrCtrl::from_bits_retain(one | one << 4 | third) | timer
    }

    /// Writes the selectors of `group` that are not in place; those of counters that it does not
    /// use stay, as nobody reads what they count.
    #[inline]
    fn select(&mut self, group: &Group) {
        for index in counters(group.used) {
            let wanted = group.selectors[index];
            if self.selectors[index] != wanted {
                // One access for each event that changes: there is no cheaper way to change it.
                self.bus.put(index as u8, PerfEvtSel::from_bits_retain(wanted.0));
                self.selectors[index] = wanted;
            }
        }
    }

    /// Sets the timer to overflow after `slice`.
    fn reload(&mut self, slice: u64) {
        let value = slice.wrapping_neg() & self.facts.widths.always;
        // One access: the only counter that has to be written.
        self.bus.put(self.timer, FixedCtr(value));
    }

    /// Clears the timer's bit in the overflow status, and thaws what the overflow froze.
    fn acknowledge(&mut self) {
        let bit = PerfGlobalOvfCtrl::FIXED0.bits() << self.timer | self.frozen().bits();
        // One access: processors that freeze on a set bit, and whoever reads the status after us,
        // need it clear.
        self.bus.put(0, PerfGlobalOvfCtrl::from_bits_retain(bit));
    }

    fn enable(&mut self) {
        self.bus.put(0, self.enabled());
    }

    fn disable(&mut self) {
        self.bus.put(0, PerfGlobalCtrl::empty());
    }
}

#[cfg(test)]
impl<B: Bus> Intel<B> {
    pub(crate) fn model(&mut self) -> &mut B {
        self.bus.inner()
    }
}

impl<B: Bus> Pmu for Intel<B> {
    fn start(&mut self, group: &Group, setup: &Setup, slice: u64) {
        self.timer = match setup.unit {
            Unit::Cycles => CYCLES,
            Unit::Instructions => INSTRUCTIONS,
        };
        self.counts_kernel = setup.mode.kernel();
        self.set_freeze(self.counts_kernel && self.facts.freeze);
        self.select(group);
        let fixed = self.fixed_for(setup);
        if fixed != self.fixed {
            self.bus.put(0, fixed);
            self.fixed = fixed;
        }
        self.reload(slice);
        self.counting = true;
        self.enable();
    }

    fn stop(&mut self) {
        self.disable();
        self.counting = false;
        self.acknowledge();
    }

    #[inline]
    fn take_overflow(&mut self, counts: &mut Counts) -> bool {
        if !self.counting {
            return false;
        }
        if self.must_stop() {
            // One access: this handler's own events must not be the session's.
            self.disable();
        }
        let timer = self.bus.count(RDPMC_FIXED | u32::from(self.timer));
        *counts.timer_mut(self.unit()) = timer;
        let top = self.facts.widths.always ^ self.facts.widths.always >> 1;
        let overflowed = timer & top == 0;
        if !overflowed && self.must_stop() {
            self.enable();
        }
        overflowed
    }

    fn read(&mut self, set: Set) -> Counts {
        let mut counts = Counts::default();
        *counts.timer_mut(self.unit()) = self.bus.count(RDPMC_FIXED | u32::from(self.timer));
        self.read_others(set, &mut counts);
        counts
    }

    #[inline]
    fn read_others(&mut self, set: Set, counts: &mut Counts) {
        if self.timer == CYCLES {
            counts.instructions = self.bus.count(RDPMC_FIXED | u32::from(INSTRUCTIONS));
        } else {
            counts.cycles = self.bus.count(RDPMC_FIXED | u32::from(CYCLES));
        }
        if set.reference {
            counts.reference = self.bus.count(RDPMC_FIXED | u32::from(REFERENCE));
        }
        for index in counters(set.general) {
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
        self.acknowledge();
        if self.must_stop() {
            // One access, the last: from here on the session's events are counted again.
            self.enable();
        }
    }

    fn widths(&self) -> Widths {
        self.facts.widths
    }

    fn accesses(&self) -> Accesses {
        self.bus.accesses
    }
}

/// A counter is in use if its own control and the global one both enable it. The global one alone
/// means nothing: its bits for general counters are set after reset.
fn refuse_if_in_use<B: Bus>(bus: &mut Counted<B>, facts: &Facts) -> Result<(), InitError> {
    let global: PerfGlobalCtrl = bus.get(0);
    for index in counters(facts.general).map(|index| index as u8) {
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
