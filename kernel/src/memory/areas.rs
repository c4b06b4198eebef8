//! The areas of a program's addresses, none of which overlaps another.

use alloc::collections::BTreeMap;
use core::ops::Range;

use super::{
    area::{Area, Origin},
    frames::FRAME_BYTES,
    heap,
    space::{PageAccess, SpaceError, USER_END, UserRange},
};

/// The first address that `mmap` gives out: above every fixed program, far below the stack.
const MMAP_START: u64 = 0x1000_0000_0000;
/// The first address that `mmap` gives out below 2 GiB (`MAP_32BIT`).
const LOW_START: u64 = 0x4000_0000;
const LOW_END: u64 = 0x8000_0000;
/// The most areas of one program: each takes some bytes of the kernel's memory.
const MAX_AREAS: usize = 16 * 1024;

/// The areas, by their first address.
#[derive(Default)]
pub(super) struct Areas {
    map: BTreeMap<u64, Area>,
    /// Bytes that a search found room for, and where: from [`MMAP_START`] on no gap of as many is
    /// below. All 0 before the first search.
    searched: (u64, u64),
}

impl Areas {
    /// The area that contains an address, and its first address.
    pub(super) fn at(&self, address: u64) -> Option<(u64, &Area)> {
        let (start, area) = self.map.range(..=address).next_back()?;
        (address < area.end).then_some((*start, area))
    }

    /// The areas that overlap `range`, and their addresses.
    pub(super) fn within(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, &Area)> {
        let first = self.at(range.start).map_or(range.start, |(start, _)| start);
        self.map.range(first..range.end.max(first)).map(|(start, area)| (*start..area.end, area))
    }

    /// The range of `bytes` from `start` on, in whole pages.
    ///
    /// # Errors
    /// It is outside the program's half, or the kernel holds part of it.
    pub(super) fn own(&self, start: u64, bytes: u64) -> Result<UserRange, SpaceError> {
        let range = UserRange::new(start, bytes)?;
        let is_lent = |(_, area): (_, &Area)| matches!(area.origin, Origin::Kernel(_));
        if self.within(range.addresses()).any(is_lent) {
            return Err(SpaceError::BadAddress);
        }
        Ok(range)
    }

    /// Returns whether all of a range is in areas of the program's.
    pub(super) fn cover(&self, range: UserRange) -> bool {
        let mut at = range.start();
        for (area, of) in self.within(range.addresses()) {
            if area.start > at || matches!(of.origin, Origin::Arriving) {
                return false;
            }
            at = area.end;
        }
        at >= range.end()
    }

    /// Returns whether a range is in no area.
    pub(super) fn are_free(&self, range: UserRange) -> bool {
        self.within(range.addresses()).next().is_none()
    }

    /// The first range of `bytes` that `mmap` may give out, `low` if it must be below 2 GiB, with
    /// an unmapped page before and behind it, so that an access beyond either end faults.
    pub(super) fn find_gap(&mut self, bytes: u64, low: bool) -> Option<UserRange> {
        let (first, last) = if low { (LOW_START, LOW_END) } else { (MMAP_START, USER_END / 2) };
        let (known_bytes, known) = self.searched;
        let mut start = if low || bytes < known_bytes { first } else { known.max(first) };
        loop {
            let end = start.checked_add(bytes).filter(|end| *end < last)?;
            match self.within(start - FRAME_BYTES..end + FRAME_BYTES).last() {
                Some((in_the_way, _)) => start = in_the_way.end + FRAME_BYTES,
                None => break,
            }
        }
        // The smallest search says most: what has no room for it has none for a larger one.
        if !low && (bytes <= known_bytes || known_bytes == 0) {
            self.searched = (bytes, start);
        }
        UserRange::new(start, bytes).ok()
    }

    /// Fails if there is no room for two more areas, as many as a change in the middle of an area
    /// adds.
    pub(super) fn have_room(&self) -> Result<(), SpaceError> {
        if self.map.len() + 2 > MAX_AREAS || !heap::has_room() {
            return Err(SpaceError::OutOfMemory);
        }
        Ok(())
    }

