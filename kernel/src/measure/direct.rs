//! Programs that look after their counters themselves.

use alloc::{boxed::Box, vec::Vec};

use tally_abi::{Error, Mode, vpmu::Op};
use tally_engine::Direct;
use tally_pmu::ResolveError;

use super::{Measure, Refusal, context, truth::mark};
use crate::task::Process;

/// A program's own counters.
pub struct OwnCounters {
    /// A number that no session has.
    id: u32,
    direct: Direct,
}

impl Measure {
    /// Gives the running program counters for a list of events, and RDPMC to read them by. They count
    /// from here on. Gives RDPMC's ECX for each event, in the order of the list.
    ///
    /// # Errors
    /// It has a session or counters already, or why not, for people.
    pub fn open_direct(&mut self, list: &str, mode: Mode) -> Result<Vec<u32>, Refusal> {
        if self.context.is_some() || self.own.is_some() {
            return Err(Error::Busy.into());
        }
        super::permit(0, "having counters of one's own")?;
        let found = super::pmu()?;
        let multiplexer = self.multiplexer.as_mut().ok_or(Error::NoPmu)?;
        if !multiplexer.can_restore_direct() {
            let detail =
                "this PMU's counters cannot be written in full width, as keeping them for a \
                          program takes; open a session"
                    .into();
            return Err(Refusal { error: Error::EventNotSupported, detail });
        }
        let (resolved, demands) = context::resolve(found, list, mode)?;
        let direct = Direct::open(&demands, mode, &found.layout())
            .map_err(|refused| ResolveError::of_plan(refused, &resolved))?;
        let indices = direct.assignments().iter().map(|at| found.rdpmc(*at)).collect();
        let own = self.own.insert(Box::new(OwnCounters { id: context::next_id(), direct }));
        mark(Op::Open, own.id);
        multiplexer.restore_direct(&own.direct);
        self.let_rdpmc();
        Ok(indices)
    }

    /// Takes the running program's own counters away; whether it had any.
    pub fn close_direct(&mut self) -> bool {
        self.save_direct();
        let own = self.own.take();
        if let Some(own) = &own {
            mark(Op::Close, own.id);
        }
        self.let_rdpmc();
        own.is_some()
    }

    /// A program comes onto this CPU, with counters of its own if it has any.
    pub(super) fn load_direct(&mut self, process: &mut Process) {
        self.own = process.own_counters.take();
        if let (Some(multiplexer), Some(own)) = (&mut self.multiplexer, &self.own) {
            multiplexer.restore_direct(&own.direct);
        }
    }

    /// They do not count from here on.
    pub(super) fn save_direct(&mut self) {
        if let (Some(multiplexer), Some(own)) = (&mut self.multiplexer, &mut self.own) {
            multiplexer.save_direct(&mut own.direct);
        }
    }
}
