//! The features of an AMD PMU.

/// What CPUID says of an AMD PMU, as far as the driver needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Features {
    /// The driver's counters, as a mask.
    pub(crate) counters: u8,
    /// Counters that the driver leaves to others and never disables, as a mask.
    pub(crate) reserved: u8,
    /// Whether there are PerfMonV2's global registers.
    pub(crate) global: bool,
    /// Whether overflows can freeze them.
    pub(crate) freeze: bool,
}
