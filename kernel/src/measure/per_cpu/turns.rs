//! Turns: the choice of the running program's session that is on the counters (decision 30).
//!
//! Whenever the program runs in ring 3 and any of its sessions is started, one of these is on the
//! counters: the one in [`Slot::context`](super::Slot). It changes at the end of a slice, in the
//! interrupt that folds the slice. The other sessions get the counts of the pinned events in its
//! turn.
//!
//! A call on a session that is not on the counters takes the session there off, without putting
//! another on: until [`Measure::settle`], the call's session is in the first place.

use tally_abi::{trace::End, usage::Usage};
use tally_engine::{Began, Clock, Counts, Session, Turns};

use super::Measure;
use crate::{
    measure::{
        context::Context,
        settings::has_failed,
        slot::{Contexts, Slot},
        trace_ring::ProcessorClock,
    },
    memory::user::UserMemory,
};

impl Measure {
    /// Puts the session in the first place on the counters, or another one if it is not started.
    pub(super) fn resume(&mut self) {
        if self.slot.context.as_ref().is_some_and(|context| !context.started)
            && let Some(index) = self.slot.others.iter().position(|other| other.started)
        {
            self.slot.exchange(index);
        }
        self.slot.note_neighbours();
        if has_failed() {
            self.stop_counting();
            return;
        }
        let (Some(multiplexer), Some(context)) = (&mut self.multiplexer, &mut self.slot.context)
        else {
            return;
        };
        let (id, session) = (context.id(), &mut context.session);
        if context.started && !session.is_running() {
            self.turn.session = id;
            self.turn.slices = session.ended_slices();
            self.turn.began = Some((ProcessorClock.tsc(), session.passed()));
            multiplexer.resume(session, &ProcessorClock, &mut self.trace);
        }
    }

    /// Takes the session on the counters off, and passes its turn's pinned counts to the others.
    pub(super) fn suspend(&mut self, end: End) {
        if let (Some(multiplexer), Some(context)) = (&mut self.multiplexer, &mut self.slot.context)
            && context.session.is_running()
        {
            multiplexer.suspend(&mut context.session, end, &ProcessorClock, &mut self.trace);
        }
        self.end_turn();
    }

    /// Passes the first session's pinned counts to the others, when it is on no counter, and
    /// detects whether its program stopped it with the control word.
    pub(super) fn end_turn(&mut self) {
        if let Some(context) = &mut self.slot.context
            && context.session.is_stopped()
        {
            context.end();
            self.update_unit();
        }
        let (Some((since, before)), Some(context)) = (self.turn.began.take(), &self.slot.context)
        else {
            return;
        };
        let (tsc, passed) = (ProcessorClock.tsc(), context.session.passed().since(&before));
        for other in self.slot.others.iter_mut().filter(|other| other.started) {
            other.session.pass(&passed, tsc.saturating_sub(since), tsc);
        }
    }

    /// Returns whether any session except the one in the first place is started.
    pub(super) fn others_started(&self) -> bool {
        self.slot.others.iter().any(|other| other.started)
    }

    /// Draws the session of the next turn at the end of a slice, and puts it on the counters.
    pub(super) fn change_turn(&mut self) {
        let Some(context) = self.slot.context.as_ref().filter(|_| self.others_started()) else {
            return;
        };
        let has_ended = context.session.ended_slices() != self.turn.slices;
        if context.session.is_running() && !has_ended {
            return;
        }
        self.turn.slices = context.session.ended_slices();
        let (began, is_running) = (Began::now(&ProcessorClock), context.session.is_running());
        let here = context.id();
        let next = self.draw_turn();
        if next != Some(here) || !is_running {
            self.suspend(End::SwitchedOut);
            if let Some(index) = self.slot.others.iter().position(|it| Some(it.id()) == next) {
                self.slot.exchange(index);
            }
            self.resume();
        }
        self.charge(&began);
    }

