//! A session as seen by a system call, wherever the measured program is.

use alloc::{boxed::Box, vec::Vec};

use tally_abi::{Error, PhaseConfig};

use super::{
    context::{Context, Samples},
    per_cpu::Measure,
    sequences::Sequences,
    upcall::{Threshold, UpcallHandler},
};
use crate::memory::user::UserMemory;

/// A session on which its owner makes a call. Its values are up to date.
pub enum SessionRef<'a> {
    /// The session of the program that runs on this CPU, opened by itself.
    Running(&'a mut Measure),
    /// A session on another program, which is not running.
    Parked {
        /// The context of that program.
        context: &'a mut Context,
        /// The program's memory, unless it has ended.
        memory: Option<&'a mut UserMemory>,
    },
}

impl SessionRef<'_> {
    /// Starts counting.
    ///
    /// # Errors
    /// The session is started already, the program has ended, or this CPU cannot count.
    pub fn start(self) -> Result<(), Error> {
        match self {
            SessionRef::Running(measure) => measure.start(),
            SessionRef::Parked { memory: None, .. } => Err(Error::WrongState),
            SessionRef::Parked { context, .. } => context.start_later(),
        }
    }

    /// Stops counting.
    ///
    /// # Errors
    /// The session is not started, or the program has ended.
    pub fn stop(&mut self) -> Result<(), Error> {
        match self {
            SessionRef::Running(measure) => measure.stop(),
            SessionRef::Parked { memory: None, .. } => Err(Error::WrongState),
            SessionRef::Parked { context, memory: Some(memory) } => context.stop_now(&memory.space),
        }
    }

    /// Maps the bank into `caller`, the owner's memory. Returns its address. `sequences` are the
    /// owner's.
    ///
    /// # Errors
    /// Counting has started, no memory is left, or the session is on a program that has ended.
    pub fn map(self, caller: &mut UserMemory, sequences: Sequences) -> Result<u64, Error> {
        match self {
            SessionRef::Running(measure) => measure.map(caller, sequences),
            SessionRef::Parked { memory: None, .. } => Err(Error::WrongState),
            SessionRef::Parked { context, .. } => {
                let id = context.id();
                context.map_for_owner(caller, id)
            }
        }
    }

    /// Sets the threshold of an event. It takes effect at the next publication.
    ///
    /// # Errors
    /// The event or the bank does not exist, or a handler is given for a session on another
    /// program, into which the upcall would be.
    pub fn set_threshold(self, threshold: Threshold) -> Result<(), Error> {
        match self {
            SessionRef::Running(measure) => measure.set_threshold(threshold),
            SessionRef::Parked { .. } if threshold.handler.is_some() => Err(Error::WrongState),
            SessionRef::Parked { context, .. } => context.set_threshold(threshold),
        }
    }

    /// Takes samples of an event. `caller` is the owner's memory.
    ///
    /// # Errors
    /// See [`Context::set_period`]; or the program has ended.
    pub fn set_period(self, caller: &mut UserMemory, samples: Samples) -> Result<(), Error> {
        match self {
            SessionRef::Running(measure) => measure.set_period(caller, samples),
            SessionRef::Parked { memory: None, .. } => Err(Error::WrongState),
            SessionRef::Parked { context, memory: Some(memory) } => {
                context.set_period(memory, samples)
            }
        }
    }

    /// Tracks the phases of the program.
    ///
    /// # Errors
    /// See [`Context::track_phases`]; or the session is on another program.
    pub fn track_phases(
        self,
        config: PhaseConfig,
        handler: Option<UpcallHandler>,
    ) -> Result<(), Error> {
        match self {
            SessionRef::Running(measure) => {
                let tracked = measure.context()?.track_phases(config, handler);
                tracked.map_err(|refusal| {
                    log::warn!("{}", refusal.detail);
                    refusal.error
                })
            }
            SessionRef::Parked { .. } => Err(Error::WrongState),
        }
    }

    /// Number of steps that publish the errors of its values; 0 without a bank that its owner
    /// reads.
    pub fn publishing_steps(&mut self) -> u64 {
        match self {
            SessionRef::Running(measure) => measure.publishing_steps(),
            SessionRef::Parked { context, .. } => context.publishing_steps(),
        }
    }

    /// Publishes a part of the errors of its values, one of [`Self::publishing_steps`].
    pub fn publish_errors(&mut self) {
        match self {
            SessionRef::Running(measure) => measure.publish_errors(),
            SessionRef::Parked { context, .. } => context.publish_errors(),
        }
    }

    /// Counts of the counter unit up to now.
    ///
    /// # Errors
    /// The session does not use the unit.
    pub fn unit_counts(&mut self) -> Result<Vec<u64>, Error> {
        match self {
            SessionRef::Running(measure) => measure.unit_counts(),
            SessionRef::Parked { context, .. } => context.unit_counts(),
        }
    }

    /// The context, for reading values.
    ///
    /// # Errors
    /// There is no session.
    pub fn context(&mut self) -> Result<&mut Context, Error> {
        match self {
            SessionRef::Running(measure) => measure.context(),
            SessionRef::Parked { context, .. } => Ok(context),
        }
    }

    /// Ends a session: stops counting, if it is started, and unmaps the bank from `caller`, the
    /// owner's memory. Returns the context of a session of the running program; the context of a
    /// session on another program stays until the owner's table entry is removed.
    pub fn close(self, caller: &mut UserMemory) -> Option<Box<Context>> {
        match self {
            SessionRef::Running(measure) => measure.close(caller),
            SessionRef::Parked { context, memory } => {
                if let Some(memory) = memory {
                    // A session that is not started needs no stop.
                    let _ = context.stop_now(&memory.space);
                }
                context.unmap(caller);
                None
            }
        }
    }
}
