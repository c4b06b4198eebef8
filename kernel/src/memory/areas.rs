//! The areas of a program's addresses, none of which overlaps another.

use alloc::collections::BTreeMap;
use core::ops::Range;

use super::{
    area::{Area, Origin},
    frames::FRAME_BYTES,
    heap,
    space::{PageAccess, SpaceError, USER_END},
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
    /// No gap from [`MMAP_START`] on is below this address.
    gap: u64,
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
    pub(super) fn own(&self, start: u64, bytes: u64) -> Result<Range<u64>, SpaceError> {
        let bytes = bytes.checked_next_multiple_of(FRAME_BYTES).ok_or(SpaceError::BadAddress)?;
        let end = start.checked_add(bytes).filter(|end| *end <= USER_END);
        let range = start..end.ok_or(SpaceError::BadAddress)?;
        let is_held =
            self.within(range.clone()).any(|(_, area)| matches!(area.origin, Origin::Kernel));
        if is_held || !start.is_multiple_of(FRAME_BYTES) {
            return Err(SpaceError::BadAddress);
        }
        Ok(range)
    }

    /// Returns whether all of a range is in areas of the program's.
    pub(super) fn cover(&self, range: &Range<u64>) -> bool {
        let mut at = range.start;
        for (area, of) in self.within(range.clone()) {
            if area.start > at || matches!(of.origin, Origin::Leaving) {
                return false;
            }
            at = area.end;
        }
        at >= range.end
    }

    /// Returns whether a range is in no area.
    pub(super) fn are_free(&self, range: &Range<u64>) -> bool {
        self.within(range.clone()).next().is_none()
    }

    /// The first range of `bytes` that `mmap` may give out, `low` if it must be below 2 GiB, with
    /// an unmapped page before and behind it, so that an access beyond either end faults.
    pub(super) fn find_gap(&self, bytes: u64, low: bool) -> Option<Range<u64>> {
        let (first, last) = if low { (LOW_START, LOW_END) } else { (MMAP_START, USER_END / 2) };
        let mut start = if low { first } else { self.gap.max(first) };
        loop {
            let end = start.checked_add(bytes).filter(|end| *end < last)?;
            match self.within(start - FRAME_BYTES..end + FRAME_BYTES).last() {
                Some((in_the_way, _)) => start = in_the_way.end + FRAME_BYTES,
                None => return Some(start..end),
            }
        }
    }

    /// The first part of `range` that is being unmapped.
    pub(super) fn first_leaving(&self, range: &Range<u64>) -> Option<Range<u64>> {
        let is_leaving = |(_, area): &(Range<u64>, &Area)| matches!(area.origin, Origin::Leaving);
        let (area, _) = self.within(range.clone()).find(is_leaving)?;
        Some(area.start.max(range.start)..area.end.min(range.end))
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
    pub(super) fn may_cut(&self, range: &Range<u64>) -> Result<(), SpaceError> {
        let splits =
            |(area, _): (Range<u64>, &Area)| area.start < range.start && range.end < area.end;
        if self.within(range.clone()).any(splits) { self.have_room() } else { Ok(()) }
    }

    /// Adds an area at free addresses, and joins it with its neighbours where that is possible.
    pub(super) fn insert(&mut self, start: u64, mut area: Area) {
        if start == self.gap.max(MMAP_START) {
            self.gap = area.end + FRAME_BYTES;
        }
        if let Some(next) = self.map.get(&area.end).filter(|next| area.joins(next)) {
            let end = next.end;
            self.map.remove(&area.end);
            area.end = end;
        }
        match self.map.range_mut(..start).next_back() {
            Some((_, before)) if before.end == start && before.joins(&area) => {
                before.end = area.end
            }
            _ => _ = self.map.insert(start, area),
        }
    }

    /// Removes `range` from the areas.
    pub(super) fn cut(&mut self, range: &Range<u64>) {
        self.split(range.start);
        self.split(range.end);
        self.map.extract_if(range.clone(), |_, _| true).for_each(drop);
        self.gap = self.gap.min(range.start.max(MMAP_START));
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
    pub(super) fn set_access(&mut self, range: &Range<u64>, access: PageAccess) {
        self.split(range.start);
        self.split(range.end);
        let changed: alloc::vec::Vec<_> = self.map.extract_if(range.clone(), |_, _| true).collect();
        for (start, area) in changed {
            self.insert(start, Area { access, ..area });
        }
    }

    /// Every area, by address.
    pub(super) fn all(&self) -> impl Iterator<Item = (Range<u64>, &Area)> {
        self.map.iter().map(|(start, area)| (*start..area.end, area))
    }
}
