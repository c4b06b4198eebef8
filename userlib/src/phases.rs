//! Phases: the current bottlenecks of the program, and the prediction of the next ones (paper 004).

use tally_abi::{Error, PhaseConfig, PhaseState, phase::PhaseWords};

use crate::{Handler, counting::Session, error::check, handler_words, sys};

impl Session {
    /// Tracks the program's phases from the next start on. The session counts those events of the
    /// processor's cost model that it can; costs without an event are 0.
    ///
    /// # Errors
    /// The session is started or on another program, none of its events is in the cost model, or an
    /// interval is shorter than a round of slices.
    pub fn track_phases(&self, config: PhaseConfig) -> Result<(), Error> {
        // SAFETY: there is no handler.
        unsafe { self.track(config, [0, 0]) }
    }

    /// Tracks phases like [`Self::track_phases`], with an upcall when the program's phase has
    /// changed: `handler` gets the phase and the number of changes.
    ///
    /// # Errors
    /// See [`Self::track_phases`].
    ///
    /// # Safety
    /// While the session is open, the handler may run between any two instructions of the program,
    /// like that of [`Self::set_threshold_handler`].
    pub unsafe fn track_phases_handler(
        &self,
        config: PhaseConfig,
        handler: Handler,
    ) -> Result<(), Error> {
        // SAFETY: the caller guarantees it.
        unsafe { self.track(config, handler_words(handler)) }
    }

    /// # Safety
    /// The words are 0, or those of a handler that may be called.
    unsafe fn track(&self, config: PhaseConfig, [entry, data]: [u64; 2]) -> Result<(), Error> {
        let words = config.to_words();
        let arguments = [self.id(), words.as_ptr() as u64, entry, data, 0, 0];
        // SAFETY: the configuration is valid for reading; the caller guarantees the handler.
        check(unsafe { sys::tally_call(sys::SESSION_PHASES, arguments) }).map(|_| ())
    }

    /// Returns the phase of the last interval that has ended, the predicted next one, and the
    /// number of changes.
    ///
    /// # Errors
    /// Phases are not tracked.
    pub fn phase(&self) -> Result<PhaseState, Error> {
        let mut words = PhaseWords::default();
        let arguments = [self.id(), words.as_mut_ptr() as u64, 0, 0, 0, 0];
        // SAFETY: the words are valid for writing.
        check(unsafe { sys::tally_call(sys::SESSION_PHASE, arguments) })?;
        PhaseState::from_words(words).map_err(|_| Error::BadArgument)
    }
}
