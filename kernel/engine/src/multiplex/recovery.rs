//! Recovery from lost overflow interrupts.

use super::Multiplexer;
use crate::{Clock, CounterMask, Pmu, Session, Sink};

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
}
