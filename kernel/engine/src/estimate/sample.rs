//! What an estimate is made from.

use crate::moments::{EventMoments, GroupMoments, ONE, PerBase};

/// All that is known of one event.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The event's slices.
    pub event: EventMoments,
    /// Its group's.
    pub group: GroupMoments,
    /// Slices in a round.
    pub round: u64,
    /// Slices of the session so far, of whatever group.
    pub slices: u64,
    /// Slices of the session since the group's last one.
    pub unseen: u64,
    /// Of each base, for as long as the session ran: counted all the time, so exact.
    pub totals: PerBase<u64>,
}

/// A sum that is in units of [`ONE`].
pub(super) fn in_ones(sum: u64) -> f64 {
    sum as f64 / ONE as f64
}
