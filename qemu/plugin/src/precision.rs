//! A vCPU's state for precise records and branch records.

use tally_model::Privilege;

use crate::timestamp::Timestamp;

/// A place where execution continues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Address in the address space that runs.
    pub(crate) pc: u64,
    /// Privilege.
    pub(crate) ring: Privilege,
}

/// State of a vCPU for precise records and branch records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Precision {
    /// Whether blocks need more than counting: either of the next two.
    pub(crate) is_watching: bool,
    /// Whether instructions are counted one by one.
    pub(crate) is_stepping: bool,
    /// Whether taken branches are recorded.
    pub(crate) is_recording: bool,
    /// Distance of the running block, and of the next one, from their addresses at translation.
    pub(crate) moved: u64,
    pub(crate) next_moved: u64,
    /// Privilege of the next block.
    pub(crate) next_ring: Privilege,
    /// The place that an interrupt or exception is about to interrupt.
    pub(crate) interrupted: Option<Place>,
    /// The guest's time-stamp counter, as it was read last.
    pub(crate) timestamp: Timestamp,
    /// Core cycles at the last retirement, while instructions are counted one by one.
    pub(crate) retired_at_cycles: u64,
}

impl Precision {
    /// The state at the start, but for the time-stamp counter.
    pub(crate) fn with(timestamp: Timestamp) -> Precision {
        Precision {
            is_watching: false,
            is_stepping: false,
            is_recording: false,
            moved: 0,
            next_moved: 0,
            next_ring: Privilege::Kernel,
            interrupted: None,
            timestamp,
            retired_at_cycles: 0,
        }
    }
}
