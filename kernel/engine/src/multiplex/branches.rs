//! Branches of samples.

use tally_abi::branches::{Branch, MAX_BRANCHES};

use super::Multiplexer;
use crate::{Pmu, Session, Sink, bank::PreloadPlan};

impl<P: Pmu> Multiplexer<P> {
    /// Forgets the branches of what ran on this CPU before, if the session records branches.
    pub(super) fn clear_branches(&mut self, session: &Session) {
        if !session.setup().branches.is_empty() {
            self.pmu.clear_branches();
        }
    }

    /// Records the branches before the samples that were just taken, and preloads by the plan.
    #[cold]
    pub(super) fn record_and_preload(
        &mut self,
        session: &mut Session,
        plan: &PreloadPlan,
        tsc: u64,
        sink: &mut impl Sink,
    ) {
        if session.take_wanted_branches() {
            let mut all = [Branch::default(); MAX_BRANCHES];
            let known = self.pmu.branches(&mut all).min(MAX_BRANCHES);
            sink.branches(session.id(), tsc, &all[..known]);
        }
        self.preload(plan);
    }
}
