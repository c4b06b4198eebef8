//! Changing the size of a mapping and its place (`mremap`).

use core::ops::Range;

use super::{
    area::{Area, Origin},
    frames::{self, FRAME_BYTES},
    space::{PageAccess, SpaceError},
    user::{STEP_PAGES, UserMemory},
};

/// What is left to do of a change of size.
pub enum Resized {
    /// Nothing: the mapping is at its old address.
    InPlace,
    /// The pages have to be moved to this address ([`UserMemory::move_pages`]).
    MovesTo(u64),
}

impl UserMemory {
    /// Extends the mapping at `old` to `bytes`, in place or, if it may move, elsewhere.
    ///
    /// # Errors
    /// `old` is not all in one area of the program's; there is no room.
    pub fn extend(
        &mut self,
        old: &Range<u64>,
        bytes: u64,
        may_move: bool,
    ) -> Result<Resized, SpaceError> {
        let bytes = bytes.checked_next_multiple_of(FRAME_BYTES).ok_or(SpaceError::OutOfMemory)?;
        let (start, area) = self.areas.at(old.start).ok_or(SpaceError::BadAddress)?;
        let area = area.after(old.start - start);
        if area.end < old.end || matches!(area.origin, Origin::Kernel | Origin::Leaving) {
            return Err(SpaceError::BadAddress);
        }
        self.areas.have_room()?;
        let grows = !matches!(area.origin, Origin::Stack | Origin::Segment);
        let added = self.areas.own(old.end, bytes.saturating_sub(old.end - old.start));
        if let Ok(added) = added
            && grows
            && self.areas.are_free(&added)
        {
            let more = Area { end: added.end, ..area.after(old.end - old.start) };
            self.areas.insert(added.start, more);
            return Ok(Resized::InPlace);
        }
        // With the tables for the pages.
        let has_room = frames::has_room_for_program((old.end - old.start) / 256);
        if !may_move || !grows || !has_room {
            return Err(SpaceError::OutOfMemory);
        }
        let new = self.areas.find_gap(bytes, false).ok_or(SpaceError::OutOfMemory)?;
        let origin = match area.origin {
            Origin::Heap => Origin::Zeros,
            origin => origin,
        };
        self.areas.insert(new.start, Area { end: new.end, access: area.access, origin });
        Ok(Resized::MovesTo(new.start))
    }

    /// The access and origin of the mapping that pages of `old` can be moved to.
    ///
    /// # Errors
    /// `old` is not all in one area of the program's, or does not move.
    pub fn movable(&self, old: &Range<u64>) -> Result<(PageAccess, Origin), SpaceError> {
        let (start, area) = self.areas.at(old.start).ok_or(SpaceError::BadAddress)?;
        let area = area.after(old.start - start);
        match area.origin {
            _ if area.end < old.end => Err(SpaceError::BadAddress),
            Origin::Kernel | Origin::Leaving | Origin::Stack | Origin::Segment => {
                Err(SpaceError::BadAddress)
            }
            Origin::Heap => Ok((area.access, Origin::Zeros)),
            origin => Ok((area.access, origin)),
        }
    }

    /// Makes a step of moving the pages of `old` to the mapping at `to`, from the page `from` on;
    /// after the last, `old` is unmapped. Returns the first page of the next step.
    ///
    /// # Errors
    /// No memory is left for tables.
    pub fn move_pages(
        &mut self,
        old: &Range<u64>,
        to: u64,
        from: u64,
    ) -> Result<Option<u64>, SpaceError> {
        let mut at = from;
        for _ in 0..STEP_PAGES {
            let Some(page) = self.space.next_page(at, old.end) else {
                // No page is left there but what other threads have touched meanwhile.
                while self.unmap(old.start, old.end - old.start, None)?.is_some() {}
                return Ok(None);
            };
            self.space.move_page(page, to + (page - old.start))?;
            at = page + FRAME_BYTES;
        }
        Ok(Some(at))
    }
}
