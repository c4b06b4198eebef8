//! Where the program's cycles go, read by the program itself while it runs: the slots of dispatch
//! as a tree of parts with their bars, from the logical counters of a session's bank, without a
//! system call.

use alloc::vec::Vec;
use core::arch::x86_64::__cpuid;

use tally_abi::{Error, SessionConfig};
use tally_breakdown::{Count, CyclePart, INDEPENDENT, Stack, no_stack, slot_tree, stack_of};

use crate::{bank::Bank, counting::Session, error::OpenError, sys};

/// A session on the events by which the processor tells apart what cycles go to.
#[derive(Debug)]
pub struct Cycles {
    // Before the session: it is gone when the session closes.
    bank: Bank<'static>,
    session: Session,
    stack: &'static Stack,
    /// Their names, in the order of the session's list.
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
    /// The session is started.
    pub fn start(&self) -> Result<(), Error> {
        self.session.start()
    }

    /// Stops counting.
    ///
    /// # Errors
    /// The session is stopped.
    pub fn stop(&self) -> Result<(), Error> {
        self.session.stop()
    }

    /// The session that counts.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// What the processor does not tell apart.
    pub fn not_told_apart(&self) -> &'static str {
        self.stack.missing()
    }

    /// The parts of the cycles so far, as a tree: each behind the part that it is one of,
    /// *retiring* first. The cycles of level 1 sum to all cycles, those of a part's parts to it.
    /// None while an event was counted in too few slices for an estimate.
    ///
    /// No system call, but where the heap gets its first memory. The bars of parts take the errors
    /// of their events as independent.
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

/// The error that there are no such events.
fn none() -> OpenError {
    if sys::is_tally() {
        OpenError { error: Error::EventNotSupported, detail: no_stack() }
    } else {
        Error::NotTally.into()
    }
}
