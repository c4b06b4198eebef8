//! Direct mode of the program that runs on this CPU.

use alloc::boxed::Box;

use tally_abi::{Error, vpmu::Op};

use super::Measure;
use crate::measure::{direct::DirectCounters, refusal::Refusal, truth::mark};

impl Measure {
    /// Puts the running program into direct mode, which allows it RDPMC: it has no sessions, and
    /// its counters count from now on.
    ///
    /// # Errors
    /// The PMU's counters cannot be restored, or this CPU cannot count.
    pub fn install_direct(&mut self, counters: DirectCounters) -> Result<(), Refusal> {
        let multiplexer = self.multiplexer.as_mut().ok_or(Error::NoPmu)?;
        if !multiplexer.can_restore_direct() {
            let detail =
                "direct mode needs counters that can be written in full width, which this \
                          PMU's cannot: open a session instead"
                    .into();
            return Err(Refusal { error: Error::EventNotSupported, detail });
        }
        let own = self.slot.direct.insert(Box::new(counters));
        mark(Op::OpenSession, own.id);
        multiplexer.restore_direct(&own.direct);
        self.update_rdpmc_access();
        Ok(())
    }

    /// Ends the running program's direct mode. Returns whether it was in direct mode.
    pub fn close_direct(&mut self) -> bool {
        self.save_direct();
        let own = self.slot.direct.take();
        if let Some(own) = &own {
            mark(Op::CloseSession, own.id);
        }
        self.update_rdpmc_access();
        own.is_some()
    }

    /// Stops the counters of a direct-mode program and saves them.
    pub(super) fn save_direct(&mut self) {
        if let (Some(multiplexer), Some(own)) = (&mut self.multiplexer, &mut self.slot.direct) {
            multiplexer.save_direct(&mut own.direct);
        }
    }
}
