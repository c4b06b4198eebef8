//! Checks of this CPU's counters: before it runs programs (decisions 42 and 51), and while it does.
//!
//! A hypervisor's host may take a counter at any time, and firmware too, without a trace in the
//! registers (decision 54). So all counters count a loop periodically while a session is on them.
//! Counts up to the last such check are right; later ones are uncertain. So a failure ends counting
//! on all CPUs, and no value of an open session is returned.

use tally_abi::{
    boot::{CounterCheck, Delivery},
    trace::End,
};

use tally_pmu::refuse_if_changed;

use super::{Measure, start};
use crate::{
    machine::clock,
    measure::{
        checked::report_overcount,
        settings::{
            delivery, detected, has_failed, record_failure, record_late_failure, record_overcount,
            settings,
        },
    },
};

/// Time between two checks while a session is on the counters: some ten thousand cycles in a tenth
/// of a second.
const EVERY_NS: u64 = 100_000_000;
/// Time since the last check after which a session's stop makes another.
const AT_END_NS: u64 = 10_000_000;

impl Measure {
    /// Returns whether this CPU's counts must be checked, and it can count.
    pub fn is_to_be_checked(&self) -> bool {
        settings().check_counters.is_some() && self.multiplexer.is_some()
    }

    /// Checks that an overflow raises an NMI, if that is its delivery; `is_pending` returns whether
    /// one came. Once, before the CPU runs programs.
    pub(in crate::measure) fn check_nmi(&mut self, is_pending: impl FnMut() -> bool) {
        let Ok(found) = detected() else { return };
        if delivery() == Delivery::Nmi {
            let checked = start::check_nmi(self.cpu, found, is_pending)
                .and_then(|()| start::multiplexer(self.cpu, &self.lapic, found));
            self.multiplexer = checked.map_err(|reason| record_failure(self.cpu, reason)).ok();
        }
    }

    /// Checks this CPU's counts in ring 3. `run` runs instructions there, until an interrupt if its
    /// argument is true, and returns how many have retired. Once, before the CPU runs programs.
    pub fn check_ring_3(&mut self, run: impl FnMut(bool) -> u64) {
        let Ok(found) = detected() else { return };
        let (cpu, lapic) = (self.cpu, self.lapic);
        let checked = start::check_ring_3(cpu, found, run).and_then(|overcount| {
            record_overcount(cpu, overcount);
            report_overcount(cpu, overcount);
            start::multiplexer(cpu, &lapic, found)
        });
        self.multiplexer = checked.map_err(|reason| record_failure(cpu, reason)).ok();
    }

    /// Checks the counters at the end of a scheduler's turn, if the last check was `EVERY_NS` ago.
    pub(super) fn recheck_at_tick(&mut self) {
        if has_failed() {
            self.stop_counting();
        } else {
            self.recheck(EVERY_NS);
        }
    }

    /// Checks the counters before the session on them stops, if the last check was `AT_END_NS` ago.
    pub(super) fn recheck_at_end(&mut self) {
        self.recheck(AT_END_NS);
    }

    /// Checks the counters if a session is on them and the last check was `after_ns` ago. Not on a
    /// machine with halts, whose timer uses a counter.
    fn recheck(&mut self, after_ns: u64) {
        let now = clock::now_ns();
        let is_running =
            self.slot.context.as_ref().is_some_and(|context| context.session.is_running());
        let is_due = now.saturating_sub(self.checked_ns) >= after_ns;
        let Ok(found) = detected() else { return };
        // A run that only reports on the counters must not stop them.
        let is_asked = settings().check_counters == Some(CounterCheck::Refuse);
        if !is_asked || !is_running || !is_due || self.halter.is_some() {
            return;
        }
        self.checked_ns = now;
        let Some(multiplexer) = &mut self.multiplexer else { return };
        let unchanged = refuse_if_changed(multiplexer.pmu_mut());
        self.suspend(End::SwitchedOut);
        let checked = unchanged
            .and_then(|()| start::recheck_ring_0(found))
            .and_then(|()| start::multiplexer(self.cpu, &self.lapic, found));
        self.multiplexer = checked.map_err(|reason| record_late_failure(self.cpu, reason)).ok();
        if has_failed() { self.stop_counting() } else { self.resume() }
    }

    /// Ends counting because a counter of this CPU or of another has failed.
    pub(super) fn stop_counting(&mut self) {
        self.suspend(End::Stopped);
        self.slot.contexts_mut().for_each(|context| context.session.withdraw_errors());
    }
}
