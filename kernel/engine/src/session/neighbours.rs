//! A session beside others of the same program, which take turns on the counters (decision 30).
//!
//! While another session has its turn, this one counts no events, but what passes of the pinned
//! events is known: the other session counts them at the same privilege. So such time is to this
//! session what a slice of another group is: time in which its events were not on the counters.
//!
//! Where sessions start and stop beside it, its part of the time changes. Then its sums are
//! restated as if it had always had the new one, as those of a group are whose share changes
//! (decision 85).

use super::{
    publish::counts_of,
    state::{Neighbours, Session},
};
use crate::{Began, Clock, Counts};

impl Session {
    /// Sets what is to be known of the other sessions of the program. The session is on no counter.
    pub fn set_neighbours(&mut self, neighbours: Neighbours) {
        self.beside.neighbours = neighbours;
        let reference = self.counts_reference() || neighbours.reference;
        self.live.reference = reference;
        self.live.schedule.for_each_to_come(|switch| switch.reference = reference);
        self.note_folding();
        let cycle = if neighbours.take_turns { neighbours.cycle } else { self.round };
        if cycle != self.beside.cycle {
            self.restate_turns(cycle);
        }
    }

    /// Its turns are among so many from here on.
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

    /// Returns whether it counts reference cycles for itself.
    pub fn counts_reference(&self) -> bool {
        self.plan.counts_reference()
    }

    /// Returns whether sessions take turns on the counters.
    pub(crate) fn takes_turns(&self) -> bool {
        self.beside.neighbours.take_turns
    }

    /// Slices of a round.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// The turns that it has left of the present cycle; none before the first since its start.
    pub(crate) fn turns_left(&self) -> Option<u64> {
        self.beside.turns_left
    }

    /// A turn was drawn, the first of a cycle or not: its own, or another session's.
    pub fn note_draw(&mut self, begins_cycle: bool, is_own: bool) {
        let left = self.beside.turns_left.filter(|_| !begins_cycle).unwrap_or(self.round);
        self.beside.turns_left = Some(left.saturating_sub(is_own.into()));
    }

    /// Returns whether its program may use RDPMC while it is on the counters.
    pub(crate) fn is_exposed(&self) -> bool {
        self.bank.is_some() || self.beside.neighbours.exposed
    }

    /// What has passed of the pinned events since the session was opened, while it was on the
    /// counters or another had its turn. Unlike the session's own counts, what passed while the
    /// program had stopped its counters by the control word is in it.
    pub fn passed(&self) -> Counts {
        let mut passed = self.total;
        passed.add(&self.deducted(), 0);
        passed
    }

    /// What passed of the pinned events while the program had stopped its counters by the control
    /// word of a bank, this one or earlier ones.
    pub(super) fn deducted(&self) -> Counts {
        let mut deducted = self.beside.deducted;
        if let Some(bank) = &self.bank {
            deducted.add(&bank.deducted(), 0);
        }
        deducted
    }

    /// Another session of the program was on the counters for `ticks` of the TSC, up to `tsc`, and
    /// counted `passed` of the pinned events. This one is started, and on no counter.
    pub fn pass(&mut self, passed: &Counts, ticks: u64, tsc: u64) {
        self.total.add(passed, 0);
        self.stats.session_ticks += ticks;
        if !self.beside.was_passed {
            self.beside.was_passed = true;
            let counts = counts_of(&self.moments, &self.current, &self.total, 0, 0);
            if let (Some(bank), Some(counts)) = (&mut self.bank, counts) {
                bank.begin_estimates(&self.plan, counts);
            }
        }
        if let Some(bank) = &mut self.bank {
            bank.publish_totals(&self.total, tsc);
        }
    }

    /// Charges the session for the engine's work outside of the overflow interrupt since `began`.
    pub fn charge(&mut self, began: &Began, clock: &impl Clock) {
        let (ticks, cycles) = began.elapsed(clock);
        self.stats.engine_ticks += ticks;
        self.budget.add_work(cycles);
    }

    /// As [`Self::charge`] of work in the overflow interrupt, which times itself.
    pub(crate) fn charge_cycles(&mut self, began: &Began, clock: &impl Clock) {
        self.budget.add_work(began.elapsed(clock).1);
    }

    /// The session is started: whether the program had stopped its counters is of the past, and so
    /// are the turns of its last cycle.
    pub fn note_start(&mut self) {
        self.beside.turns_left = None;
        if let Some(bank) = &mut self.bank {
            bank.forget_stop();
        }
    }
}
