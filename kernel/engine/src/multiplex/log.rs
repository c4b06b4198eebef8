//! Logging: what becomes of the slices that overflow interrupts end.
//!
//! The interrupt stores a row of raw values, and no more. Rows are folded into the session before
//! anything else looks at it: [`Multiplexer::fold`].

use tally_abi::trace::End;

use super::Multiplexer;
use crate::{
    Began, Clock, Pinned, Pmu, Session, Sink,
    session::{SliceStart, Timestamp},
};

impl<P: Pmu> Multiplexer<P> {
    /// Logs the slice that has ended, whose row is complete: moves on to the next.
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

    /// Reads the processor's core cycles, for the budget, and has rows folded soon, or, if there is
    /// no room for those up to the next time, at once.
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

    /// As [`Self::log`] for a session that folds each row at once; with a bank the counts are
    /// published there. Returns whether counting resumes: the program has not stopped its counters
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
        session.update_budget();
        if stopped {
            self.pmu.stop();
            session.mark_idle();
        }
        self.log_end(session, ended, tsc, sink);
        !stopped
    }

    /// The program has stopped its counters through its bank, in the middle of a slice, which is
    /// credited: switches the slice out. No counter runs any more.
    pub(super) fn end_stopped(&mut self, session: &mut Session, tsc: u64, sink: &mut impl Sink) {
        let ended = session.slice_start();
        session.switch_out(self.cpu, End::Stopped, tsc, sink);
        self.log_end(session, ended, tsc, sink);
    }

    /// What follows each end of a slice, `ended`, after which the kernel decides what counts next:
    /// publishes in the bank, and has the kernel look soon, where another session may have its
    /// turn, and where errors or an interval are due. If the session does not run, no counter does.
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
            // An event that stays on its counter would stay armed.
            self.pmu.disarm();
        }
        self.publish(session, ended, running, tsc, sink);
        if session.takes_turns() || session.errors_are_due() || session.interval_is_due() {
            sink.fold_soon();
        }
    }

    /// Folds the rows that overflow interrupts have stored into `session`, which is the one that
    /// runs on this CPU: its readings, statistics and shares are up to date then, but for the
    /// current slice. At most [`ROWS`] rows, each in constant time.
    pub fn fold(&mut self, session: &mut Session, clock: &impl Clock, sink: &mut impl Sink) {
        if self.rows.is_empty() && !session.interval_is_due() {
            self.charge_ticks(session);
        } else {
            let began = Began::now(clock);
            let at = Timestamp { cpu: self.cpu, tsc: began.tsc() };
            // Those that ended in an overflow interrupt.
            session.end_interval(at, sink);
            self.fold_rows::<false>(session, sink);
            session.charge(&began, clock);
            session.update_budget();
        }
    }

    /// Folds all rows, and records their slices. Returns whether the program has stopped its
    /// counters through its bank. Outside of the interrupt, intervals that end with a slice are
    /// evaluated.
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
