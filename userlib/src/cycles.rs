//! Breakdown of the program's cycles, read by the program itself while it runs: the dispatch slots
//! as a tree of parts with their error bars, from the logical counters of a session's bank, without
//! a system call.

use alloc::vec::Vec;
use core::arch::x86_64::__cpuid;

use tally_abi::{Error, SessionConfig};
use tally_breakdown::{Count, CyclePart, INDEPENDENT, Stack, no_stack, slot_tree, stack_of};

use crate::{bank::Bank, counting::Session, error::OpenError, sys};

/// A session on the events by which the processor distinguishes the causes of cycles.
#[derive(Debug)]
pub struct Cycles {
    // Declared before the session, so that it is dropped first: the bank ends when the session
    // closes.
    bank: Bank<'static>,
    session: Session,
    stack: &'static Stack,
    /// Names of the events, in the order of the session's list.
    events: Vec<&'static str>,
}

// SAFETY: all threads of a program share its memory, and any may read the bank: its words are read
// atomically, and RDPMC is permitted in every thread.
unsafe impl Send for Cycles {}

impl Cycles {
    /// Opens a session, stopped, on the processor's events, and maps its bank.
    ///
    /// # Errors
    /// The processor has no such events, the session is refused, or there is no memory.
    pub fn open(config: SessionConfig) -> Result<Cycles, OpenError> {
        let Some(stack) = stack_of(__cpuid(1).eax) else { return Err(none()) };
        let events = stack.of_cycles();
        let list = events.join(",");
        let session = Session::open(&list, config)?;
        let bank = session.map()?.forever();
        Ok(Cycles { bank, session, stack, events })
    }

    /// Starts or resumes counting.
    ///
    /// # Errors
    /// The session is already started.
    pub fn start(&self) -> Result<(), Error> {
        self.session.start()
    }

    /// Stops counting.
    ///
    /// # Errors
    /// The session is already stopped.
    pub fn stop(&self) -> Result<(), Error> {
        self.session.stop()
    }

    /// Returns the session that counts.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the kinds of cycles that the processor does not distinguish.
    pub fn not_told_apart(&self) -> &'static str {
        self.stack.missing()
    }

    /// Returns the parts of the cycles so far, as a tree: each part follows its parent, *retiring*
    /// first. The cycles of level 1 sum to all cycles, and those of a part's children to the part.
    /// `None` while an event was counted in too few slices for an estimate.
    ///
    /// Makes no system call, except when the heap gets its first memory. The error bars of parts
    /// assume that the errors of the events are independent.
    pub fn read(&self) -> Option<Vec<CyclePart>> {
        let count = |event: usize| {
            let details = self.bank.counter(event)?.details();
            let (estimate, half_width_95) = (details.value as f64, details.half_width_95?);
            Some(Count { estimate, half_width_95, truth: None })
        };
        let counts: Vec<Count> = (0..self.events.len()).map(count).collect::<Option<_>>()?;
        let named = self.events.iter().zip(counts).collect::<Vec<_>>();
        let find = |name: &str| named.iter().find(|(event, _)| **event == name).map(|it| it.1);
        Some(slot_tree(&find, INDEPENDENT, self.stack))
    }
}

/// Returns the error that there are no such events.
fn none() -> OpenError {
    if sys::is_tally() {
        OpenError { error: Error::EventNotSupported, detail: no_stack() }
    } else {
        Error::NotTally.into()
    }
}
