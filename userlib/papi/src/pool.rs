//! Sessions of event sets. Sets with the same events share one: each counts its own thread and its
//! own time as a part of it, so that threads with equal sets do not take turns on the counters.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use tally_abi::{Error, Mode, SessionConfig};
use tally_rust::Session;

use crate::answer::Code;

/// Sessions of this program.
#[derive(Default)]
pub(crate) struct Pool(Vec<Option<Shared>>);

struct Shared {
    session: Session,
    events: String,
    mode: Mode,
    /// Number of event sets that count now.
    users: usize,
    /// Whether the session belongs to one set: a set with thresholds has its own session, which
    /// ends when the set stops.
    is_private: bool,
}

impl Pool {
    /// Finds or opens a session that counts these events, for one more set. Does not start it.
    pub(crate) fn get(&mut self, events: &str, mode: Mode, private: bool) -> Result<usize, Code> {
        let is_it =
            |of: &Shared| !of.is_private && !private && of.mode == mode && of.events == events;
        if let Some(at) = self.0.iter().position(|of| of.as_ref().is_some_and(is_it)) {
            return Ok(at);
        }
        let config = SessionConfig { mode, ..SessionConfig::default() };
        let mut opened = Session::open(events, config);
        if matches!(&opened, Err(why) if [Error::TooManySessions, Error::Busy].contains(&why.error))
        {
            self.close_idle();
            opened = Session::open(events, config);
        }
        let session = opened.map_err(|why| Code::of(why.error))?;
        let events = events.to_string();
        let shared = Shared { session, events, mode, users: 0, is_private: private };
        let at = self.0.iter().position(Option::is_none).unwrap_or(self.0.len());
        if at == self.0.len() {
            self.0.push(None);
        }
        self.0[at] = Some(shared);
        Ok(at)
    }

    /// Returns the session at an index that [`Self::get`] returned.
    pub(crate) fn session(&self, at: usize) -> Result<&Session, Code> {
        self.0.get(at).and_then(Option::as_ref).map(|of| &of.session).ok_or(Code::Bug)
    }

    /// Starts counting for a set; the first set starts the session.
    pub(crate) fn start(&mut self, at: usize) -> Result<(), Code> {
        let shared = self.0.get_mut(at).and_then(Option::as_mut).ok_or(Code::Bug)?;
        if shared.users == 0 {
            shared.session.start().map_err(Code::of)?;
        }
        shared.users += 1;
        Ok(())
    }

    /// Stops counting for a set; the last set stops the session.
    pub(crate) fn stop(&mut self, at: usize) {
        let Some(place) = self.0.get_mut(at) else { return };
        let Some(shared) = place else { return };
        shared.users = shared.users.saturating_sub(1);
        if shared.is_private {
            *place = None;
        } else if shared.users == 0 {
            // An error means that the session is stopped already.
            let _ = shared.session.stop();
        }
    }

    fn close_idle(&mut self) {
        for place in &mut self.0 {
            if place.as_ref().is_some_and(|of| of.users == 0) {
                *place = None;
            }
        }
    }
}
