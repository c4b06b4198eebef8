//! Features of an AMD PMU.

/// Features of an AMD PMU that the driver needs, from CPUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Features {
    /// Mask of the driver's counters.
    pub(crate) counters: u16,
    /// Mask of counters that are reserved for others and that the driver never disables.
    pub(crate) reserved: u16,
    /// Whether the global registers of PerfMonV2 exist.
    pub(crate) global: bool,
    /// Number of records of branches; 0 without any that freeze on overflow.
    pub(crate) branches: u8,
    /// Whether the processor samples ops as the driver needs it (IBS).
    pub(crate) samples_ops: bool,
    /// Whether the processor can freeze counters on overflow.
    pub(crate) freeze: bool,
}
