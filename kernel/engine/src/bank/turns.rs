//! The bank while other sessions of the program have their turns on the counters.

use super::{Bank, GroupCounts};
use crate::{Counts, Pinned, plan::Plan};

impl Bank {
    /// Counts of the pinned events while the program had stopped its counters.
    pub(crate) fn deducted(&self) -> Counts {
        self.control.deducted()
    }

    /// See [`Session::note_start`](crate::Session::note_start).
    pub(crate) fn forget_stop(&mut self) {
        self.control.forget_stop();
    }

    /// The nearest threshold of a pinned event, samples aside.
    pub(crate) fn nearest(&self, pinned: Pinned) -> Option<u64> {
        self.thresholds.nearest(pinned)
    }

    /// Puts off the samples of pinned events by what `passed` while the session was on no counter.
    pub(crate) fn put_off_samples(&mut self, passed: &Counts) {
        self.thresholds.put_off(passed);
    }

    /// Publishes the counts of the pinned events of a session that is on no counter.
    pub(crate) fn publish_totals(&mut self, total: &Counts, tsc: u64) {
        self.write(|bank| bank.put_totals(total, tsc));
    }

    /// Switches from exact values to estimates: its events are no longer on counters all the time.
    /// `counts` are those of the one group so far.
    #[cold]
    pub(crate) fn begin_estimates(&mut self, plan: &Plan, counts: GroupCounts) {
        if !core::mem::take(&mut self.exact) {
            return;
        }
        self.write(|bank| {
            for index in bank.members.of_group(0) {
                let Some(member) = bank.members.get_mut(index) else { continue };
                let (event, seen) = (usize::from(member.event), counts.events(member.counter));
                bank.raise_max(event, seen);
                if let Some(assigned) = plan.assignments.get(event) {
                    bank.put_basis(event, *assigned, &|_| 0);
                }
                bank.put_counts(index, counts, &mut [None; 2]);
            }
        });
    }
}
