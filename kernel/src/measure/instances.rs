//! Counting the threads of a program separately (decision 47).
//!
//! Each thread has its own engine session, with the same plan and its own order of groups: a
//! thread's turn has the same role for its session as a program's turn for the program's session.
//! The running thread's session is the context's, so that such a context needs no other special
//! treatment.

use alloc::{boxed::Box, format, vec, vec::Vec};
use core::mem::{replace, swap};

use tally_abi::{
    Error, Instance, Scope, SessionConfig, SessionStats, instance::MAX_INSTANCE_EVENTS,
    usage::Usage, vpmu::Op,
};
use tally_engine::Session;

use super::{refusal::Refusal, session_id, settings, truth::mark};
use crate::memory::frames;

/// Maximum number of threads that a session counts separately.
const MAX_ROWS: usize = 1024;

/// The turn of a thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadTurn {
    /// The thread's number.
    pub thread: u32,
    /// The thread's name, ended by zeros; only zeros if it has its program's name.
    pub name: [u8; 16],
    /// Usage of its program before the turn.
    pub usage: Usage,
}

/// The sessions of threads.
pub struct Instances {
    /// Rows in the order of the threads' first turns, after the row of all threads without memory.
    rows: Vec<Row>,
    /// The row of the thread that runs or ran last; its session is the context's.
    current: usize,
    /// Usage of the program when the turn began.
    since: Usage,
    /// Number of instances whose last values are reported.
    pub(super) reported: usize,
}

struct Row {
    of: Instance,
    /// The session, allocated once: it moves to the row whose turn ends. `None` in the row of the
    /// turn.
    session: Option<Box<Session>>,
}

impl Instances {
    /// Makes the instances of a new session of `events` events, without threads; `None` if it
    /// counts none separately.
    ///
    /// # Errors
    /// The session has too many events: an instance's values are computed in one step.
    pub fn of(config: SessionConfig, events: usize) -> Result<Option<Box<Instances>>, Refusal> {
        let each = match config.scope {
            Scope::Program => return Ok(None),
            Scope::Threads => "thread",
            Scope::Cpus => "CPU",
        };
        if events > MAX_INSTANCE_EVENTS {
            let most = MAX_INSTANCE_EVENTS;
            let detail =
                format!("{events} events for each {each} are more than {most}: list fewer");
            return Err(Refusal { error: Error::TooManyEvents, detail });
        }
        // The contexts of CPUs are separate already.
        Ok((config.scope == Scope::Threads).then(|| Box::new(Instances::new())))
    }

    /// Makes the rows; the context's session belongs to the row of threads without memory.
    fn new() -> Instances {
        let rows = vec![Row { of: Instance::default(), session: None }];
        Instances { rows, current: 0, since: Usage::default(), reported: 0 }
    }

    /// Counts the program's usage from now on; it has used `usage`.
    pub fn begin(&mut self, usage: Usage) {
        self.since = usage;
    }

    /// Starts a thread's turn; `session`, the context's, is on no counter.
    pub fn switch(&mut self, session: &mut Session, turn: ThreadTurn, is_started: bool) {
        self.credit(turn.usage);
        let next = self.row_of(session, turn);
        let Some(mut own) = self.rows[next].session.take() else { return };
        if is_started {
            mark(Op::CloseSession, session.id());
            mark(Op::OpenSession, own.id());
        }
        swap(session, &mut own);
        let last = replace(&mut self.current, next);
        self.rows[last].session = Some(own);
    }

    /// The row of a thread, made at its first turn.
    fn row_of(&mut self, session: &Session, turn: ThreadTurn) -> usize {
        let ThreadTurn { thread, name, .. } = turn;
        if let Some(row) = self.rows.iter().position(|row| row.of.number == thread) {
            return row;
        }
        let claim = frames::claim(session.snapshot_bytes() as u64 + size_of::<Session>() as u64);
        if self.rows.len() > MAX_ROWS || claim.is_none() {
            return 0;
        }
        let own = session.fresh(session_id::next(), settings::seed());
        let of = Instance { number: thread, name, usage: Usage::default() };
        self.rows.push(Row { of, session: Some(Box::new(own)) });
        self.rows.len() - 1
    }

    /// Credits the program's usage up to now, which is `usage`, to the thread that runs or ran
    /// last.
    pub fn credit(&mut self, usage: Usage) {
        let used = usage.since(replace(&mut self.since, usage));
        let of = &mut self.rows[self.current].of;
        of.usage = of.usage.with(used);
    }

    /// Records a thread's new name.
    pub fn rename(&mut self, thread: u32, name: [u8; 16]) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.of.number == thread) {
            row.of.name = name;
        }
    }

    /// Number of instances: the threads, plus the row of threads without memory if it was used.
    pub fn count(&self) -> usize {
        let has_rest = self.rows[0].of.usage != Usage::default();
        self.rows.len() - 1 + usize::from(has_rest)
    }

    /// The instance at `index` and its session, if there is one; `session` is the context's.
    pub fn get<'a>(
        &'a self,
        session: &'a Session,
        index: usize,
    ) -> Option<(Instance, &'a Session)> {
        let Row { of, session: own } = self.rows.get(self.row_at(index)?)?;
        Some((*of, own.as_deref().unwrap_or(session)))
    }

    /// See [`Self::get`].
    pub fn get_mut<'a>(
        &'a mut self,
        session: &'a mut Session,
        index: usize,
    ) -> Option<(Instance, &'a mut Session)> {
        let row = self.row_at(index)?;
        let Row { of, session: own } = self.rows.get_mut(row)?;
        Some((*of, own.as_deref_mut().unwrap_or(session)))
    }

    /// The row of an instance. The row of threads without memory comes last.
    fn row_at(&self, index: usize) -> Option<usize> {
        let is_last = index + 1 == self.rows.len();
        (index < self.count()).then_some(if is_last { 0 } else { index + 1 })
    }

    /// The statistics summed over all threads; `session` is the context's.
    pub fn stats(&self, session: &Session) -> SessionStats {
        let others = self.rows.iter().filter_map(|row| row.session.as_deref());
        others.fold(session.stats(), |sum, other| sum.with(other.stats()))
    }
}
