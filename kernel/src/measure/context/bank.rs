//! A context's bank, mapped into the memory of the program that opened the session.
//!
//! The context and the area in which the program has mapped the pages share their ownership
//! ([`LentPages`]). If that program is the measured one, it writes the first page. If it is another
//! program, or the command line, the measured program does not see the pages.

use alloc::{sync::Arc, vec::Vec};

use tally_abi::{Error, bank};
use tally_engine::bank::Page;

use super::Context;
use crate::{
    measure::{readings::EVENTS_A_STEP, settings},
    memory::{lent_pages::LentPages, user::UserMemory},
};

/// Pages of a bank that the measured program writes.
const WRITABLE_PAGES: u64 = 1;

impl Context {
    /// Maps the bank into `memory`, for a measured program that opened the session itself. Returns
    /// its address.
    ///
    /// # Errors
    /// Counting has started, or no memory is left.
    pub(in crate::measure) fn map(&mut self, memory: &mut UserMemory) -> Result<u64, Error> {
        let page_bytes = size_of::<Page>() as u64;
        if let Some(address) = self.bank {
            return Ok(address + page_bytes);
        }
        if self.started {
            return Err(Error::WrongState);
        }
        let lent = self.allocate_bank()?;
        let address = memory.lend_pages(&lent, WRITABLE_PAGES).map_err(|_| {
            self.session.unmap_bank();
            Error::NoMemory
        })?;
        (self.bank, self.lent) = (Some(address), Some(lent));
        Ok(address + page_bytes)
    }

    /// Makes the bank of the session `session`, for a measured program that did not open it.
    ///
    /// # Errors
    /// Counting has started, threads are counted separately, or no memory is left.
    pub(in crate::measure) fn make_bank(&mut self, session: u32) -> Result<(), Error> {
        if self.session.has_bank() {
            return Ok(());
        }
        if self.started || self.instances.is_some() {
            return Err(Error::WrongState);
        }
        self.lent = Some(self.allocate_bank()?);
        self.session.make_bank_remote(session);
        Ok(())
    }

    /// Allocates the session's bank. The caller stores it in `lent`.
    fn allocate_bank(&mut self) -> Result<Arc<LentPages>, Error> {
        // A bank shows what the program itself can read from counters.
        if self.session.counts_metrics() {
            return Err(Error::EventNotSupported);
        }
        let lent = LentPages::allocate(bank::bytes(self.events()) as u64);
        let lent = lent.map_err(|_| Error::NoMemory)?;
        // SAFETY: (1) the frame holds zeros, which a page of atomics may; it is aligned as frames
        // are; (2) programs write none but their own page, whose words may be anything, and not
        // while the kernel does; (3) `lent` keeps it: that is dropped after the session, which
        // holds this reference, or after `unmap_bank`.
        let pages: Vec<_> = lent.views().map(|view| unsafe { &*view.cast::<Page>() }).collect();
        self.map_bank(&pages)?;
        Ok(lent)
    }

    /// Maps the bank into `owner`, the memory of the program that opened `session` on another
    /// program or on CPUs. Returns its address.
    ///
    /// # Errors
    /// See [`Self::make_bank`].
    pub(in crate::measure) fn map_for_owner(
        &mut self,
        owner: &mut UserMemory,
        session: u32,
    ) -> Result<u64, Error> {
        self.make_bank(session)?;
        let address = match (self.bank, &self.lent) {
            (Some(address), _) => address,
            (None, Some(lent)) => owner.lend_pages(lent, 0).map_err(|_| Error::NoMemory)?,
            (None, None) => return Err(Error::WrongState),
        };
        self.bank = Some(address);
        Ok(address + size_of::<Page>() as u64)
    }

    /// Makes the session's bank in `pages`, of which programs write the first.
    fn map_bank(&mut self, pages: &[&'static Page]) -> Result<(), Error> {
        let found = settings::pmu().map_err(|_| Error::NoPmu)?;
        let Some((own, pages)) = pages.split_first() else { return Err(Error::NoMemory) };
        let exposed =
            self.session.map_bank(own, pages.into(), |assignment| found.rdpmc(assignment));
        assert!(exposed, "every page was mapped just now");
        Ok(())
    }

    /// Number of calls of [`Self::publish_errors`] that publish all errors; 0 without a bank.
    pub(in crate::measure) fn publishing_steps(&self) -> u64 {
        let events = if self.session.has_bank() { self.events() } else { 0 };
        events.div_ceil(EVENTS_A_STEP) as u64
    }

    /// Publishes the errors of a part of the values in the bank, if there is one.
    pub(in crate::measure) fn publish_errors(&mut self) {
        self.session.publish_errors(self.publishing_steps() as usize);
    }

    /// Unmaps the bank from `owner`, the memory of the program that opened the session.
    pub fn unmap(&mut self, owner: &mut UserMemory) {
        self.session.unmap_bank();
        if let (Some(address), Some(lent)) = (self.bank.take(), self.lent.take()) {
            owner.unmap_lent(address, &lent).expect("only the kernel can unmap a bank");
        }
    }
}
