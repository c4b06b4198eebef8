//! Changing the size of a mapping and its place (`mremap`).
//!
//! A mapping moves in steps. Each moves a part of the area with the part's pages, so that between
//! two steps, too, every page is in an area of its own kind. The new place is reserved meanwhile
//! ([`Origin::Arriving`]). Other threads may change either place between two steps: each step looks
//! at both again.

use super::{
    area::{Area, Origin},
    frames,
    space::{PageAccess, SpaceError, UserPage, UserRange},
    user::{STEP_PAGES, Step, UserMemory},
};

/// What is left to do of a change of size.
pub enum Resized {
    /// Nothing: the mapping is at its old address.
    InPlace,
    /// The pages have to be moved to this place ([`UserMemory::move_pages`]).
    MovesTo(UserRange),
}

impl UserMemory {
    /// Extends the mapping at `old` to `bytes`, in place or, if it may move, elsewhere.
    ///
    /// # Errors
    /// `old` is not all in one area of the program's; there is no room.
    pub fn extend(
        &mut self,
        old: UserRange,
        bytes: u64,
        may_move: bool,
    ) -> Result<Resized, SpaceError> {
        let area = self.area_of(old)?;
        self.areas.have_room()?;
        let grows = !matches!(area.origin, Origin::Stack | Origin::Segment);
        let added = self.areas.own(old.end(), bytes.saturating_sub(old.bytes()));
        if let Ok(added) = added
            && grows
            && self.areas.are_free(added)
        {
            self.areas.insert(added, area.after(old.bytes()));
            return Ok(Resized::InPlace);
        }
        // With the tables for the pages.
        let has_room = frames::has_room_for_program(old.bytes() / 256);
        if !may_move || !grows || !has_room {
            return Err(SpaceError::OutOfMemory);
        }
        let new = self.areas.find_gap(bytes, false).ok_or(SpaceError::OutOfMemory)?;
        self.reserve(new, old)?;
        Ok(Resized::MovesTo(new))
    }

    /// The area of all pages of `range`, from its start on.
    fn area_of(&self, range: UserRange) -> Result<Area, SpaceError> {
        let (start, area) = self.areas.at(range.start()).ok_or(SpaceError::BadAddress)?;
        let area = area.after(range.start() - start);
        let is_reserved = matches!(area.origin, Origin::Kernel(_) | Origin::Arriving);
        if area.end < range.end() || is_reserved { Err(SpaceError::BadAddress) } else { Ok(area) }
    }

    /// The area of pages that can be moved, as it is at its new place.
    ///
    /// # Errors
    /// `range` is not all in one area of the program's, or does not move.
    pub fn movable(&self, range: UserRange) -> Result<Area, SpaceError> {
        let area = self.area_of(range)?;
        let origin = match area.origin {
            Origin::Stack | Origin::Segment => return Err(SpaceError::BadAddress),
            Origin::Heap => Origin::Zeros,
            origin => origin,
        };
        Ok(Area { origin, ..area })
    }

    /// Fails unless a place is free, with room for another area.
    ///
    /// # Errors
    /// It is not, or page 0 is in it.
    pub fn free_place(&self, place: UserRange) -> Result<(), SpaceError> {
        self.areas.own(place.start(), place.bytes())?;
        let is_free = place.start() != 0 && self.areas.are_free(place);
        if is_free { Ok(()) } else { Err(SpaceError::Overlap) }
    }

    /// Reserves `new`, which is free, for the mapping at `old`, which becomes as long.
    ///
    /// # Errors
    /// `old` does not move, or there would be too many areas.
    pub fn reserve(&mut self, new: UserRange, old: UserRange) -> Result<(), SpaceError> {
        let area = self.movable(old)?;
        self.areas.have_room()?;
        let behind = UserPage::containing(new.start().saturating_add(old.bytes())).ok();
        let (place, added) = (new.before(behind), new.from(behind));
        let arriving = Area { end: 0, access: PageAccess::Nothing, origin: Origin::Arriving };
        self.areas.insert(place, arriving);
        if behind.is_some() && !added.is_empty() {
            self.areas.insert(added, area.after(old.bytes()));
        }
        Ok(())
    }

    /// Makes a step of moving the mapping at `old` to `new`, which is reserved, from the page
    /// `from` on if it is not the first.
    ///
    /// # Errors
    /// No memory is left for tables; or another thread has changed a mapping at one of the places
    /// meanwhile. What is left of the reservation is released.
    pub fn move_pages(
        &mut self,
        old: UserRange,
        new: UserRange,
        from: Step,
    ) -> Result<Step, SpaceError> {
        let moved = self.move_part(old, new, old.from(from));
        if moved.is_err() {
            self.areas.release(new);
        }
        moved
    }

    fn move_part(
        &mut self,
        old: UserRange,
        new: UserRange,
        rest: UserRange,
    ) -> Result<Step, SpaceError> {
        let next = self.space.page_after(rest, STEP_PAGES);
        let part = rest.before(next);
        let to = UserRange::new(new.start() + (part.start() - old.start()), part.bytes())?;
        let area = self.movable(part)?;
        self.areas.have_room()?;
        if !self.areas.are_arriving(to) || to.end() > new.end() {
            return Err(SpaceError::BadAddress);
        }
        let (mut failed, mut left) = (None, part);
        while let Some(page) = self.space.next_page(left).filter(|_| failed.is_none()) {
            left = left.split(page).1.without_first();
            let target = part.moved(page, to).ok_or(SpaceError::BadAddress)?;
            failed = self.space.move_page(page, target).err().map(|error| (page, error));
        }
        let done = part.before(failed.map(|(page, _)| page));
        if !done.is_empty() {
            let place = UserRange::new(to.start(), done.bytes())?;
            self.areas.cut(done);
            self.areas.cut(place);
            self.areas.insert(place, area);
        }
        failed.map_or(Ok(next), |(_, error)| Err(error))
    }
}
