//! Sessions on programs that others opened.

use alloc::boxed::Box;

use super::{Found, Table};
use crate::{measure::Context, task::Process};

/// The most sessions that a program has open on others: each takes memory of the kernel's.
const MAX_WATCHED: usize = 8;

/// A session on one program that another opened.
pub(super) struct Watch {
    /// Who opened it; 0 where that program is gone.
    pub(super) owner: u32,
    pub(super) on: Watched,
}

/// Where its context is.
pub(super) enum Watched {
    /// A program that has not ended: it has the context.
    Program(u32),
    /// It has ended, and these are the last values.
    Ended(Box<Context>),
}

impl Table {
    /// Whether `owner` may open one more session on another program: those of programs that have ended
    /// are kept for it too.
    pub fn may_watch(&self, owner: u32) -> bool {
        self.sessions.values().filter(|watch| watch.owner == owner).count() < MAX_WATCHED
    }

    /// Notes that `owner` opened a session on the program `on`.
    pub fn watch(&mut self, session: u32, owner: u32, on: u32) {
        self.sessions.insert(session, Watch { owner, on: Watched::Program(on) });
    }

    /// Does `look` with the context of a session that `owner` opened on another program, and with
    /// that program, if it has not ended.
    pub fn watched<T>(
        &mut self,
        session: u32,
        owner: u32,
        look: impl FnOnce(&mut Context, Option<&mut Process>) -> T,
    ) -> Found<T> {
        let watch = self.sessions.get_mut(&session).filter(|watch| watch.owner == owner);
        let on = match watch.map(|watch| &mut watch.on) {
            None => return Found::Nowhere,
            Some(Watched::Ended(context)) => return Found::Here(look(context, None)),
            Some(Watched::Program(on)) => *on,
        };
        let found = self.here(on, |process| {
            let mut context = process.context.take()?;
            let answer = look(&mut context, Some(process));
            process.context = Some(context);
            Some(answer)
        });
        match found {
            Found::Here(Some(answer)) => Found::Here(answer),
            Found::Away(lapic) => Found::Away(lapic),
            // It opened and closed sessions of its own, but not this one.
            Found::Here(None) | Found::Ended | Found::Nowhere => Found::Nowhere,
        }
    }

    /// Forgets such a session, whose program is not running; gives its context.
    pub fn unwatch(&mut self, session: u32) -> Option<Box<Context>> {
        match self.sessions.remove(&session)?.on {
            Watched::Ended(context) => Some(context),
            Watched::Program(on) => self.known.get_mut(&on)?.process.as_mut()?.context.take(),
        }
    }
}
