//! The errors of the values in a bank.

use tally_abi::bank::{counter, value};

use super::{Bank, GroupCounts};
use crate::estimate::Uncertainty;

impl Bank {
    /// Returns whether half widths are due ([`Refresh::is_due`]); exact values have none.
    #[inline]
    pub(crate) fn errors_are_due(&self, slices: u64) -> bool {
        !self.exact && self.refresh.is_due(slices)
    }

    /// The members whose half widths are to be published now; see [`Refresh::take`].
    pub(crate) fn due(
        &mut self,
        calls: usize,
        slices: u64,
        round: u64,
    ) -> impl Iterator<Item = usize> + use<> {
        let members = if self.exact { 0 } else { self.members.len() };
        let turns = self.refresh.take(members, calls, slices, round);
        turns.map(move |index| index % members)
    }

    /// The event of the member with this index.
    pub(crate) fn event(&self, member: usize) -> Option<usize> {
        self.members.get(member).map(|member| member.event.into())
    }

    /// Publishes that the errors of these events' values are unknown.
    pub(crate) fn withdraw_errors(&mut self, events: impl Iterator<Item = usize>) {
        self.write(|bank| {
            for event in events {
                bank.put_counter(event, counter::HALF_WIDTH, f64::NAN.to_bits());
            }
        });
    }

    /// Publishes the error of a member's estimate and the basis of its later estimates. Uses
    /// floating point: never in the overflow path.
    pub(crate) fn publish_error(&mut self, index: usize, error: &Uncertainty, counts: GroupCounts) {
        let Some(member) = self.members.get(index) else { return };
        let (event, before) = (usize::from(member.event), member.base);
        // Up to now readers computed with the old basis.
        let seen = value(counts.total[before.event()], member.rate);
        let basis = self.pinned_basis(error.base.event());
        self.write(|bank| {
            bank.raise_max(event, seen);
            if let Some(member) = bank.members.get_mut(index).filter(|_| before != error.base) {
                (member.base, member.rate) = (error.base, 0);
                bank.put_counter(event, counter::ASSIGNMENT, basis);
            }
            bank.put_counts(index, counts, &mut [None; 2]);
            let at = counts.total[error.base.event()];
            bank.put_counter(event, counter::HALF_WIDTH, error.half_width_95.to_bits());
            bank.put_counter(event, counter::HALF_WIDTH_AT, at);
            let rate = bank.members.get(index).map_or(0, |member| member.rate);
            bank.put_counter(event, counter::RATE_AT, rate);
            bank.put_counter(event, counter::SLICES_AT, counts.moments.slices);
            bank.put_counter(event, counter::DRIFT, error.drift_95.to_bits());
            bank.put_counter(event, counter::SHARE, error.share.to_bits());
        });
    }
}
