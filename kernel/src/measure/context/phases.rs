//! Phases of a context's program: the mapping of its events to the cost model, and upcalls at
//! changes.

use alloc::{format, string::String};
use core::fmt::Write as _;

use tally_abi::{Error, PhaseConfig, PhaseState, Slice};
use tally_engine::phase::Tracker;
use tally_pmu::CostTable;

use super::Context;
use crate::measure::{
    refusal::Refusal,
    settings,
    upcall::{Upcall, UpcallHandler},
};

impl Context {
    /// Tracks the phases of the program from now on.
    ///
    /// # Errors
    /// The session is started, the processor has no cost model, the session has none of its events,
    /// or an interval is shorter than a round.
    pub fn track_phases(
        &mut self,
        config: PhaseConfig,
        handler: Option<UpcallHandler>,
    ) -> Result<(), Refusal> {
        if self.started {
            return Err(Error::WrongState.into());
        }
        let refused = |error, detail| Err(Refusal { error, detail });
        let found = settings::pmu()?;
        let Some(costs) = found.catalogue().costs() else {
            let name = found.catalogue().name();
            let detail = format!("phases: there is no cost model of {name} processors");
            return refused(Error::EventNotSupported, detail);
        };
        let (plan, mode) = (self.session.plan(), self.session.config().mode);
        let (model, places) = costs.model(&self.resolved, plan, mode);
        let missing = CostTable::missing(&model);
        if missing.len() == tally_abi::phase::COSTS {
            let events = costs.events().join(",");
            let detail =
                format!("phases: no event of the cost model is counted: add any of {events}");
            return refused(Error::EventNotSupported, detail);
        }
        self.check_interval(config)?;
        let mut text = String::new();
        for kind in missing {
            let _ = write!(text, " {}", kind.word());
        }
        if !text.is_empty() {
            log::info!("session {}: phases: costs without an event:{text}", self.id());
        }
        self.session.track_phases(Some(Tracker::new(config, model, &places)));
        self.change_handler = handler;
        Ok(())
    }

    /// Checks that an interval has at least a round of slices, at an IPC of one.
    fn check_interval(&self, config: PhaseConfig) -> Result<(), Refusal> {
        let slice = match self.session.config().slice {
            Slice::Cycles(length) | Slice::Instructions(length) => length,
            Slice::Auto => tally_abi::session::AUTO_UNIT,
        };
        let round = self.session.plan().round();
        let (interval, least) = (config.interval_instructions, round * slice);
        if interval >= least {
            return Ok(());
        }
        let detail = format!(
            "phases: an interval of {interval} instructions is shorter than a round of {round} slices \
             of {slice}: use {least} or more, or shorter slices"
        );
        Err(Refusal { error: Error::SliceOutOfRange, detail })
    }

    /// The program's phase.
    ///
    /// # Errors
    /// Phases are not tracked.
    pub fn phase(&self) -> Result<PhaseState, Error> {
        self.session.phase().copied().ok_or(Error::WrongState)
    }

    /// Takes a change of phase that has a handler: handler, phase, number of changes.
    pub(in crate::measure) fn take_change(&mut self) -> Option<Upcall> {
        let (phase, changes) = self.session.take_change()?;
        Some((self.change_handler?, phase.into(), changes))
    }
}
