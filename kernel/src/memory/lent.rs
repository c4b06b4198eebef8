//! Kernel memory that a program has mapped.

use alloc::sync::Arc;

use super::{
    area::{Area, Origin},
    frames::{self, FRAME_BYTES},
    lent_pages::{Lent, LentPages},
    shared::Shared,
    space::{PageAccess, SpaceError, UserPage, UserRange},
    user::{Place, UserMemory},
};

impl UserMemory {
    /// Maps kernel memory read-only until the program ends. Returns the address; the same memory
    /// has the same address each time.
    ///
    /// # Errors
    /// No memory is left for page tables.
    pub fn lend(&mut self, shared: &'static Shared) -> Result<u64, SpaceError> {
        let kernels = shared.start().as_u64();
        if let Some(address) = self.lent.get(&kernels) {
            return Ok(*address);
        }
        let start = self.map_lent(&Lent::Shared(shared), 0)?;
        self.lent.insert(kernels, start);
        Ok(start)
    }

    /// Maps pages until [`Self::unmap_lent`], or until the program ends. The program can write the
    /// first `writable` of them, and read the others; it can neither unmap nor protect them.
    /// Returns the address.
    ///
    /// # Errors
    /// No memory is left for page tables.
    pub fn lend_pages(&mut self, pages: &Arc<LentPages>, writable: u64) -> Result<u64, SpaceError> {
        self.map_lent(&Lent::Pages(pages.clone()), writable)
    }

    fn map_lent(&mut self, lent: &Lent, writable: u64) -> Result<u64, SpaceError> {
        let frames = lent.frames();
        let bytes = frames.len() as u64 * FRAME_BYTES;
        // With the tables for the pages.
        if !frames::has_room_for_program(bytes / 256) {
            return Err(SpaceError::OutOfMemory);
        }
        let origin = Origin::Kernel(lent.clone());
        let start = self.map(Place::Hint(0), bytes, (PageAccess::Read, origin.clone()))?;
        let all = UserRange::new(start, bytes)?;
        let first_read = UserPage::containing(start + writable * FRAME_BYTES)?;
        let (own, rest) = all.split(first_read);
        if !own.is_empty() {
            self.areas.cut(own);
            self.areas.insert(own, Area { end: 0, access: PageAccess::Write, origin });
        }
        let (owns, rests) = frames.split_at(writable as usize);
        let mapped = self.space.lend(own, owns, PageAccess::Write);
        if let Err(error) = mapped.and_then(|()| self.space.lend(rest, rests, PageAccess::Read)) {
            self.space.unmap(all);
            self.areas.cut(all);
            return Err(error);
        }
        Ok(start)
    }

    /// Unmaps `pages` from `start` on.
    ///
    /// # Errors
    /// They are not there.
    pub fn unmap_lent(&mut self, start: u64, pages: &Arc<LentPages>) -> Result<(), SpaceError> {
        let lent = Lent::Pages(pages.clone());
        let range = UserRange::new(start, lent.frames().len() as u64 * FRAME_BYTES)?;
        let is_of = |area: &Area| matches!(&area.origin, Origin::Kernel(of) if of.is(&lent));
        let are_there = self.areas.within(range.addresses()).all(|(_, area)| is_of(area));
        if !are_there {
            return Err(SpaceError::BadAddress);
        }
        self.space.unmap(range);
        self.areas.cut(range);
        Ok(())
    }
}