    /// Fails if [`Self::cut`] of `range` would split an area, and there would be too many.
    pub(super) fn may_cut(&self, range: UserRange) -> Result<(), SpaceError> {
        let splits =
            |(area, _): (Range<u64>, &Area)| area.start < range.start() && range.end() < area.end;
        if self.within(range.addresses()).any(splits) { self.have_room() } else { Ok(()) }
    }

    /// Returns whether a mapping is being moved to all of a range.
    pub(super) fn are_arriving(&self, range: UserRange) -> bool {
        let mut all = self.within(range.addresses());
        let mut at = range.start();
        all.all(|(area, of)| {
            let follows = area.start <= at;
            at = area.end;
            follows && matches!(of.origin, Origin::Arriving)
        }) && at >= range.end()
    }

    /// Removes what is reserved of a range for a mapping that moves.
    pub(super) fn release(&mut self, range: UserRange) {
        let is_arriving = |(_, area): &(Range<u64>, &Area)| matches!(area.origin, Origin::Arriving);
        loop {
            let found = self.within(range.addresses()).find(is_arriving);
            let Some(area) = found.map(|(area, _)| area) else { return };
            let (start, end) = (area.start.max(range.start()), area.end.min(range.end()));
            let Ok(part) = UserRange::new(start, end - start) else { return };
            self.cut(part);
        }
    }

    /// Adds an area at free addresses, and joins it with its neighbours where that is possible.
    pub(super) fn insert(&mut self, range: UserRange, area: Area) {
        let start = range.start();
        let mut area = Area { end: range.end(), ..area };
        if let Some(next) = self.map.get(&area.end).filter(|next| area.joins(range.bytes(), next)) {
            let end = next.end;
            self.map.remove(&area.end);
            area.end = end;
        }
        match self.map.range_mut(..start).next_back() {
            Some((first, before))
                if before.end == start && before.joins(before.end - first, &area) =>
            {
                before.end = area.end
            }
            _ => _ = self.map.insert(start, area),
        }
    }

    /// Removes `range` from the areas.
    pub(super) fn cut(&mut self, range: UserRange) {
        self.split(range.start());
        self.split(range.end());
        self.map.extract_if(range.addresses(), |_, _| true).for_each(drop);
        if range.start() < self.searched.1 + FRAME_BYTES {
            self.searched = (0, 0);
        }
    }

    /// Splits the area that contains `address`, unless it begins there.
    fn split(&mut self, address: u64) {
        let found = self.at(address).map(|(start, area)| (start, area.after(address - start)));
        if let Some((start, rest)) = found.filter(|(start, _)| *start < address) {
            if let Some(area) = self.map.get_mut(&start) {
                area.end = address;
            }
            self.map.insert(address, rest);
        }
    }

    /// Changes the access to all areas of a range.
    pub(super) fn set_access(&mut self, range: UserRange, access: PageAccess) {
        self.split(range.start());
        self.split(range.end());
        let all = self.map.extract_if(range.addresses(), |_, _| true);
        let changed: alloc::vec::Vec<_> = all.collect();
        for (start, area) in changed {
            if let Ok(range) = UserRange::new(start, area.end - start) {
                self.insert(range, Area { access, ..area });
            }
        }
    }

    /// Checks that areas are of the program's half, and that none overlaps another.
    ///
    /// # Panics
    /// They are not.
    pub(super) fn check(&self) {
        let mut at = 0;
        for (range, _) in self.all() {
            let is_right = at <= range.start && range.start < range.end && range.end <= USER_END;
            assert!(is_right, "audit: area {range:x?} behind {at:#x}");
            at = range.end;
        }
    }

    /// Every area, by address.
    pub(super) fn all(&self) -> impl Iterator<Item = (Range<u64>, &Area)> {
        self.map.iter().map(|(start, area)| (*start..area.end, area))
    }
}
