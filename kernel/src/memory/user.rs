//! A program's memory: its heap, its mappings, and what the kernel maps for it.
//!
//! A page that was mapped without any access (`PROT_NONE`) has no frame until the program gets
//! access to it: guard pages of stacks, and addresses that C libraries reserve, cost no memory.

use alloc::collections::BTreeMap;
use core::ops::Range;

use super::{
    frames::{self, FRAME_BYTES},
    heap,
    shared::Shared,
    space::{AddressSpace, PageAccess, SpaceError, USER_END},
};

/// The first address that `mmap` gives out: above every fixed program, far below the stack.
const MMAP_START: u64 = 0x1000_0000_0000;
/// The largest heap of a program (`brk`).
const MAX_HEAP_BYTES: u64 = 1 << 30;
/// The most mappings of one program: each takes some bytes of the kernel's memory.
const MAX_MAPPINGS: usize = 16 * 1024;

/// Which addresses of a program are taken, and by what.
struct Mappings {
    heap: Range<u64>,
    /// The program's segments and its mappings (`mmap`): start and end.
    mapped: BTreeMap<u64, u64>,
    /// Mappings that the program can neither unmap nor protect: start and end.
    held: BTreeMap<u64, u64>,
    /// Addresses of lent memory, by the kernel's address of it.
    lent: BTreeMap<u64, u64>,
    /// No gap is below this address.
    gap: u64,
}

