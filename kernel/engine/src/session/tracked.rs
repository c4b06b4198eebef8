//! The phases of a session so far.

use tally_abi::PhaseState;

use crate::phase::Tracker;

/// The phases of a session so far.
#[derive(Debug)]
pub(super) struct Tracked {
    /// Makes intervals of slices.
    pub(super) tracker: Tracker,
    /// What the last interval that was evaluated said.
    pub(super) state: PhaseState,
    /// Whether a change was found that was not taken.
    pub(super) pending: bool,
}
