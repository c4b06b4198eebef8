//! A vCPU's state for precise records.

use crate::timestamp::Timestamp;

/// State of a vCPU for precise records.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Precision {
    /// Whether instructions are counted one by one.
    pub(crate) is_stepping: bool,
    /// Distance of the running block, and of the next one, from their addresses at translation.
    pub(crate) moved: u64,
    pub(crate) next_moved: u64,
    /// The guest's time-stamp counter, as it was read last.
    pub(crate) timestamp: Timestamp,
}
