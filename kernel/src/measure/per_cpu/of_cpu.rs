//! Contexts of CPU-wide sessions while this CPU is idle.

use crate::measure::slot::Contexts;

/// The contexts.
#[derive(Default)]
pub(super) struct OfCpu {
    /// Contexts of started sessions, while no program runs.
    pub(super) waiting: Contexts,
    /// Number of changes of the requested state that this CPU has seen.
    pub(super) seen: u64,
}
