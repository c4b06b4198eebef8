//! Initialization of a driver: the part common to both vendors, and the errors.

use core::fmt;

use tally_engine::{MAX_GENERAL, Pinned};

/// Reason why a CPU's PMU cannot be used although CPUID reports one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitError {
    /// A counter is enabled, and the command line says not to take it over.
    CounterInUse(ControlValue),
    /// A control has a value that the driver has not written: firmware or a hypervisor uses it.
    WrittenByOthers(ControlValue),
    /// An access to a register faults, though CPUID reports the PMU that has it.
    Missing {
        /// Name of the register, or of its row of registers.
        register: &'static str,
    },
    /// A write had no effect: firmware or a hypervisor keeps the counter.
    NotWritable {
        /// Name of the register.
        register: &'static str,
        /// Index in its row of registers.
        index: u8,
    },
    /// A counter accepts writes but does not count: a hypervisor's host uses it.
    StandsStill {
        /// The counter.
        counter: CounterName,
        /// Count of its event during the loop of the check.
        counted: u64,
        /// Lower bound of the events that happened.
        least: u64,
    },
    /// A counter does not wrap at the width that CPUID reports.
    WrongWidth {
        /// The counter.
        counter: CounterName,
    },
    /// A counter continues to count after it was disabled.
    DoesNotStop {
        /// The counter.
        counter: CounterName,
    },
    /// A counter overflowed, and no interrupt was raised.
    NoInterrupt,
    /// Instructions in ring 3 are miscounted.
    Miscounts {
        /// Number of instructions that were counted.
        counted: u64,
        /// Number of instructions that retired.
        retired: u64,
    },
}

/// A control of counters, with the value that others wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlValue {
    /// Name of the register, or of its row of registers.
    pub register: &'static str,
    /// Index in the row, if it is one.
    pub index: Option<u8>,
    /// Value of the register.
    pub value: u64,
    /// Value of IA32_PERF_GLOBAL_INUSE, if it was read.
    pub in_use: Option<u64>,
}

impl fmt::Display for ControlValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.register)?;
        self.index.map_or(Ok(()), |index| write!(f, "{index}"))?;
        write!(f, " is {:#x}", self.value)?;
        let in_use = |all| write!(f, " (IA32_PERF_GLOBAL_INUSE {all:#x})");
        self.in_use.map_or(Ok(()), in_use)
    }
}

/// Name of a counter in messages for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterName {
    /// General counter with this hardware index.
    General(u8),
    /// Counter of a pinned event.
    Pinned(Pinned),
}

impl fmt::Display for CounterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CounterName::General(index) => return write!(f, "general counter {index}"),
            CounterName::Pinned(Pinned::Instructions) => "the counter of instructions",
            CounterName::Pinned(Pinned::Cycles) => "the counter of cycles",
            CounterName::Pinned(Pinned::Reference) => "the counter of reference cycles",
        })
    }
}

impl InitError {
    /// The end of the message: what this means, and what to do.
    fn remedy(&self) -> &'static str {
        match self {
            InitError::CounterInUse(_) => {
                ": firmware or a hypervisor left a counter on; turn its use of performance counters \
                 off, or boot with pmu=take"
            }
            InitError::WrittenByOthers(_) => {
                ", and Tally wrote another value: firmware or a hypervisor uses that counter; turn \
                 its use of performance counters off"
            }
            InitError::Missing { .. } => {
                ": a hypervisor hides it; update the hypervisor, or pass the PMU through"
            }
            InitError::NotWritable { .. } => {
                ": firmware or a hypervisor keeps that counter, or all of them; turn its use of \
                 performance counters off, or pass the PMU through"
            }
            InitError::StandsStill { .. } => {
                ": under a hypervisor, the host uses it; turn off the host's NMI watchdog (sysctl \
                 kernel.nmi_watchdog=0) and count nothing there"
            }
            InitError::WrongWidth { .. } => "; update the firmware, or the hypervisor",
            InitError::DoesNotStop { .. } => {
                ": firmware or a hypervisor uses it; turn its use of performance counters off"
            }
            InitError::NoInterrupt => {
                ": groups could not be switched; under a hypervisor, update it or pass the local \
                 APIC's performance interrupt through"
            }
            InitError::Miscounts { .. } => {
                "; under a hypervisor, update it, or run under the virtual PMU"
            }
        }
    }
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InitError::CounterInUse(control) | InitError::WrittenByOthers(control) => {
                write!(f, "{control}")
            }
            InitError::Missing { register } => write!(f, "an access to {register} faults"),
            InitError::NotWritable { register, index } => {
                write!(f, "{register}{index} ignores writes")
            }
            InitError::StandsStill { counter, counted, least } => {
                write!(f, "{counter} counted {counted} of at least {least} events of a loop")
            }
            InitError::WrongWidth { counter } => {
                write!(f, "{counter} does not wrap at the width that CPUID says")
            }
            InitError::DoesNotStop { counter } => {
                write!(f, "{counter} counts on after it was disabled")
            }
            InitError::NoInterrupt => f.write_str("a counter overflowed and raised no interrupt"),
            InitError::Miscounts { counted, retired } => write!(
                f,
                "the counter of instructions counted {counted} in ring 3, where {retired} retired"
            ),
        }?;
        f.write_str(self.remedy())
    }
}

/// The counters in a mask, by their hardware indices. Not for the overflow path, which has
/// [`tally_engine::for_each_counter`].
pub(crate) fn counters(mask: u16) -> impl DoubleEndedIterator<Item = u8> {
    (0..MAX_GENERAL as u8).filter(move |index| mask >> index & 1 == 1)
}
