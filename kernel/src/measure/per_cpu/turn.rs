//! The state of turns: whose turn it is, and since when.

use tally_engine::{Counts, Turns};

use crate::measure::settings::seed;

/// The turn of the session on the counters.
pub(super) struct Turn {
    pub(super) turns: Turns,
    /// The session whose turn it is.
    pub(super) session: u32,
    /// Since when, and what had passed for the session, if it is on the counters.
    pub(super) began: Option<(u64, Counts)>,
    /// The slices that the session had had.
    pub(super) slices: u64,
}

impl Turn {
    pub(super) fn new(cpu: u16) -> Turn {
        let turns = Turns::new(seed(), cpu.into());
        Turn { turns, session: 0, began: None, slices: 0 }
    }
}
