//! The contexts of sessions on this CPU, while no program runs that they join.

use crate::measure::slot::Contexts;

/// The contexts.
#[derive(Default)]
pub(super) struct OfCpu {
    /// Those of sessions that are started, while no program runs.
    pub(super) waiting: Contexts,
    /// The changes of what is wanted that this CPU has seen.
    pub(super) seen: u64,
}
