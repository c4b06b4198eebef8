//! A program's memory: its heap, its mappings, and the pages that the kernel lends it.
//!
//! A page that is mapped without access (`PROT_NONE`) has no frame until `mprotect` permits an
//! access. So guard pages of stacks, and addresses that C libraries reserve, take no memory.
//!
//! If the work of a method grows with the number of pages, the method does one step of it and
//! returns the first page of the next step ([`StepResult`]). Other threads of the program may run
//! between two steps.

use core::ops::Range;

use super::{
    frames::{Claim, FRAME_BYTES},
    heap,
    mappings::{MAX_MAPPINGS, Mappings},
    shared::Shared,
    space::{AddressSpace, PageAccess, SpaceError, USER_END},
};

/// The largest heap of a program (`brk`).
const MAX_HEAP_BYTES: u64 = 1 << 30;
/// Pages of one step, which takes some hundreds of microseconds.
const STEP_PAGES: u64 = 256;

/// The first page of the next step; `None` if all pages are done.
pub type StepResult = Result<Option<u64>, SpaceError>;

/// The result of a step of [`UserMemory::fill`].
pub enum FillStep {
    /// The first page of the next step.
    Next(u64),
    /// The mapping at this address is complete.
    Done(u64),
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

    /// The end of the heap.
    pub fn heap_end(&self) -> u64 {
        self.mappings.heap.end
    }

    /// Moves the end of the heap up to `end`, if possible. Returns the first of the heap's new
    /// pages, which have no memory yet, and a claim for them; none if there are no new ones.
    pub fn move_heap_end(&mut self, end: u64) -> Option<(u64, Claim)> {
        let page = |address: u64| address.next_multiple_of(FRAME_BYTES);
        let heap = self.mappings.heap.clone();
        let (old, new) = (page(heap.end), page(end.min(USER_END)));
        if !(heap.start..heap.start + MAX_HEAP_BYTES).contains(&end) {
            return None;
        }
        if new <= old {
            // A heap that shrinks keeps its pages: C libraries unmap to free memory.
            self.mappings.heap.end = end.max(heap.end);
            return None;
        }
        // Not all of a mapping has pages.
        let is_free = self.mappings.last_end_within(&(old..new)).is_none()
            && self.space.next_page(old, new).is_none();
        let claim = self.space.claim(new - old).ok().filter(|_| is_free)?;
        self.mappings.heap.end = end;
        Some((old, claim))
    }

    /// Makes a step of mapping zeros in the heap's pages from `from` on. If there is no memory, the
    /// heap ends there.
    pub fn fill_heap(&mut self, from: u64, claim: &mut Option<Claim>) -> Option<u64> {
        let end = self.mappings.heap.end.next_multiple_of(FRAME_BYTES);
        self.set_access(from..end, PageAccess::Write, claim).unwrap_or_else(|_| {
            self.mappings.heap.end = from;
            None
        })
    }

    /// Reserves a mapping of `bytes`, which has no pages yet. Returns its address, and a claim for
    /// its pages unless the access is [`PageAccess::Nothing`].
    ///
    /// # Errors
    /// There is no memory for pages with this access, no gap is large enough, or there are too many
    /// mappings.
    pub fn reserve(
        &mut self,
        bytes: u64,
        access: PageAccess,
    ) -> Result<(u64, Option<Claim>), SpaceError> {
        if self.mappings.mapped.len() >= MAX_MAPPINGS || !heap::has_room() {
            return Err(SpaceError::OutOfMemory);
        }
        let bytes = bytes.checked_next_multiple_of(FRAME_BYTES).ok_or(SpaceError::OutOfMemory)?;
        let claim = match access {
            PageAccess::Nothing => None,
            _ => Some(self.space.claim(bytes)?),
        };
        let Range { start, end } = self.map_next(bytes, PageAccess::Nothing)?;
        self.mappings.mapped.insert(start, end);
        log::trace!("address space {:#x}: mapped {start:#x} to {end:#x}", self.space.id());
        Ok((start, claim))
    }

