//! Logging of the slices that overflow interrupts end.
//!
//! The interrupt only stores a row of raw values. Rows are folded into the session before other
//! code uses it: [`Multiplexer::fold`].

use tally_abi::trace::End;

use super::Multiplexer;
use crate::{
    Began, Clock, Pinned, Pmu, Session, Sink,
    session::{SliceStart, Timestamp},
};

impl<P: Pmu> Multiplexer<P> {
    /// Logs the ended slice, whose row is complete, and advances to the next row.
    #[inline(always)]
    pub(super) fn log<S: Sink>(
        &mut self,
        session: &mut Session,
        clock: &impl Clock,
        sink: impl FnOnce() -> S,
    ) {
        session.advance();
        if self.rows.push() {
            self.make_room(session, clock, &mut sink());
        }
    }

    /// Reads the processor's core cycles, for the budget, and requests the folding of rows, or
    /// folds at once if the rows are full.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, session: &mut Session, clock: &impl Clock, sink: &mut impl Sink) {
        let is_due = self.rows.mark(self.entries.read(clock));
        if self.rows.is_full() {
            let began = Began::now(clock);
            self.fold_rows::<true>(session, sink);
            session.charge_cycles(&began, clock);
        } else if is_due {
            sink.fold_soon();
        }
    }

    /// [`Self::log`] for a session that folds each row at once; publishes the counts in its bank if
    /// it has one. Returns whether counting resumes: false if the program has stopped its counters
    /// through the bank.
    #[cold]
    #[inline(never)]
    pub(super) fn log_at_once(
        &mut self,
        session: &mut Session,
        tsc: u64,
        clock: &impl Clock,
        sink: &mut impl Sink,
    ) -> bool {
        let ended = session.slice_start();
        session.advance();
        self.rows.push();
        let stopped = self.fold_rows::<true>(session, sink);
        if session.is_mark_due()
            && let Some(reading) = self.entries.read(clock)
        {
            session.mark_cycles(reading);
        }
        session.time_samples(|| self.entries.read(clock));
        session.update_budget();
        if stopped {
            self.pmu.stop();
            session.mark_idle();
        }
        self.log_end(session, ended, tsc, sink);
        !stopped
    }

    /// Switches out a credited slice in which the program has stopped its counters through its
    /// bank. No counter runs any more.
    pub(super) fn end_stopped(&mut self, session: &mut Session, tsc: u64, sink: &mut impl Sink) {
        let ended = session.slice_start();
        session.switch_out(self.cpu, End::Stopped, tsc, sink);
        self.log_end(session, ended, tsc, sink);
    }

    /// Completes the end of the slice `ended`: publishes in the bank, and calls the kernel soon if
    /// another session may have its turn, or if errors or an interval are due. If the session does
    /// not run, no counter runs.
    #[inline]
    fn log_end(
        &mut self,
        session: &mut Session,
        ended: SliceStart,
        tsc: u64,
        sink: &mut impl Sink,
    ) {
        let running = session.is_running();
        if running {
            // Otherwise an event that stays on its counter would stay armed.
            self.pmu.disarm();
        }
        self.publish(session, ended, running, tsc, sink);
        self.entries.set_deadline(session.deadline());
        if session.takes_turns() || session.errors_are_due() || session.interval_is_due() {
            sink.fold_soon();
        }
    }

    /// Folds the rows that overflow interrupts have stored into `session`, the one that runs on
    /// this CPU. Then its readings, statistics and shares are up to date except for the current
    /// slice. At most [`ROWS`] rows, each in constant time.
    pub fn fold(&mut self, session: &mut Session, clock: &impl Clock, sink: &mut impl Sink) {
        if self.rows.is_empty() && !session.interval_is_due() {
            self.charge_ticks(session);
        } else {
            let began = Began::now(clock);
            let at = Timestamp { cpu: self.cpu, tsc: began.tsc() };
            // The intervals that ended in an overflow interrupt.
            session.end_interval(at, sink);
            self.fold_rows::<false>(session, sink);
            self.take_metrics(session);
            session.charge(&began, clock);
            session.update_budget();
        }
    }

    /// Adds what the metrics counted to the session's counts, if it counts them.
    pub(super) fn take_metrics(&mut self, session: &mut Session) {
        if session.setup().metrics {
            session.add_metrics(&self.pmu.take_metrics());
        }
    }

    /// Folds all rows, and records their slices. Returns whether the program has stopped its
    /// counters through its bank. Outside of the interrupt also evaluates intervals that end with a
    /// slice.
    fn fold_rows<const IN_INTERRUPT: bool>(
        &mut self,
        session: &mut Session,
        sink: &mut impl Sink,
    ) -> bool {
        self.charge_ticks(session);
        let widths = self.pmu.widths();
        let (timer, mut stopped) = (session.setup().timer, false);
        let (rows, marks) = self.rows.take();
        for (index, row) in rows.iter().enumerate() {
            let sets = session.sets();
            let mut raw = row.raw;
            if !sets[0].reference {
                raw[Pinned::Reference] = self.base[Pinned::Reference];
            }
            self.base.advance(&raw, sets[1].general, widths, &mut self.counted);
            self.base[timer] = session.following().reload(widths.pinned);
            stopped = session.deduct_stopped(sets[0], &mut self.counted);
            let counted = &self.counted;
            session
                .record(self.cpu, End::Overflow, sink, |session| session.piece(row.tsc, counted));
            session.fold_slice(&self.counted, sets, row.tsc);
            if !IN_INTERRUPT && session.interval_is_due() {
                session.end_interval(Timestamp { cpu: self.cpu, tsc: row.tsc }, sink);
            }
            for mark in marks.iter().flatten().filter(|mark| mark.rows == index + 1) {
                session.mark_cycles(mark.reading);
            }
        }
        stopped
    }
}
