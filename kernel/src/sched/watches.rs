//! The table's sessions on programs that other programs opened.

use alloc::{boxed::Box, vec::Vec};

use super::{
    table::{Lookup, ProgramTable},
    watch::{Watch, Watched},
};
use crate::{
    measure::{Context, Contexts},
    memory::user::UserMemory,
};

/// Maximum number of sessions that a program has open on others: each takes memory of the kernel.
const MAX_WATCHED: usize = 8;

impl ProgramTable {
    /// Returns whether `owner` may open another session on another program. Sessions on ended
    /// programs count too.
    pub fn may_watch(&self, owner: u32) -> bool {
        let owned = |watch: &&Watch| watch.owner == Some(owner);
        self.sessions.values().filter(owned).count() < MAX_WATCHED
    }

    /// Number of programs, including ended ones that were not waited for.
    pub fn len(&self) -> usize {
        self.programs.len()
    }

    /// Adds a session that `owner` opened on the program `on`.
    pub fn watch(&mut self, session: u32, owner: u32, on: u32) {
        self.sessions.insert(session, Watch { owner: Some(owner), on: Watched::Program(on) });
    }

    /// Calls `inspect` with the context of a session that `owner` opened on another program, and
    /// with that program's memory, unless it has ended.
    pub fn inspect_session<T>(
        &mut self,
        session: u32,
        owner: u32,
        inspect: impl FnOnce(&mut Context, Option<&mut UserMemory>) -> T,
    ) -> Lookup<T> {
        let watch = self.sessions.get_mut(&session).filter(|watch| watch.owner == Some(owner));
        let on = match watch.map(|watch| &mut watch.on) {
            None => return Lookup::Unknown,
            Some(Watched::Ended(context)) => return Lookup::Parked(inspect(context, None)),
            Some(Watched::Program(on)) => *on,
        };
        let found = self.inspect(on, |process| {
            let context = process.slot.contexts_mut().find(|it| it.id() == session)?;
            Some(inspect(context, Some(&mut process.memory)))
        });
        match found {
            Lookup::Parked(Some(answer)) => Lookup::Parked(answer),
            Lookup::Running(lapic) => Lookup::Running(lapic),
            Lookup::Parked(None) | Lookup::Ended | Lookup::Unknown => Lookup::Unknown,
        }
    }

    /// Removes and returns, at the end of the program `pid`, the contexts of its sessions on ended
    /// programs. Also returns the numbers of the sessions on it that others have open.
    pub fn take_last_sessions(&mut self, pid: u32) -> (Contexts, Vec<u32>) {
        let is_last = |_: &u32, watch: &mut Watch| match watch.on {
            Watched::Ended(_) => watch.owner == Some(pid),
            Watched::Program(on) => on == pid && watch.owner.is_none(),
        };
        let removed = self.sessions.extract_if(.., is_last);
        let contexts = removed.filter_map(|(_, watch)| match watch.on {
            Watched::Ended(context) => Some(context),
            // The context is with the program.
            Watched::Program(_) => None,
        });
        let contexts = contexts.collect();
        let is_on = |watch: &Watch| matches!(watch.on, Watched::Program(on) if on == pid);
        let watched = self.sessions.iter().filter(|(_, watch)| is_on(watch));
        (contexts, watched.map(|(id, _)| *id).collect())
    }

    /// Removes a session on a program that is not running. Returns its context.
    pub fn unwatch(&mut self, session: u32) -> Option<Box<Context>> {
        match self.sessions.remove(&session)?.on {
            Watched::Ended(context) => Some(context),
            Watched::Program(on) => {
                self.programs.get_mut(&on)?.process.as_mut()?.slot.remove(session)
            }
        }
    }
}
