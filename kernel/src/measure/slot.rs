//! Sessions of one program, which move between the program and the CPU that runs it.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use tally_abi::Error;
use tally_engine::Neighbours;

use super::{context::Context, direct::DirectCounters, refusal::Refusal, sequences::Sequences};

/// Maximum number of sessions that a program opens on itself, and that others open on it: each
/// takes memory of the kernel, and they share the counters.
pub const MAX_SESSIONS: usize = 8;

/// Contexts, boxed: a context is large, and it moves to and from the first place at every turn.
pub type Contexts = Vec<Box<Context>>;

/// Measurement of one program: sessions, counters in direct mode, or nothing. The program owns it
/// while it is off the CPUs; the CPU's [`super::Measure`] owns it while the program runs.
#[derive(Default)]
pub struct Slot {
    /// The session on the counters, or any of the program's if none is started.
    pub context: Option<Box<Context>>,
    /// The program's other sessions; started ones wait for their turn.
    pub others: Contexts,
    /// The program's counters in direct mode.
    pub direct: Option<Box<DirectCounters>>,
    /// The program's restartable sequences.
    pub sequences: Sequences,
}

impl Slot {
    /// Returns whether the program has a session or is in direct mode.
    pub fn is_measured(&self) -> bool {
        self.context.is_some() || self.direct.is_some()
    }

    /// All sessions.
    pub fn contexts(&self) -> impl Iterator<Item = &Context> + Clone {
        self.context.iter().chain(&self.others).map(|context| &**context)
    }

    /// All sessions.
    pub fn contexts_mut(&mut self) -> impl Iterator<Item = &mut Context> {
        self.context.iter_mut().chain(&mut self.others).map(|context| &mut **context)
    }

    /// Checks that there is room for a session, opened by the program itself (`is_own`) or by
    /// another.
    ///
    /// # Errors
    /// The program is in direct mode, or has [`MAX_SESSIONS`] of that kind.
    pub fn check_room(&self, is_own: bool) -> Result<(), Refusal> {
        if self.direct.is_some() {
            return Err(Error::Busy.into());
        }
        if self.contexts().filter(|context| context.is_own() == is_own).count() < MAX_SESSIONS {
            return Ok(());
        }
        let whose = if is_own { "its own" } else { "other programs" };
        let detail =
            format!("{MAX_SESSIONS} sessions of {whose} count this program: close one first");
        Err(Refusal { error: Error::TooManySessions, detail })
    }

    /// Adds a session. Returns what counting beside the others costs, empty if there are none.
    ///
    /// # Errors
    /// There is no room, or the session and the existing ones cannot share the counters.
    pub fn add(&mut self, context: Box<Context>) -> Result<String, Refusal> {
        self.check_room(context.is_own())?;
        if self.context.is_some() {
            let alone = self.contexts().chain([&*context]).find_map(Context::why_alone);
            if let Some(why) = alone {
                let detail = format!("{why}: close the program's other sessions first");
                return Err(Refusal { error: Error::Busy, detail });
            }
        }
        if context.unit.is_some() && self.contexts().any(|other| other.unit.is_some()) {
            let detail = "a session of this program has the counter unit: close it first".into();
            return Err(Refusal { error: Error::Busy, detail });
        }
        let cost = self.cost_beside(&context);
        self.put(context);
        Ok(cost)
    }

    /// Returns what counting costs a new session and the existing ones, empty if there are none.
    fn cost_beside(&self, context: &Context) -> String {
        let others = self.contexts().count();
        let own = context.session.round();
        let all = own + self.contexts().map(|other| other.session.round()).sum::<u64>();
        match others {
            0 => String::new(),
            _ => format!(
                "beside {others} other session{} the events have {own} of each {all} slices, the \
                 others' events the rest: until it is closed all of them are estimates, except \
                 instructions, cycles and reference cycles",
                if others == 1 { "" } else { "s" },
            ),
        }
    }

    /// Adds a context that can share the counters with the existing ones.
    pub(super) fn put(&mut self, context: Box<Context>) {
        match self.context {
            Some(_) => self.others.push(context),
            None => self.context = Some(context),
        }
    }

    /// Removes the contexts for which `is_it` returns true, in the order of their numbers.
    pub(super) fn take_where(&mut self, is_it: impl Fn(&Context) -> bool) -> Contexts {
        let found = self.contexts().filter(|context| is_it(context));
        let mut ids: Vec<u32> = found.map(Context::id).collect();
        ids.sort_unstable();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    /// Exchanges the session for the counters with another of index `index`.
    pub fn exchange(&mut self, index: usize) {
        if let (Some(context), Some(other)) = (&mut self.context, self.others.get_mut(index)) {
            core::mem::swap(context, other);
        }
    }

    /// Removes the session with this number.
    pub fn remove(&mut self, id: u32) -> Option<Box<Context>> {
        match self.others.iter().position(|context| context.id() == id) {
            Some(index) => Some(self.others.remove(index)),
            None => {
                let context = self.context.take_if(|context| context.id() == id);
                self.context = self.context.take().or_else(|| self.others.pop());
                context
            }
        }
    }

    /// Summary of the slot's other started sessions: whether turns are needed, and the slices per
    /// rotation.
    fn neighbours_of(&self, context: &Context) -> Neighbours {
        let others = || self.contexts().filter(|other| other.id() != context.id());
        let started = others().filter(|other| other.started);
        let rounds = started.map(|other| other.session.round());
        Neighbours {
            take_turns: others().any(|other| other.started),
            cycle: context.session.round() + rounds.sum::<u64>(),
            reference: others().any(|other| other.session.counts_reference()),
            metrics: others().any(|other| other.session.counts_metrics()),
            exposed: others().any(|other| other.session.has_bank()),
        }
    }

    /// Sets the summary of the others for the session on the counters, before it counts.
    pub(super) fn note_neighbours(&mut self) {
        let Some(context) = &self.context else { return };
        let neighbours = self.neighbours_of(context);
        if let Some(context) = &mut self.context {
            context.session.set_neighbours(neighbours);
        }
    }
}
