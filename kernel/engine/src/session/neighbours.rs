//! A session and other sessions of the same program, which take turns on the counters (decision
//! 30).
//!
//! During another session's turn, this session counts no events, but its pinned counts continue:
//! the other session counts them at the same privilege. So that time is like a slice of another
//! group: time in which this session's events were not on the counters.
//!
//! When other sessions start and stop, this session's fraction of the time changes. Then its sums
//! are restated as if it had always had the new one, like those of a group whose share changes
//! (decision 85).

use super::{
    publish::counts_of,
    state::{Neighbours, Session},
};
use crate::{Began, Clock, Counts, metrics::Metrics};

/// Counts that continue in each session's turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Counts of the pinned events.
    pub counts: Counts,
    /// Counts of the metrics.
    pub metrics: Metrics,
}

impl Passed {
    /// Counts since they were `before`.
    pub fn since(&self, before: &Passed) -> Passed {
        Passed {
            counts: self.counts.since(&before.counts),
            metrics: self.metrics.since(&before.metrics),
        }
    }
}

impl Session {
    /// Sets the summary of the program's other sessions. The session is on no counter.
    pub fn set_neighbours(&mut self, neighbours: Neighbours) {
        self.beside.neighbours = neighbours;
        let reference = self.counts_reference() || neighbours.reference;
        self.live.reference = reference;
        self.setup.metrics = self.plan.counts_metrics() || neighbours.metrics;
        self.live.schedule.for_each_to_come(|switch| switch.reference = reference);
        self.note_folding();
        let cycle = if neighbours.take_turns { neighbours.cycle } else { self.round };
        if cycle != self.beside.cycle {
            self.restate_turns(cycle);
        }
    }

    /// Restates all sums for a cycle of `cycle` slices.
    #[cold]
    fn restate_turns(&mut self, cycle: u64) {
        let cycles = [core::mem::replace(&mut self.beside.cycle, cycle), cycle];
        for moments in &mut self.moments {
            moments.restate_turns(cycles);
        }
        for group in 0..self.moments.len() as u16 {
            let counts = counts_of(&self.moments, &self.current, &self.total, group, 0);
            if let (Some(bank), Some(counts)) = (&mut self.bank, counts) {
                bank.rescale(group, counts);
            }
        }
    }

    /// Returns whether the session's own list has reference cycles.
    pub fn counts_reference(&self) -> bool {
        self.plan.counts_reference()
    }

    /// Returns whether the session's own list has metrics.
    pub fn counts_metrics(&self) -> bool {
        self.plan.counts_metrics()
    }

    /// Adds counts of the metrics.
    pub(crate) fn add_metrics(&mut self, more: &Metrics) {
        self.metrics.add(more);
    }

    /// Returns whether sessions take turns on the counters.
    pub(crate) fn takes_turns(&self) -> bool {
        self.beside.neighbours.take_turns
    }

    /// Slices of a round.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Length of the present slice, in the slice timer's unit.
    pub(crate) fn slice_length(&self) -> u64 {
        self.live.schedule.oldest().length.into()
    }

    /// The session's remaining turns in the present cycle; `None` before the first since its start.
    pub(crate) fn turns_left(&self) -> Option<u64> {
        self.beside.turns_left
    }

    /// Records a drawn turn: whether it begins a cycle, and whether it is this session's.
    pub fn note_draw(&mut self, begins_cycle: bool, is_own: bool) {
        let left = self.beside.turns_left.filter(|_| !begins_cycle).unwrap_or(self.round);
        self.beside.turns_left = Some(left.saturating_sub(is_own.into()));
    }

    /// Returns whether the program may use RDPMC while the session is on the counters.
    pub(crate) fn is_exposed(&self) -> bool {
        self.bank.is_some() || self.beside.neighbours.exposed
    }

    /// Counts of the pinned events and of the metrics since the session was opened, in its own and
    /// other sessions' turns. Unlike the session's own counts, these include the time in which the
    /// program had stopped its counters with the control word.
    pub fn passed(&self) -> Passed {
        let mut counts = self.total;
        counts.add(&self.deducted(), 0);
        Passed { counts, metrics: self.metrics }
    }

    /// Counts of the pinned events in the time in which the program had stopped its counters with
    /// the control word of a bank, this one or earlier ones.
    pub(super) fn deducted(&self) -> Counts {
        let mut deducted = self.beside.deducted;
        if let Some(bank) = &self.bank {
            deducted.add(&bank.deducted(), 0);
        }
        deducted
    }

    /// Adds another session's turn of `ticks` of the TSC, up to `tsc`, in which it counted
    /// `passed`. This session is started, and on no counter.
    pub fn pass(&mut self, passed: &Passed, ticks: u64, tsc: u64) {
        self.total.add(&passed.counts, 0);
        self.metrics.add(&passed.metrics);
        self.stats.session_ticks += ticks;
        if !self.beside.was_passed {
            self.beside.was_passed = true;
            let counts = counts_of(&self.moments, &self.current, &self.total, 0, 0);
            if let (Some(bank), Some(counts)) = (&mut self.bank, counts) {
                bank.begin_estimates(&self.plan, counts);
            }
        }
        if let Some(bank) = &mut self.bank {
            bank.put_off_samples(&passed.counts);
            bank.publish_totals(&self.total, tsc);
        }
    }

    /// Charges the session for the engine's work outside of the overflow interrupt since `began`.
    pub fn charge(&mut self, began: &Began, clock: &impl Clock) {
        let (ticks, cycles) = began.elapsed(clock);
        self.stats.engine_ticks += ticks;
        self.budget.add_work(cycles);
    }

    /// [`Self::charge`] for work in the overflow interrupt, which times itself.
    pub(crate) fn charge_cycles(&mut self, began: &Began, clock: &impl Clock) {
        self.budget.add_work(began.elapsed(clock).1);
    }

    /// Resets, at the session's start, the note that the program had stopped its counters, and the
    /// turns of the last cycle.
    pub fn note_start(&mut self) {
        self.beside.turns_left = None;
        if let Some(bank) = &mut self.bank {
            bank.forget_stop();
        }
    }
}
