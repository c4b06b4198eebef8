//! Slices that end without an overflow of their timer in time: its interrupt was lost, or ring 0,
//! which it does not count, takes long.

use super::Multiplexer;
use crate::{Began, Clock, CounterMask, Pmu, Session, Sink};

/// Counts of the slice timer beyond its overflow, in cycles or instructions, after which the
/// overflow interrupt is considered lost. Skids are thousands of times shorter; an interrupt that
/// comes later after all is spurious.
const LOST_AFTER: u64 = 1 << 16;

impl<P: Pmu> Multiplexer<P> {
    /// Returns whether the slice timer has overflowed.
    pub(super) fn is_over(&mut self, session: &Session) -> bool {
        self.since_overflow(session).is_some()
    }

    /// Counts of the slice timer since it overflowed; `None` if it has not.
    fn since_overflow(&mut self, session: &Session) -> Option<u64> {
        let width = self.pmu.widths().pinned;
        let shown = self.pmu.read(CounterMask::default())[session.setup().timer];
        (shown & (width ^ width >> 1) == 0).then_some(shown)
    }

    /// Ends the current slice if its overflow interrupt has been lost: no other interrupt would
    /// report that, and the group would stay on the counters. Returns whether it has been lost.
    /// Call it periodically, as each turn of the scheduler ends.
    pub fn recover(
        &mut self,
        session: &mut Session,
        clock: &impl Clock,
        sink: &mut impl Sink,
    ) -> bool {
        let is_lost = session.is_running()
            && self.since_overflow(session).is_some_and(|counted| counted >= LOST_AFTER);
        if is_lost {
            self.fold(session, clock, sink);
            self.charge(session);
            session.stats_mut().lost_pmis += 1;
            self.rearm_mid_slice(session, clock.tsc(), clock, sink);
        }
        is_lost
    }

    /// Ends the current slice after the time that it may take in ring 0: its timer overflows with
    /// the first count of ring 3. Call it when [`crate::KernelEntries::is_overdue`] says so.
    #[cold]
    pub fn cut(&mut self, session: &mut Session, clock: &impl Clock, sink: &mut impl Sink) {
        if session.is_running() && session.deadline().is_some() {
            let began = Began::now(clock);
            self.fold(session, clock, sink);
            session.cut();
            self.rearm_mid_slice(session, began.tsc(), clock, sink);
            session.charge(&began, clock);
        }
    }
}
