//! The running program's bank.

use tally_abi::Error;

use super::Measure;
use crate::{measure::sequences::Sequences, memory::user::UserMemory};

impl Measure {
    /// Number of calls of [`Self::publish_errors`] that publish all errors; 0 without a bank.
    pub(in crate::measure) fn publishing_steps(&self) -> u64 {
        self.slot.context.as_ref().map_or(0, |context| context.publishing_steps())
    }

    /// Publishes the errors of a part of the running program's values in its bank, if it has one.
    pub(in crate::measure) fn publish_errors(&mut self) {
        if let Some(context) = &mut self.slot.context {
            context.publish_errors();
        }
    }

    /// Maps the running program's bank into its memory. `sequences` are the program's restartable
    /// sequences, if it has any. Returns the bank's address.
    pub(in crate::measure) fn map(
        &mut self,
        memory: &mut UserMemory,
        sequences: Sequences,
    ) -> Result<u64, Error> {
        let address = self.slot.context.as_mut().ok_or(Error::NoSession)?.map(memory)?;
        if sequences.exist() {
            self.slot.sequences = sequences;
        }
        self.update_rdpmc_access();
        Ok(address)
    }
}