impl Mappings {
    /// Those of a program that was just loaded: its segments, and an empty heap behind them.
    fn new(segments: &[Range<u64>]) -> Self {
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
    fn own(&self, start: u64, bytes: u64) -> Result<Range<u64>, SpaceError> {
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
    fn find_gap(&self, bytes: u64) -> Option<Range<u64>> {
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
    fn last_end_within(&self, range: &Range<u64>) -> Option<u64> {
        let last = |mappings: &BTreeMap<u64, u64>| {
            let (_, end) = mappings.range(..range.end).next_back()?;
            Some(*end).filter(|end| *end > range.start)
        };
        [&self.mapped, &self.held].into_iter().filter_map(last).max()
    }

    /// Addresses from `start` on were unmapped.
    fn lower_gap(&mut self, start: u64) {
        self.gap = self.gap.min(start.max(MMAP_START));
    }

    /// The end of the program's mapping that contains the page.
    fn end_of(&self, page: u64) -> Option<u64> {
        let (_, end) = self.mapped.range(..=page).next_back()?;
        (page < *end).then_some(*end)
    }

    /// Removes `range` from the program's mappings.
    ///
    /// # Errors
    /// It would split a mapping, and there would be too many, or no memory is left.
    fn cut(&mut self, range: &Range<u64>) -> Result<(), SpaceError> {
        let splits = |(start, end): (&u64, &u64)| *start < range.start && range.end < *end;
        if self.last_before(range.end).is_some_and(splits)
            && (self.mapped.len() >= MAX_MAPPINGS || !heap::has_room())
        {
            return Err(SpaceError::OutOfMemory);
        }
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
    fn last_before(&self, end: u64) -> Option<(&u64, &u64)> {
        self.mapped.range(..end).next_back()
    }
}

/// A program's memory: its address space, and what is mapped in it.
pub struct UserMemory {
    /// Its page tables.
    pub space: AddressSpace,
    mappings: Mappings,
}

impl UserMemory {
    /// That of a program loaded into `space`, in these segments.
    pub fn new(space: AddressSpace, segments: &[Range<u64>]) -> Self {
        UserMemory { space, mappings: Mappings::new(segments) }
    }

    /// Moves the end of the heap up to `end`, if possible. Returns where it is then.
    pub fn set_heap_end(&mut self, end: u64) -> u64 {
        let page = |address: u64| address.next_multiple_of(FRAME_BYTES);
        let heap = self.mappings.heap.clone();
        let (old, new) = (page(heap.end), page(end.min(USER_END)));
        // A mapping without access has no pages, which would stop the heap in `map_zeroed`.
        let fits = (heap.start..heap.start + MAX_HEAP_BYTES).contains(&end)
            && self.mappings.last_end_within(&(old..new)).is_none();
        // A heap that shrinks keeps its pages: C libraries unmap to free memory.
        if fits && (new <= old || self.space.map_zeroed(old, new - old, PageAccess::Write).is_ok())
        {
            self.mappings.heap.end = end.max(heap.end);
        }
        self.mappings.heap.end
    }

    /// Maps `bytes` of zeros. Returns their address.
    ///
    /// # Errors
    /// No memory is left, no gap is large enough, or there are too many mappings.
    pub fn map(&mut self, bytes: u64, access: PageAccess) -> Result<u64, SpaceError> {
        if self.mappings.mapped.len() >= MAX_MAPPINGS || !heap::has_room() {
            return Err(SpaceError::OutOfMemory);
        }
        let Range { start, end } = self.map_next(bytes, access)?;
        self.mappings.mapped.insert(start, end);
        log::trace!("address space {:#x}: mapped {start:#x} to {end:#x}", self.space.id());
        Ok(start)
    }

    /// Maps `bytes` of zeros for the kernel to write and the program to read. The program can
    /// neither unmap nor protect them.
    ///
    /// # Errors
    /// As [`Self::map`].
    pub fn map_for_kernel(&mut self, bytes: u64) -> Result<u64, SpaceError> {
        let Range { start, end } = self.map_next(bytes, PageAccess::Read)?;
        self.mappings.held.insert(start, end);
        Ok(start)
    }

    /// Unmaps a whole mapping of [`Self::map_for_kernel`], to which the kernel has no reference any
    /// more.
    ///
    /// # Errors
    /// There is no such mapping.
    pub fn unmap_for_kernel(&mut self, start: u64) -> Result<(), SpaceError> {
        let end = self.mappings.held.remove(&start).ok_or(SpaceError::BadAddress)?;
        self.mappings.lower_gap(start);
        self.space.unmap(start, end - start);
        Ok(())
    }

    /// Maps kernel memory read-only until the program ends. Returns the address; the same memory
    /// has the same address each time.
    ///
    /// # Errors
    /// No memory is left for page tables.
    pub fn lend(&mut self, shared: &'static Shared) -> Result<u64, SpaceError> {
        let kernels = shared.start().as_u64();
        if let Some(address) = self.mappings.lent.get(&kernels) {
            return Ok(*address);
        }
        let frames = shared.frames();
        let Range { start, end } =
            self.map_next(frames.len() as u64 * FRAME_BYTES, PageAccess::Nothing)?;
        if let Err(error) = self.space.lend(start, frames) {
            self.space.unmap(start, end - start);
            self.mappings.lower_gap(start);
            return Err(error);
        }
        self.mappings.held.insert(start, end);
        self.mappings.lent.insert(kernels, start);
        Ok(start)
    }

    fn map_next(&mut self, bytes: u64, access: PageAccess) -> Result<Range<u64>, SpaceError> {
        let bytes = bytes.checked_next_multiple_of(FRAME_BYTES).ok_or(SpaceError::OutOfMemory)?;
        let Range { start, end } = self.mappings.find_gap(bytes).ok_or(SpaceError::OutOfMemory)?;
        if access != PageAccess::Nothing {
            self.space.map_zeroed(start, bytes, access)?;
        }
        if start == self.mappings.gap {
            self.mappings.gap = end + FRAME_BYTES;
        }
        Ok(start..end)
    }

    /// Changes the access to pages of the program.
    ///
    /// # Errors
    /// Some of them are not the program's, and nothing has changed; or no memory is left.
    pub fn protect(
        &mut self,
        start: u64,
        bytes: u64,
        access: PageAccess,
    ) -> Result<(), SpaceError> {
        let Range { start, end } = self.mappings.own(start, bytes)?;
        let mut at = start;
        while at < end {
            at = match self.mappings.end_of(at) {
                Some(end) => end,
                None if self.space.next_page(at, at + FRAME_BYTES).is_some() => at + FRAME_BYTES,
                None => return Err(SpaceError::BadAddress),
            };
        }
        let there = self.space.pages(start, end);
        let missing = end - start - there * FRAME_BYTES;
        if access != PageAccess::Nothing && !frames::has_room_for_program(missing) {
            return Err(SpaceError::OutOfMemory);
        }
        let mut at = start;
        while let Some(page) = self.space.next_page(at, end) {
            self.fill(at..page, access)?;
            self.space.protect(page, FRAME_BYTES, access)?;
            at = page + FRAME_BYTES;
        }
        self.fill(at..end, access)
    }

    /// Maps pages of zeros in a gap, unless the access is [`PageAccess::Nothing`].
    fn fill(&mut self, gap: Range<u64>, access: PageAccess) -> Result<(), SpaceError> {
        if access == PageAccess::Nothing || gap.is_empty() {
            return Ok(());
        }
        self.space.map_zeroed(gap.start, gap.end - gap.start, access)
    }

    /// Writes zeros to the mapped pages of a range.
    ///
    /// # Errors
    /// The kernel holds part of it.
    pub fn clear(&mut self, start: u64, bytes: u64) -> Result<(), SpaceError> {
        let Range { start, end } = self.mappings.own(start, bytes)?;
        self.space.clear(start, end);
        Ok(())
    }

    /// Returns whether a page is the program's: mapped, or in one of its mappings.
    pub fn is_own(&self, page: u64) -> bool {
        let is_there = || self.space.next_page(page, page + FRAME_BYTES).is_some();
        self.mappings.own(page, FRAME_BYTES).is_ok()
            && (self.mappings.end_of(page).is_some() || is_there())
    }

    /// Unmaps a range, mapped or not.
    ///
    /// # Errors
    /// The kernel holds part of it, or there would be too many mappings.
    pub fn unmap(&mut self, start: u64, bytes: u64) -> Result<(), SpaceError> {
        let range = self.mappings.own(start, bytes)?;
        self.mappings.cut(&range)?;
        self.mappings.lower_gap(range.start);
        self.space.unmap(range.start, range.end - range.start);
        let space = self.space.id();
        log::trace!("address space {space:#x}: unmapped {:#x} to {:#x}", range.start, range.end);
        Ok(())
    }
}