    /// Draws the number of the next turn's session.
    fn draw_turn(&mut self) -> Option<u32> {
        let started = self.slot.contexts().filter(|context| context.started);
        // The session on the counters passes its turn's counts to the others at the turn's end.
        let running = self.slot.context.as_ref().map(|context| context.id());
        let passed = self.slot.context.as_ref().zip(self.turn.began);
        let passed = passed.map(|(context, (_, before))| context.session.passed().since(&before));
        let passed = passed.map_or(Counts::default(), |passed| passed.counts);
        let ahead = |session: &Session| {
            if Some(session.id()) == running { Counts::default() } else { passed }
        };
        let drawn = self.turn.turns.draw(started.map(|context| &context.session), ahead)?;
        let mut next = None;
        let started = self.slot.contexts_mut().filter(|context| context.started);
        for (index, context) in started.enumerate() {
            let is_next = index == drawn.index;
            context.session.note_draw(drawn.begins_cycle, is_next);
            next = next.or(is_next.then(|| context.id()));
        }
        next
    }

    /// Brings the session with this number to the first place and up to date, if the running
    /// program opened it on itself. [`Self::settle`] has to follow.
    pub fn session(&mut self, id: u32) -> Option<&mut Self> {
        let is_it = |context: &Context| context.id() == id && context.is_own();
        if self.slot.context.as_deref().is_some_and(is_it) {
            self.sync();
        } else {
            let index = self.slot.others.iter().position(|it| is_it(it))?;
            self.suspend(End::SwitchedOut);
            self.slot.exchange(index);
        }
        Some(self)
    }

    /// Ends the default session of the running program, which opens one itself, without a report.
    pub fn end_default(&mut self, memory: &mut UserMemory) {
        if self.slot.context.as_ref().is_some_and(|context| context.is_default) {
            self.sync();
            drop(self.close(memory));
        }
    }

    /// Puts the session whose turn it is on the counters again after [`Self::session`], or one that
    /// is near a threshold, or another one if it is no longer started.
    pub fn settle(&mut self) {
        let is_running = |context: &Context| context.session.is_running();
        if self.slot.context.as_deref().is_some_and(is_running) {
            return;
        }
        let started = || self.slot.contexts().filter(|context| context.started);
        let sessions = started().map(|context| &context.session);
        let near = Turns::near_threshold(sessions, |_| Counts::default());
        let near = near.and_then(|index| started().nth(index)).map(Context::id);
        let turn = near.unwrap_or(self.turn.session);
        let is_next = |other: &Context| other.id() == turn && other.started;
        if let Some(index) = self.slot.others.iter().position(|it| is_next(it)) {
            self.slot.exchange(index);
        }
        self.resume();
    }

    /// Context-switch in: starts the sessions whose start was pending.
    pub(super) fn start_pending(&mut self) {
        let can_count = self.multiplexer.is_some();
        for context in self.slot.contexts_mut() {
            if !core::mem::take(&mut context.start_pending) {
                continue;
            }
            if can_count {
                context.begin();
            } else {
                let program = context.program();
                log::error!("{program}: session not started: this CPU cannot count");
            }
        }
    }

    /// Stops counting of all sessions.
    fn pause_all(&mut self) {
        self.recheck_at_end();
        self.suspend(End::Stopped);
        self.slot.contexts_mut().for_each(Context::end);
        self.update_unit();
    }

    /// Stops counting at the running program's end. Other programs may still call on its sessions.
    pub fn end(&mut self, usage: Usage) {
        self.close_direct();
        self.pause_all();
        self.credit_usage(usage);
    }

    /// Removes, after [`Self::end`], the program's sessions whose numbers are not in `watched`.
    /// `memory` is the program's.
    pub fn take_unwatched(&mut self, memory: &mut UserMemory, watched: &[u32]) -> Contexts {
        let is_unwatched = |it: &Context| !it.is_of_a_cpu() && !watched.contains(&it.id());
        let mut contexts = self.slot.take_where(is_unwatched);
        contexts.sort_by_key(|context| !context.is_own());
        contexts.iter_mut().filter(|it| it.is_own()).for_each(|it| it.unmap(memory));
        self.update_rdpmc_access();
        contexts
    }

    /// Returns, after [`Self::end`], the sessions of a program that is freed and has used `usage`.
    pub fn release(&mut self, usage: Usage) -> Contexts {
        self.end(usage);
        self.leave_program(usage);
        let contexts = self.slot.take_where(|_| true);
        self.slot = Slot::default();
        self.update_rdpmc_access();
        contexts
    }
}
