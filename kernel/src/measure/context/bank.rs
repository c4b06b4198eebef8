//! The bank of a context: mapped into the measured program's memory.

use tally_abi::{Error, bank};
use tally_engine::bank::Page;

use super::Context;
use crate::{
    measure::settings,
    memory::{space::PageAccess, user::UserMemory},
};

impl Context {
    /// Maps the bank into `memory`, the measured program's. Returns its address.
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
        let found = settings::pmu().map_err(|_| Error::NoPmu)?;
        let bytes = bank::bytes(self.events()) as u64;
        let address = memory.map_for_kernel(bytes).map_err(|_| Error::NoMemory)?;
        if self.is_own() {
            // A program that another measures may not write the word that stops the counters.
            memory.space.protect_all(address, address + page_bytes, PageAccess::Write);
        }
        self.bank = Some(address);
        let views = (address..address + bytes)
            .step_by(size_of::<Page>())
            .filter_map(|page| memory.space.page_view(page));
        // SAFETY: (1) the frame holds zeros, which a page of atomics may; it is aligned as frames
        // are; (2) programs write none but their own page, whose words may be anything, and not
        // while the kernel does; (3) it is freed in `unmap`, after the session that holds this
        // reference, as nothing else frees it (`UserMemory::map_for_kernel`).
        let mut pages = views.map(|view| unsafe { &*view.cast::<Page>() });
        let own = pages.next().expect("every page was mapped just now");
        let exposed =
            self.session.map_bank(own, pages.collect(), |assignment| found.rdpmc(assignment));
        assert!(exposed, "every page was mapped just now");
        Ok(address + page_bytes)
    }

    /// Unmaps the bank from `memory`, the measured program's.
    pub fn unmap(&mut self, memory: &mut UserMemory) {
        self.session.unmap_bank();
        if let Some(address) = self.bank.take() {
            memory.unmap_for_kernel(address).expect("only the kernel can unmap a bank");
        }
    }

    /// Drops the bank of a program that ends, whose memory is freed with it; the session stays.
    pub(in crate::measure) fn lose_bank(&mut self) {
        self.session.unmap_bank();
        self.bank = None;
    }
}
