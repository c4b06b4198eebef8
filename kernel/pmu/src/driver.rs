//! One driver type over both vendors', and what can go wrong when one is made.

use core::fmt;

use tally_engine::{Accesses, Counts, Group, Pmu, Set, Setup, Widths};

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
    fn start(&mut self, group: &Group, setup: &Setup, slice: u64) {
        either!(self, driver => driver.start(group, setup, slice));
    }

    fn stop(&mut self) {
        either!(self, driver => driver.stop());
    }

    fn take_overflow(&mut self, counts: &mut Counts) -> bool {
        either!(self, driver => driver.take_overflow(counts))
    }

    fn read(&mut self, set: Set) -> Counts {
        either!(self, driver => driver.read(set))
    }

    fn read_others(&mut self, set: Set, counts: &mut Counts) {
        either!(self, driver => driver.read_others(set, counts));
    }

    fn switch(&mut self, next: &Group, slice: u64) {
        either!(self, driver => driver.switch(next, slice));
    }

    fn release(&mut self) {
        either!(self, driver => driver.release());
    }

    fn widths(&self) -> Widths {
        either!(self, driver => driver.widths())
    }

    fn accesses(&self) -> Accesses {
        either!(self, driver => driver.accesses())
    }
}

#[cfg(test)]
mod tests;
