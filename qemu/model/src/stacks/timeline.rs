//! The architectures that count as the pipeline runs, and the time spans that they count.

use super::{
    component::Component,
    fmt::{self, Fmt},
    power5,
    sfmt::Sfmt,
    spans::Spans,
    watch::{Dispatched, FetchWait, Mispredicted, Watch},
};
use crate::{access::ServedBy, counts::Counts, geometry::Geometry, signal::Signal};

/// State between two dispatches: the waits of fetch and the last misprediction, and the spans in
/// which retirement and the store queue wait.
#[derive(Clone, Debug)]
pub(crate) struct Stacks {
    waits: Vec<(u64, u64, Component)>,
    mispredicted: Option<Pending>,
    dispatched_at: u64,
    heads: Spans,
    stores: Spans,
    fmt: Fmt,
    sfmt: Sfmt,
}

/// A mispredicted branch whose right path is not dispatched yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    dispatched: u64,
    branch: Mispredicted,
    /// Whether the branch has a row in the table.
    has_row: bool,
}

impl Stacks {
    pub(crate) fn new(geometry: &Geometry) -> Stacks {
        Stacks {
            waits: Vec::new(),
            mispredicted: None,
            dispatched_at: 0,
            heads: Spans::default(),
            stores: Spans::default(),
            fmt: Fmt::new(geometry),
            sfmt: Sfmt::default(),
        }
    }

    /// The cycle at which the last instruction was dispatched.
    pub(crate) fn dispatched_at(&self) -> u64 {
        self.dispatched_at
    }

    /// Records that the last instruction is a branch, which retires at `retires_at`.
    pub(crate) fn branch(
        &mut self,
        retires_at: u64,
        mispredicted: Option<Mispredicted>,
        counts: &mut Counts,
    ) {
        let has_row = self.fmt.branch(self.dispatched_at, retires_at, counts);
        if let Some(branch) = mispredicted {
            self.sfmt.clear(retires_at);
            let dispatched = self.dispatched_at;
            self.mispredicted = Some(Pending { dispatched, branch, has_row });
        }
    }

    /// Retires all rows: the pipeline is empty.
    pub(crate) fn drain(&mut self, counts: &mut Counts) {
        self.fmt.retire_until(u64::MAX, counts);
    }

    /// Counts the cycles from `from` up to `until`, in which the back end was full: to the
    /// component that blocks the oldest instruction, or else, behind a full store queue, to the one
    /// that blocks the oldest store.
    fn full(&self, from: u64, until: u64, behind_stores: bool, counts: &mut Counts) {
        for (from, until, head) in self.heads.over(from, until) {
            if let Some(component) = head {
                counts[fmt::signal(component)] += until - from;
            } else if behind_stores {
                for (from, until, store) in self.stores.over(from, until) {
                    let Some(component) = store else { continue };
                    counts[fmt::signal(component)] += until - from;
                }
            }
        }
    }

    /// Counts the cycles from a mispredicted branch's dispatch to that of the right path; returns
    /// the first cycle that is not charged to the branch.
    fn redirect(&self, pending: Pending, next: Dispatched, counts: &mut Counts) -> u64 {
        let Pending { dispatched, branch, has_row } = pending;
        let Mispredicted { full_at, resolved, refilled } = branch;
        let begun = dispatched + 1;
        let full_at = full_at.max(begun).min(resolved);
        if has_row {
            counts[fmt::signal(Component::Branch)] += full_at.saturating_sub(begun);
        }
        self.full(full_at, resolved, false, counts);
        for (from, until, head) in self.heads.over(full_at, resolved) {
            if has_row && head == Some(Component::Units) {
                counts[Signal::FmtBranchUnits] += until - from;
            }
        }
        let begun = resolved.max(begun);
        let full_until = next.full_until.max(begun).min(refilled.max(begun));
        self.full(begun, full_until, next.behind_stores, counts);
        counts[fmt::signal(Component::Branch)] += refilled.saturating_sub(full_until);
        refilled.max(begun)
    }

    /// Counts the cycles in which the reorder buffer was empty before a dispatch.
    fn empty(&self, next: Dispatched, counts: &mut Counts) {
        let Dispatched { empty_from, at, .. } = next;
        if empty_from >= at {
            return;
        }
        let mut begun = empty_from;
        if let Some(Pending { branch, .. }) = self.mispredicted {
            let until = branch.refilled.min(at).max(begun);
            power5::waited(begun, until, Component::Branch, counts);
            begun = until;
        }
        for (from, until, miss) in &self.waits {
            let until = (*until).min(at);
            power5::waited(begun.max(*from), until, *miss, counts);
        }
    }
}

impl Watch for Stacks {
    fn fetch_waited(&mut self, from: u64, until: u64, wait: FetchWait) {
        self.waits.extend(wait.component().map(|miss| (from, until, miss)));
    }

    fn dispatched(&mut self, next: Dispatched, counts: &mut Counts) {
        self.empty(next, counts);
        let mut at = next.from;
        if let Some(pending) = self.mispredicted.take() {
            at = self.redirect(pending, next, counts).max(at);
        }
        let full_until = next.full_until.min(next.at);
        if full_until > at {
            self.full(at, full_until, next.behind_stores, counts);
            at = full_until;
        }
        for (from, until, miss) in self.waits.drain(..) {
            let (from, until) = (from.max(at), until.min(next.at));
            if until > from {
                self.fmt.unfed(from, until, miss, counts);
                self.sfmt.unfed(from, until, miss, counts);
                at = until;
            }
        }
        self.fmt.retire_until(next.at, counts);
        self.dispatched_at = next.at;
        // Later queries are about later cycles.
        self.heads.drop_before(next.at);
        self.stores.drop_before(next.at);
    }

    fn stalled(&mut self, from: u64, until: u64, cause: Signal, counts: &mut Counts) {
        if let Some(component) = Component::of_head(cause) {
            power5::waited(from, until, component, counts);
            self.heads.push(from, until, component);
        }
    }

    fn store_waited(&mut self, from: u64, until: u64, by: ServedBy) {
        if let Some(component) = Component::of_data(by) {
            self.stores.push(from, until, component);
        }
    }
}
