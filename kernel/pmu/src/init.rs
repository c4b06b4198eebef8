//! Making a driver: what both vendors' share, and what can go wrong.

use core::fmt;

use tally_engine::MAX_GENERAL;

/// Why a CPU's PMU cannot be used although CPUID shows one.
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
    /// A write had no effect: a hypervisor keeps the counter.
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
                "{register}{index} is {value:#x}: firmware or a hypervisor uses that counter; turn its \
                 use of performance counters off"
            ),
            InitError::NotWritable { register, index } => write!(
                f,
                "{register}{index} ignores writes: the hypervisor shows a PMU but keeps it; pass the PMU \
                 through, or run under the virtual PMU"
            ),
        }
    }
}

/// The counters in a mask, by their hardware indices. Not for the overflow path, which has
/// [`tally_engine::for_each_counter`].
pub(crate) fn counters(mask: u8) -> impl Iterator<Item = u8> {
    (0..MAX_GENERAL as u8).filter(move |index| mask >> index & 1 == 1)
}
