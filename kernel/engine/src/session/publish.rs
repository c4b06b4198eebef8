//! A session's side of the logical counter bank, which its program reads while it runs.

use alloc::boxed::Box;

use tally_abi::{Slice, bank::PINNED_SLOT};

use super::state::{CurrentSlice, Session, SliceStart, Timestamp};
use crate::{
    CounterMask, Counts, MAX_PRELOAD, Sink,
    bank::{Bank, GroupCounts, Page, PreloadPlan},
    estimate,
    moments::GroupMoments,
    plan::CounterAssignment,
    setup::MOST_PER_CYCLE,
};

/// Minimum distance of a threshold if ring 0 is counted: more than the overflow path's exit, in
/// which an overflow would be lost.
const LEAST_IN_KERNEL: u64 = 1_000;
/// Minimum distance of a sample in that case: the program must make progress between two samples,
/// and the overflow path takes some 2,000 instructions.
const LEAST_SAMPLE_IN_KERNEL: u64 = 20_000;

impl Session {
    /// Maps a bank: the program reads its logical counters in `pages`, which hold zeros, and starts
    /// and stops them in `writable`. `rdpmc` returns RDPMC's ECX for an assignment. Returns whether
    /// the pages are enough ([`tally_abi::bank::bytes`]).
    pub fn map_bank(
        &mut self,
        writable: &'static Page,
        pages: Box<[&'static Page]>,
        rdpmc: impl Fn(CounterAssignment) -> u32,
    ) -> bool {
        self.unmap_bank();
        self.bank = Bank::new((self.id, self.seed), writable, pages, &self.plan, rdpmc);
        // The bank gives pinned events no error for the skew, so their errors are withdrawn; a
        // system call returns them.
        let moved = (0..self.events()).filter(|event| self.skew.moves(*event));
        self.bank.iter_mut().for_each(|bank| bank.withdraw_errors(moved.clone()));
        self.note_folding();
        self.bank.is_some()
    }

    /// Makes the bank readable by another program, on any CPU, which sees the counts up to the last
    /// publication. Call it right after [`Self::map_bank`].
    pub fn make_bank_remote(&mut self, session: u32) {
        self.bank.iter_mut().for_each(|bank| bank.make_remote(session));
    }

    /// Unmaps the bank: the program no longer reads its logical counters.
    pub fn unmap_bank(&mut self) {
        self.beside.deducted = self.deducted();
        self.bank = None;
        self.note_folding();
    }

    /// Returns whether the program reads its logical counters, and may use RDPMC.
    pub fn has_bank(&self) -> bool {
        self.bank.is_some()
    }

    /// Returns whether the program stopped counting, through its bank.
    pub fn is_stopped(&self) -> bool {
        self.bank.as_ref().is_some_and(Bank::is_stopped)
    }

    /// Subtracts from `counted`, the counts of the current slice's counters `set` since the last
    /// credit, those of the time in which the program had stopped its counters. Returns whether
    /// they are stopped now.
    #[inline]
    pub(crate) fn deduct_stopped(&mut self, set: CounterMask, counted: &mut Counts) -> bool {
        self.bank.as_mut().is_some_and(|bank| bank.deduct_stopped(set, counted))
    }

    /// Returns whether half widths in the bank are out of date: then call [`Self::publish_errors`].
    #[inline]
    pub fn errors_are_due(&self) -> bool {
        self.bank.as_ref().is_some_and(|bank| bank.errors_are_due(self.finished))
    }

    /// Publishes the half widths of the next logical counters, so that all are published within
    /// `calls` calls. While the session runs, call it right after [`crate::Multiplexer::sync`],
    /// because it may change an estimate's basis. Uses floating point: never in the overflow path.
    pub fn publish_errors(&mut self, calls: usize) {
        let Some(mut bank) = self.bank.take() else { return };
        for member in bank.due(calls, self.finished, self.round) {
            let Some(event) = bank.event(member) else { continue };
            let Some(&CounterAssignment::General { group, counter }) =
                self.plan.assignments.get(event)
            else {
                continue;
            };
            let assigned = CounterAssignment::General { group, counter };
            let skew = self.skew.of_event(event, assigned, &self.stats());
            let uncertainty = estimate::uncertainty(&self.sample(group, counter));
            let counts = counts_of(&self.moments, &self.current, &self.total, group, 0);
            if let (Some(mut uncertainty), Some(counts)) = (uncertainty, counts) {
                uncertainty.half_width_95 += skew as f64;
                bank.publish_error(member, &uncertainty, counts);
            }
        }
        self.bank = Some(bank);
    }

    /// Publishes that the errors of all logical counters are unknown until the next half widths are
    /// published, because the counters may have failed.
    pub fn withdraw_errors(&mut self) {
        let events = self.events();
        if let Some(bank) = &mut self.bank {
            bank.withdraw_errors(0..events);
        }
    }

    /// Begins a publication of the counts of the group of the slice `of`. Fires the reached
    /// thresholds. If counting continues (`running`) and there are thresholds, returns the counters
    /// to preload: the caller preloads exactly these before [`Self::publish_bases`], which has to
    /// follow.
    #[inline]
    pub(crate) fn publish(
        &mut self,
        of: SliceStart,
        running: bool,
        at: Timestamp,
        sink: &mut impl Sink,
    ) -> Option<PreloadPlan> {
        let bank = self.bank.as_mut()?;
        let SliceStart { group, start_tsc } = of;
        let counts = counts_of(&self.moments, &self.current, &self.total, group, start_tsc)?;
        bank.begin(group, counts, at.tsc);
        let watched = bank.is_watched();
        if self.restate_share() {
            self.rescale();
        }
        if !watched {
            return None;
        }
        self.check_thresholds(of, at, sink);
        if !running {
            return None;
        }
        let plan = self.plan_preload()?;
        if let Some(bank) = &mut self.bank {
            bank.set_armed(&plan);
        }
        Some(plan)
    }

    /// Ends a publication: the counters of the current slice, if they run, count from `bases` on.
    #[inline]
    pub(crate) fn publish_bases(&mut self, bases: Option<&Counts>) {
        let (group, set) = (self.current.drawn.draw.group, self.set());
        if let Some(bank) = &mut self.bank {
            bank.end(bases.map(|bases| (group, set, bases)));
        }
    }

    /// Updates the scale of the thresholds of the current slice's group to its new share.
    #[cold]
    fn rescale(&mut self) {
        let group = self.current.drawn.draw.group;
        let counts = counts_of(&self.moments, &self.current, &self.total, group, 0);
        if let (Some(bank), Some(counts)) = (&mut self.bank, counts) {
            bank.rescale(group, counts);
        }
    }

    /// The counters that may reach a threshold in the rest of the current slice.
    fn plan_preload(&self) -> Option<PreloadPlan> {
        let group = self.current.drawn.draw.group;
        let counts = counts_of(&self.moments, &self.current, &self.total, group, 0)?;
        let mut plan = self.bank.as_ref()?.plan_preload(group, counts);
        let left = self.left();
        let timer = PINNED_SLOT + self.setup.timer as usize;
        // A threshold beyond this distance is far. If it is reached all the same, it fires at the
        // slice's end.
        let most = match self.config.slice {
            Slice::Cycles(_) | Slice::Auto => left.saturating_mul(MOST_PER_CYCLE).min(MAX_PRELOAD),
            Slice::Instructions(_) => MAX_PRELOAD,
        };
        let least = match (self.setup.kernel, &self.sampling) {
            (false, _) => 1,
            (true, None) => LEAST_IN_KERNEL,
            (true, Some(_)) => LEAST_SAMPLE_IN_KERNEL,
        };
        // The slice timer overflows at the slice's end anyway.
        plan.limit(least, |slot| if slot == timer { left.saturating_sub(1) } else { most });
        let instructions = u16::from(self.samples_precise_instructions()) << PINNED_SLOT;
        plan.precise = self.plan.group(group).precise | instructions;
        Some(plan)
    }
}

/// Counts of a group.
pub(super) fn counts_of<'a>(
    moments: &'a [GroupMoments],
    current: &'a CurrentSlice,
    total: &'a Counts,
    group: u16,
    start_tsc: u64,
) -> Option<GroupCounts<'a>> {
    let moments = moments.get(usize::from(group))?;
    let is_current = current.credited && current.drawn.draw.group == group;
    Some(GroupCounts { moments, current: is_current.then_some(&current.slice), start_tsc, total })
}