    /// Makes a step of mapping zeros in the pages from `from` on of a mapping. Returns the
    /// mapping's address when all of it is there.
    ///
    /// # Errors
    /// No memory is left, and the mapping is removed; or another thread has removed it.
    pub fn fill(
        &mut self,
        from: u64,
        access: PageAccess,
        claim: &mut Option<Claim>,
    ) -> Result<FillStep, SpaceError> {
        let last = self.mappings.mapped.range(..=from).next_back();
        let found = last.map(|(start, end)| *start..*end).filter(|range| range.contains(&from));
        let Range { start, end } = found.ok_or(SpaceError::BadAddress)?;
        match self.set_access(from..end, access, claim) {
            Ok(Some(next)) => Ok(FillStep::Next(next)),
            Ok(None) => Ok(FillStep::Done(start)),
            Err(error) => {
                self.space.unmap(start, end - start);
                self.mappings.mapped.remove(&start);
                self.mappings.lower_gap(start);
                Err(error)
            }
        }
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

    /// Makes a step of changing the access to pages of the program, from the page `from` on if it
    /// is not the first.
    ///
    /// # Errors
    /// At the first step: some of them are not the program's, or there is no memory, and nothing
    /// has changed. Later, no memory is left.
    pub fn protect(
        &mut self,
        start: u64,
        bytes: u64,
        access: PageAccess,
        from: Option<u64>,
        claim: &mut Option<Claim>,
    ) -> StepResult {
        let range = self.mappings.own(start, bytes)?;
        if from.is_none() {
            *claim = self.may_protect(&range, access)?;
        }
        self.set_access(from.unwrap_or(range.start)..range.end, access, claim)
    }

    /// Checks that a range is the program's; claims memory for its missing pages.
    fn may_protect(
        &self,
        range: &Range<u64>,
        access: PageAccess,
    ) -> Result<Option<Claim>, SpaceError> {
        let Range { start, end } = *range;
        let mut at = start;
        while at < end {
            at = match self.mappings.end_of(at) {
                Some(end) => end,
                None if self.space.next_page(at, at + FRAME_BYTES).is_some() => at + FRAME_BYTES,
                None => return Err(SpaceError::BadAddress),
            };
        }
        let missing = end - start - self.space.pages(start, end) * FRAME_BYTES;
        match access {
            PageAccess::Nothing => Ok(None),
            _ => self.space.claim(missing).map(Some),
        }
    }

    /// Makes a step of giving pages this access, mapping zeros where there is no page, unless the
    /// access is [`PageAccess::Nothing`]; with frames of the claim, if there is one.
    fn set_access(
        &mut self,
        range: Range<u64>,
        access: PageAccess,
        claim: &mut Option<Claim>,
    ) -> StepResult {
        let Range { start: mut at, end } = range;
        let mut left = STEP_PAGES;
        while at < end {
            let page = self.space.next_page(at, end);
            let gap = at..page.unwrap_or(end);
            if access != PageAccess::Nothing && !gap.is_empty() {
                let pages = left.min((gap.end - gap.start) / FRAME_BYTES);
                match claim {
                    Some(claim) => {
                        self.space.map_claimed(at, pages * FRAME_BYTES, access, claim)?;
                    }
                    None => self.space.map_zeroed(at, pages * FRAME_BYTES, access)?,
                }
                (at, left) = (at + pages * FRAME_BYTES, left - pages);
            } else if let Some(page) = page {
                self.space.protect(page, FRAME_BYTES, access)?;
                (at, left) = (page + FRAME_BYTES, left - 1);
            } else {
                at = end;
            }
            if left == 0 {
                break;
            }
        }
        Ok((at < end).then_some(at))
    }

    /// Makes a step of writing zeros to the mapped pages of a range, from the page `from` on if it
    /// is not the first.
    ///
    /// # Errors
    /// The kernel holds part of it.
    pub fn clear(&mut self, start: u64, bytes: u64, from: Option<u64>) -> StepResult {
        let range = self.mappings.own(start, bytes)?;
        let start = from.unwrap_or(range.start);
        let next = self.space.page_after(start, range.end, STEP_PAGES);
        self.space.clear(start, next.unwrap_or(range.end));
        Ok(next)
    }

    /// Returns whether a page is the program's: mapped, or in one of its mappings.
    pub fn is_own(&self, page: u64) -> bool {
        let is_there = || self.space.next_page(page, page + FRAME_BYTES).is_some();
        self.mappings.own(page, FRAME_BYTES).is_ok()
            && (self.mappings.end_of(page).is_some() || is_there())
    }

    /// Makes a step of unmapping a range, mapped or not, from the page `from` on if it is not the
    /// first. Its addresses are free after the last.
    ///
    /// # Errors
    /// The kernel holds part of it, or there would be too many mappings.
    pub fn unmap(&mut self, start: u64, bytes: u64, from: Option<u64>) -> StepResult {
        let range = self.mappings.own(start, bytes)?;
        self.mappings.may_cut(&range)?;
        let start = from.unwrap_or(range.start);
        let next = self.space.page_after(start, range.end, STEP_PAGES);
        self.space.unmap(start, next.unwrap_or(range.end) - start);
        if next.is_none() {
            self.mappings.cut(&range)?;
            self.mappings.lower_gap(range.start);
            let Range { start, end } = range;
            log::trace!("address space {:#x}: unmapped {start:#x} to {end:#x}", self.space.id());
        }
        Ok(next)
    }
}
