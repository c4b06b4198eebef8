//! Schedule of the publication of half widths.

use core::ops::Range;

/// All half widths are published again before a session has had this fraction of its slices more
/// (one in so many): until then a width changes by no more than that order, and the cost of all
/// publications grows as the logarithm of the slices.
const REFRESH: u64 = 8;

/// The members' turns for publication.
#[derive(Debug, Default)]
pub(super) struct Refresh {
    /// The member whose half width is published next.
    next: usize,
    /// Number of the session's slices at which the next half widths are due.
    due_at: u64,
}

impl Refresh {
    /// Returns whether half widths are due after `slices` slices of the session.
    #[inline]
    pub(super) fn is_due(&self, slices: u64) -> bool {
        slices >= self.due_at
    }

    /// The indices, modulo `members`, of the members whose turn it is: 1 / `calls` of all. The next
    /// part is due when the session, whose rounds have `round` slices, has had more than `slices`.
    pub(super) fn take(
        &mut self,
        members: usize,
        calls: usize,
        slices: u64,
        round: u64,
    ) -> Range<usize> {
        let (first, calls) = (self.next, calls.max(1));
        let end = first + members.div_ceil(calls);
        self.next = end.checked_rem(members).unwrap_or_default();
        let all_within = round + slices / REFRESH;
        self.due_at = slices + (all_within / calls as u64).max(1);
        first..end
    }
}
