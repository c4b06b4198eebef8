//! Which addresses of a program are taken.

use alloc::collections::BTreeMap;
use core::ops::Range;

use super::{
    frames::FRAME_BYTES,
    heap,
    space::{SpaceError, USER_END},
};

/// The first address that `mmap` gives out: above every fixed program, far below the stack.
const MMAP_START: u64 = 0x1000_0000_0000;
/// The most mappings of one program: each takes some bytes of the kernel's memory.
pub(super) const MAX_MAPPINGS: usize = 16 * 1024;

/// The address ranges of a program that are in use, and their use.
pub(super) struct Mappings {
    pub(super) heap: Range<u64>,
    /// The program's segments and its mappings (`mmap`): start and end.
    pub(super) mapped: BTreeMap<u64, u64>,
    /// Mappings that the program can neither unmap nor protect: start and end.
    pub(super) held: BTreeMap<u64, u64>,
    /// Addresses of lent memory, by the kernel's address of it.
    pub(super) lent: BTreeMap<u64, u64>,
    /// No gap is below this address.
    pub(super) gap: u64,
}

impl Mappings {
    /// Those of a program that was just loaded: its segments, and an empty heap behind them.
    pub(super) fn new(segments: &[Range<u64>]) -> Self {
        let heap = segments.iter().map(|segment| segment.end).max().unwrap_or_default();
        Mappings {
            heap: heap..heap,
            mapped: segments.iter().map(|segment| (segment.start, segment.end)).collect(),
            held: BTreeMap::new(),
            lent: BTreeMap::new(),
            gap: MMAP_START,
        }
    }

    /// The range of `bytes` from `start` on, in whole pages.
    ///
    /// # Errors
    /// It is outside the program's half, or the kernel holds part of it.
    pub(super) fn own(&self, start: u64, bytes: u64) -> Result<Range<u64>, SpaceError> {
        let bytes = bytes.checked_next_multiple_of(FRAME_BYTES).ok_or(SpaceError::BadAddress)?;
        let end = start.checked_add(bytes).filter(|end| *end <= USER_END);
        let end = end.ok_or(SpaceError::BadAddress)?;
        let is_held = self.held.iter().any(|(held, held_end)| start < *held_end && *held < end);
        if is_held || !start.is_multiple_of(FRAME_BYTES) {
            return Err(SpaceError::BadAddress);
        }
        Ok(start..end)
    }

    /// The first range of `bytes` with an unmapped page before and behind it, so that an access
    /// beyond either end faults.
    pub(super) fn find_gap(&self, bytes: u64) -> Option<Range<u64>> {
        let mut start = self.gap;
        loop {
            let end = start.checked_add(bytes).filter(|end| *end < USER_END / 2)?;
            let with_guards = start - FRAME_BYTES..end + FRAME_BYTES;
            let heap = Some(self.heap.end.next_multiple_of(FRAME_BYTES))
                .filter(|end| self.heap.start < with_guards.end && *end > with_guards.start);
            match self.last_end_within(&with_guards).max(heap) {
                Some(in_the_way) => start = in_the_way + FRAME_BYTES,
                None => return Some(start..end),
            }
        }
    }

    /// The end of the last mapping that overlaps `range`, if one does.
    pub(super) fn last_end_within(&self, range: &Range<u64>) -> Option<u64> {
        let last = |mappings: &BTreeMap<u64, u64>| {
            let (_, end) = mappings.range(..range.end).next_back()?;
            Some(*end).filter(|end| *end > range.start)
        };
        [&self.mapped, &self.held].into_iter().filter_map(last).max()
    }

    /// Addresses from `start` on were unmapped.
    pub(super) fn lower_gap(&mut self, start: u64) {
        self.gap = self.gap.min(start.max(MMAP_START));
    }

    /// The end of the program's mapping that contains the page.
    pub(super) fn end_of(&self, page: u64) -> Option<u64> {
        let (_, end) = self.mapped.range(..=page).next_back()?;
        (page < *end).then_some(*end)
    }

    /// Fails if [`Self::cut`] of `range` would split a mapping, and there would be too many, or no
    /// memory is left.
    pub(super) fn may_cut(&self, range: &Range<u64>) -> Result<(), SpaceError> {
        let splits = |(start, end): (&u64, &u64)| *start < range.start && range.end < *end;
        if self.last_before(range.end).is_some_and(splits)
            && (self.mapped.len() >= MAX_MAPPINGS || !heap::has_room())
        {
            return Err(SpaceError::OutOfMemory);
        }
        Ok(())
    }

    /// Removes `range` from the program's mappings.
    ///
    /// # Errors
    /// As [`Self::may_cut`].
    pub(super) fn cut(&mut self, range: &Range<u64>) -> Result<(), SpaceError> {
        self.may_cut(range)?;
        while let Some((start, end)) =
            self.last_before(range.end).filter(|(_, end)| **end > range.start)
        {
            let (start, end) = (*start, *end);
            self.mapped.remove(&start);
            if start < range.start {
                self.mapped.insert(start, range.start);
            }
            if range.end < end {
                self.mapped.insert(range.end, end);
            }
        }
        Ok(())
    }

    /// The last mapping that begins before `end`.
    pub(super) fn last_before(&self, end: u64) -> Option<(&u64, &u64)> {
        self.mapped.range(..end).next_back()
    }
}
