//! The input of an estimate.

use crate::moments::{EventMoments, GroupMoments, ONE, PerBase};

/// Knowledge of one event.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Sums of the event's slices.
    pub event: EventMoments,
    /// Sums of its group's slices.
    pub group: GroupMoments,
    /// Slices in a round.
    pub round: u64,
    /// Slices of the session so far, of all groups.
    pub slices: u64,
    /// Slices of the session since the group's last one.
    pub unseen: u64,
    /// Totals of each base over the whole session: pinned, so exact.
    pub totals: PerBase<u64>,
}

/// Converts a sum in units of [`ONE`].
pub(super) fn in_ones(sum: u64) -> f64 {
    sum as f64 / ONE as f64
}
