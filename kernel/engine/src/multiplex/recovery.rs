//! Overflow interrupts that are lost.

use super::Multiplexer;
use crate::{Clock, CounterMask, Pmu, Session, Sink};

/// How far the slice timer counts on, in cycles or instructions, before an overflow interrupt is
/// taken for lost. Skids are thousands of times shorter; an interrupt that comes after all is a
/// spurious one.
const LOST_AFTER: u64 = 1 << 16;

impl<P: Pmu> Multiplexer<P> {
    /// Returns whether the slice timer has overflowed.
    pub(super) fn is_over(&mut self, session: &Session) -> bool {
        self.since_overflow(session).is_some()
    }

    /// What the slice timer has counted since it overflowed; none if it has not.
    fn since_overflow(&mut self, session: &Session) -> Option<u64> {
        let width = self.pmu.widths().pinned;
        let shown = self.pmu.read(CounterMask::default())[session.setup().timer];
        (shown & (width ^ width >> 1) == 0).then_some(shown)
    }

    /// Ends the current slice soon if its overflow interrupt has been lost, which no other
    /// interrupt would report: the group would stay on the counters. Returns whether it has. To be
    /// asked now and then, as each turn of the scheduler ends.
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
            self.rearm_mid_slice(session, clock.tsc(), sink);
        }
        is_lost
    }
}
