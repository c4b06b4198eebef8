//! One driver type over both vendors', and what can go wrong when one is made.

use core::fmt;

use tally_abi::Mode;
use tally_engine::{CounterMask, Counts, Group, MAX_GENERAL, Pmu, Setup, Widths};

use crate::{Amd, Bus, Intel};

/// One CPU's PMU, whoever made it.
#[derive(Debug)]
pub enum Driver<B: Bus> {
    /// Intel architectural performance monitoring.
    Intel(Intel<B>),
    /// AMD core counters.
    Amd(Amd<B>),
}

/// Why a CPU's PMU cannot be used though CPUID shows one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitError {
    /// A counter is enabled: firmware or a hypervisor uses it.
    CounterInUse {
        /// The register that says so.
        register: &'static str,
        /// Its index in its row.
        index: u8,
        /// Its value.
        value: u64,
    },
    /// A write had no effect: whoever runs this machine keeps the counter for himself.
    NotWritable {
        /// The register.
        register: &'static str,
        /// Its index in its row.
        index: u8,
    },
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InitError::CounterInUse { register, index, value } => write!(
                f,
                "{register}{index} is {value:#x}: firmware or a hypervisor is using that counter; \
                 turn its use of performance counters off"
            ),
            InitError::NotWritable { register, index } => write!(
                f,
                "{register}{index} does not keep what is written to it: the hypervisor shows a PMU \
                 but keeps it; pass the PMU through, or run under the virtual PMU"
            ),
        }
    }
}

macro_rules! either {
    ($self:ident, $driver:ident => $call:expr) => {
        match $self {
            Driver::Intel($driver) => $call,
            Driver::Amd($driver) => $call,
        }
    };
}

impl<B: Bus> Pmu for Driver<B> {
    fn program(&mut self, group: &Group, setup: &Setup, slice: u64) {
        either!(self, driver => driver.program(group, setup, slice));
    }

    fn enable(&mut self) {
        either!(self, driver => driver.enable());
    }

    fn can_restore(&self) -> bool {
        either!(self, driver => driver.can_restore())
    }

    fn restore(&mut self, group: &Group, mode: Mode, values: &Counts) {
        either!(self, driver => driver.restore(group, mode, values));
    }

    fn stop(&mut self) {
        either!(self, driver => driver.stop());
    }

    fn is_counting(&mut self) -> bool {
        either!(self, driver => driver.is_counting())
    }

    fn scrub(&mut self) {
        either!(self, driver => driver.scrub());
    }

    fn read(&mut self, set: CounterMask) -> Counts {
        either!(self, driver => driver.read(set))
    }

    #[inline(always)]
    fn prepare(&mut self, set: CounterMask, next: &Group, slice: u64) {
        either!(self, driver => driver.prepare(set, next, slice));
    }

    #[inline(always)]
    fn switch(&mut self, counts: &mut Counts) -> bool {
        either!(self, driver => driver.switch(counts))
    }

    #[inline(always)]
    fn ack_and_resume(&mut self) {
        either!(self, driver => driver.ack_and_resume());
    }

    fn preload(&mut self, slot: usize, remaining: u64) -> u64 {
        either!(self, driver => driver.preload(slot, remaining))
    }

    fn disarm(&mut self) {
        either!(self, driver => driver.disarm());
    }

    fn widths(&self) -> Widths {
        either!(self, driver => driver.widths())
    }

    #[inline(always)]
    fn msr_accesses(&self) -> u64 {
        either!(self, driver => driver.msr_accesses())
    }
}

/// The counters in a mask, by their hardware indices. Not for the overflow path, which has
/// [`tally_engine::for_each_counter`].
pub(crate) fn counters(mask: u8) -> impl Iterator<Item = u8> {
    (0..MAX_GENERAL as u8).filter(move |index| mask >> index & 1 == 1)
}

#[cfg(test)]
mod tests;
