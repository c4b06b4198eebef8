//! Checks of this CPU's counters: before it runs programs (decisions 42 and 51), and while it does.
//!
//! A hypervisor's host may take a counter at any time, and firmware too; the registers do not show
//! it (decision 54). So all counters count a loop now and then while a session is on them. Counts
//! up to the last such check are right; which are since then is not known. So a failure ends
//! counting on all CPUs, and no value of a session that is open then is given.

use tally_abi::{
    boot::{CounterCheck, Delivery},
    trace::End,
};

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

/// Time from one check to the next while a session is on the counters: some ten thousand cycles in
/// a tenth of a second.
const EVERY_NS: u64 = 100_000_000;
/// Time since the last check from which on a session that ends waits for another.
const AT_END_NS: u64 = 10_000_000;

impl Measure {
    /// Returns whether what this CPU counts is to be checked, and it can count.
    pub fn is_to_be_checked(&self) -> bool {
        settings().check_counters.is_some() && self.multiplexer.is_some()
    }

    /// Checks that an overflow raises an NMI, if overflows do; `is_pending` returns whether one
    /// came. Before the CPU runs programs, once.
    pub(in crate::measure) fn check_nmi(&mut self, is_pending: impl FnMut() -> bool) {
        let Ok(found) = detected() else { return };
        if delivery() == Delivery::Nmi {
            let checked = start::check_nmi(self.cpu, found, is_pending)
                .and_then(|()| start::multiplexer(self.cpu, &self.lapic, found));
            self.multiplexer = checked.map_err(|reason| record_failure(self.cpu, reason)).ok();
        }
    }

    /// Checks what this CPU counts in ring 3. `run` runs instructions there until an interrupt if
    /// it is told so, and returns how many have retired. Before the CPU runs programs, once.
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
