//! The state of turns: whose turn it is, and its start.

use tally_engine::{Passed, Turns};

use crate::measure::settings::seed;

/// The turn of the session on the counters.
pub(super) struct Turn {
    pub(super) turns: Turns,
    /// Number of the session whose turn it is.
    pub(super) session: u32,
    /// Start of the turn, and the session's passed counts then, if it is on the counters.
    pub(super) began: Option<(u64, Passed)>,
    /// Slices of the session at the start of the turn.
    pub(super) slices: u64,
}

impl Turn {
    pub(super) fn new(cpu: u16) -> Turn {
        let turns = Turns::new(seed(), cpu.into());
        Turn { turns, session: 0, began: None, slices: 0 }
    }
}
