//! When the half widths in a bank are published anew.

use core::ops::Range;

/// Every half width is published anew before a session has this part of its slices more: the width
/// changes by that order then, and the cost of all publications grows as the logarithm of the
/// slices.
const REFRESH: u64 = 8;

/// Members take turns.
#[derive(Debug, Default)]
pub(super) struct Refresh {
    /// The member whose half width is published next.
    next: usize,
    /// The number of the session's slices with which the next half widths are due.
    due_at: u64,
}

impl Refresh {
    /// Whether half widths are to be published, of a session that has had `slices`.
    #[inline]
    pub(super) fn is_due(&self, slices: u64) -> bool {
        slices >= self.due_at
    }

    /// The indices, modulo `members`, of the members whose turn it is: a part of 1 / `calls` of
    /// all. The next part is due when the session, whose rounds have `round` slices, has had more
    /// than `slices`.
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
