//! Whether counters that counted at boot still do: a hypervisor's host may take one at any time,
//! and firmware too. Their registers do not show it (decision 54).
//!
//! While a session is on the counters, all of them count a loop now and then. Counts up to the last
//! such check are right; which are since then is not known. So a failure ends counting on all CPUs,
//! and no value of a session that is open then is given.

use tally_abi::{boot::CounterCheck, trace::End};

use super::{Measure, start};
use crate::{
    machine::clock,
    measure::settings::{detected, has_failed, record_late_failure, settings},
};

/// Time from one check to the next while a session is on the counters: some ten thousand cycles in
/// a tenth of a second.
const EVERY_NS: u64 = 100_000_000;
/// Time since the last check from which on a session that ends waits for another.
const AT_END_NS: u64 = 10_000_000;

impl Measure {
    /// Checks the counters if that was not done for `EVERY_NS`. A turn of the scheduler ends.
    pub(super) fn recheck_at_tick(&mut self) {
        if has_failed() {
            self.stop_counting();
        } else {
            self.recheck(EVERY_NS);
        }
    }

    /// Checks the counters if that was not done for `AT_END_NS`. The session on them is about to
    /// stop.
    pub(super) fn recheck_at_end(&mut self) {
        self.recheck(AT_END_NS);
    }

    /// Checks the counters if a session is on them and that was not done for `after_ns`. Not on a
    /// machine with halts, whose timer has one of them.
    fn recheck(&mut self, after_ns: u64) {
        let now = clock::now_ns();
        let is_running =
            self.slot.context.as_ref().is_some_and(|context| context.session.is_running());
        let is_due = now.saturating_sub(self.checked_ns) >= after_ns;
        let Ok(found) = detected() else { return };
        // A report of the machine's counters says what they do, whatever that is.
        let is_asked = settings().check_counters == Some(CounterCheck::Refuse);
        if !is_asked || !is_running || !is_due || self.halter.is_some() {
            return;
        }
        self.checked_ns = now;
        self.suspend(End::SwitchedOut);
        let checked = start::recheck_ring_0(found)
            .and_then(|()| start::multiplexer(self.cpu, &self.lapic, found));
        self.multiplexer = checked.map_err(|reason| record_late_failure(self.cpu, reason)).ok();
        if has_failed() { self.stop_counting() } else { self.resume() }
    }

    /// Ends counting: a counter has failed, of this CPU or of another.
    pub(super) fn stop_counting(&mut self) {
        self.suspend(End::Stopped);
        self.slot.contexts_mut().for_each(|context| context.session.withdraw_errors());
    }
}
