//! The phases of a session so far.

use tally_abi::PhaseState;

use crate::phase::Tracker;

/// The phases of a session so far.
#[derive(Debug)]
pub(super) struct Tracked {
    /// Divides slices into intervals.
    pub(super) tracker: Tracker,
    /// State of the last evaluated interval.
    pub(super) state: PhaseState,
    /// Whether a change was found and not taken yet.
    pub(super) pending: bool,
}
