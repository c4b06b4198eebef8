//! A program's memory: its areas, and the pages in them.
//!
//! A page is allocated when the program or the kernel first touches it ([`UserMemory::page_in`]).
//! So what a program reserves takes no memory, and stacks grow as they are used. Every page with an
//! entry in the page tables is in an area and has the area's access.
//!
//! If the work of a method grows with the number of pages, the method does one step of it and
//! returns the first page of the next step ([`Step`]). Other threads of the program may run between
//! two steps.

use alloc::collections::BTreeMap;
use core::ops::Range;

use super::{
    area::{Area, Origin},
    areas::Areas,
    frames::FRAME_BYTES,
    space::{AddressSpace, PageAccess, SpaceError, USER_END, UserPage, UserRange},
};

/// The largest heap of a program (`brk`).
const MAX_HEAP_BYTES: u64 = 64 << 30;
/// How far a stack's first pages may be from an access that overflowed it: libraries make guards of
/// a page up to a megabyte.
const GUARD_BYTES: u64 = 1 << 20;
/// How far the access may be from the stack pointer: compilers touch every page of a large frame.
const OVERFLOW_BYTES: u64 = 64 << 10;
/// Pages of one step, which takes some hundreds of microseconds.
pub(super) const STEP_PAGES: u64 = 256;

/// The first page of the next step; `None` if all pages are done.
pub type Step = Option<UserPage>;

/// What an access to a page does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It fetches an instruction.
    Execute,
}

/// Where a new mapping goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// To this address if it is free, or else anywhere. 0: anywhere.
    Hint(u64),
    /// Below 2 GiB.
    Low,
    /// To this address, which is free.
    Fixed(u64),
}

/// A program's memory: its address space, and what is mapped in it.
pub struct UserMemory {
    /// Its page tables.
    pub space: AddressSpace,
    /// Pages that were allocated when they were touched.
    pub page_faults: u64,
    pub(super) areas: Areas,
    pub(super) heap: Range<u64>,
    /// Addresses of lent memory, by the kernel's address of it.
    pub(super) lent: BTreeMap<u64, u64>,
}

impl UserMemory {
    /// That of a program loaded into `space`, with these areas, and an empty heap at `heap`.
    pub fn new(
        space: AddressSpace,
        areas: impl IntoIterator<Item = (u64, Area)>,
        heap: u64,
    ) -> Self {
        let mut all = Areas::default();
        for (start, area) in areas {
            let range = UserRange::new(start, area.end - start);
            all.insert(range.expect("the loader checks segments"), area);
        }
        UserMemory { space, page_faults: 0, areas: all, heap: heap..heap, lent: BTreeMap::new() }
    }

    /// Every area, by address.
    pub fn areas(&self) -> impl Iterator<Item = (Range<u64>, &Area)> {
        self.areas.all()
    }

    /// Allocates the page of an address that the program or the kernel for it touches.
    ///
    /// # Errors
    /// The program may not touch the address so, its page is there already, it is behind the end of
    /// a file, or no memory is left.
    pub fn page_in(&mut self, address: u64, touch: Touch) -> Result<(), SpaceError> {
        self.allocate(address, touch)?;
        self.page_faults += 1;
        Ok(())
    }

    fn allocate(&mut self, address: u64, touch: Touch) -> Result<(), SpaceError> {
        let page = UserPage::containing(address)?;
        let (start, area) = self.areas.at(page.address()).ok_or(SpaceError::BadAddress)?;
        let access = area.access;
        let permits = match touch {
            Touch::Read => access != PageAccess::Nothing,
            Touch::Write => access.writes(),
            Touch::Execute => access.executes(),
        };
        if !permits || self.space.has_page(page) {
            return Err(SpaceError::BadAddress);
        }
        let index = (page.address() - start) / FRAME_BYTES;
        match &area.origin {
            Origin::Kernel(_) | Origin::Arriving => Err(SpaceError::BadAddress),
            Origin::Zeros | Origin::Heap | Origin::Stack | Origin::Segment => {
                self.space.map_zeroed(page.range(), access)
            }
            Origin::Copy(source, first) => {
                self.space.map_zeroed(page.range(), access)?;
                let copied = source.copy(first + index, self.space.page_bytes(page));
                copied.inspect_err(|_| self.space.unmap(page.range()))
            }
            Origin::Shared(source, first, _) => {
                let frame = source.share(first + index)?;
                self.space.lend(page.range(), &[frame], access)
            }
        }
    }

    /// Maps an area of `bytes`, whose pages are allocated when they are touched. Returns its
    /// address.
    ///
    /// # Errors
    /// It could never have all of its pages, no gap is large enough, the fixed address is not the
    /// program's or not free, or there are too many areas.
    pub fn map(
        &mut self,
        place: Place,
        bytes: u64,
        (access, origin): (PageAccess, Origin),
    ) -> Result<u64, SpaceError> {
        let bytes = bytes.checked_next_multiple_of(FRAME_BYTES).ok_or(SpaceError::OutOfMemory)?;
        self.areas.have_room()?;
        let range = match place {
            Place::Fixed(start) => {
                let range = self.areas.own(start, bytes)?;
                // Address 0 is the null pointer.
                if start == 0 || !self.areas.are_free(range) {
                    return Err(SpaceError::Overlap);
                }
                range
            }
            Place::Low => self.areas.find_gap(bytes, true).ok_or(SpaceError::OutOfMemory)?,
            Place::Hint(hint) => self.near(hint, bytes).ok_or(SpaceError::OutOfMemory)?,
        };
        self.areas.insert(range, Area { end: range.end(), access, origin });
        let (start, end) = (range.start(), range.end());
        log::trace!("address space {:#x}: mapped {start:#x} to {end:#x}", self.space.id());
        Ok(start)
    }

    /// The range of `bytes` at `hint`, if that is free, or at another address.
    fn near(&mut self, hint: u64, bytes: u64) -> Option<UserRange> {
        let hint = hint - hint % FRAME_BYTES;
        let wanted = self.areas.own(hint, bytes).ok();
        wanted
            .filter(|range| hint != 0 && self.areas.are_free(*range))
            .or_else(|| self.areas.find_gap(bytes, false))
    }

    /// The end of the heap.
    pub fn heap_end(&self) -> u64 {
        self.heap.end
    }

    /// Makes a step of moving the end of the heap to `end`, if that is possible, from the page
    /// `from` on if it is not the first.
    pub fn move_heap_end(&mut self, end: u64, from: Step) -> Step {
        let Range { start, end: old } = self.heap;
        if !(start..start + MAX_HEAP_BYTES).contains(&end) || end > USER_END {
            return None;
        }
        let [new_page, old_page] = [end, old].map(|at| at.next_multiple_of(FRAME_BYTES));
        if new_page < old_page {
            let next = self.unmap(new_page, old_page - new_page, from).ok()?;
            if next.is_some() {
                return next;
            }
        } else if new_page > old_page {
            let Ok(new) = UserRange::new(old_page, new_page - old_page) else { return None };
            let is_possible = self.areas.are_free(new)
                && self.areas.have_room().is_ok()
                && self.space.may_have(new_page - start);
            if !is_possible {
                return None;
            }
            let (access, origin) = (PageAccess::Write, Origin::Heap);
            self.areas.insert(new, Area { end: new_page, access, origin });
        }
        self.heap.end = end;
        None
    }

    /// Makes a step of changing the access to areas of the program, from the page `from` on if it
    /// is not the first.
    ///
    /// # Errors
    /// Some addresses are in no area of the program's, the program may not have this access to
    /// them, or there would be too many areas. Nothing has changed in this step.
    pub fn protect(
        &mut self,
        start: u64,
        bytes: u64,
        access: PageAccess,
        from: Step,
    ) -> Result<Step, SpaceError> {
        // Another thread may have mapped something else meanwhile at what is left.
        let rest = self.areas.own(start, bytes)?.from(from);
        if rest.is_empty() {
            return Ok(None);
        }
        if !self.areas.cover(rest) {
            return Err(SpaceError::BadAddress);
        }
        if self.areas.within(rest.addresses()).any(|(_, area)| !area.permits(access)) {
            return Err(SpaceError::Overlap);
        }
        self.areas.have_room()?;
        let next = self.space.page_after(rest, STEP_PAGES);
        let part = rest.before(next);
        self.areas.set_access(part, access);
        self.space.protect_all(part, access);
        Ok(next)
    }

    /// Makes a step of dropping the pages of a range, which are as at first when they are touched
    /// again, from the page `from` on if it is not the first.
    ///
    /// # Errors
    /// The kernel holds part of it, or some of it is in no area.
    pub fn drop_pages(&mut self, start: u64, bytes: u64, from: Step) -> Result<Step, SpaceError> {
        let range = self.areas.own(start, bytes)?;
        if !self.areas.cover(range) {
            return Err(SpaceError::OutOfMemory);
        }
        Ok(self.free_pages(range.from(from)))
    }

    /// Makes a step of freeing the pages of a mapped file that are behind its end at `len` bytes.
    /// Returns whether it was the last step.
    pub fn drop_behind(&mut self, file: u64, len: u64) -> bool {
        let kept = len.div_ceil(FRAME_BYTES);
        let behind = |(range, area): (Range<u64>, &Area)| match &area.origin {
            Origin::Copy(source, first) | Origin::Shared(source, first, _)
                if source.number() == file =>
            {
                let bytes = kept.saturating_sub(*first).saturating_mul(FRAME_BYTES);
                let start = range.start.saturating_add(bytes).min(range.end);
                let cut_off = UserRange::new(start, range.end - start).ok()?;
                self.space.next_page(cut_off).map(|page| cut_off.from(Some(page)))
            }
            _ => None,
        };
        let Some(range) = self.areas.all().find_map(behind) else { return true };
        self.free_pages(range);
        false
    }

    /// Frees the first pages of a range. Returns the next page.
    fn free_pages(&mut self, range: UserRange) -> Step {
        let next = self.space.page_after(range, STEP_PAGES);
        self.space.unmap(range.before(next));
        next
    }

    /// Returns whether an address is in an area, with whatever access.
    pub fn is_in_area(&self, address: u64) -> bool {
        self.areas.at(address).is_some()
    }

    /// Returns whether an access near the stack pointer `rsp` that faulted was in the pages below a
    /// stack: the stack has overflowed.
    pub fn is_overflow(&self, address: u64, rsp: u64) -> bool {
        let is_bad = |access| access == PageAccess::Nothing;
        let below = self.areas.at(address).is_none_or(|(_, area)| is_bad(area.access));
        let guards = address..address.saturating_add(GUARD_BYTES);
        let mut above = self.areas.within(guards).filter(|(_, area)| !is_bad(area.access));
        let is_stack = above.next().is_some_and(|(range, area)| {
            area.access.writes() && range.contains(&rsp.saturating_add(OVERFLOW_BYTES))
        });
        below && is_stack && address.abs_diff(rsp) < OVERFLOW_BYTES
    }

    /// Returns whether all of a range is in areas of the program's.
    pub fn covers(&self, start: u64, bytes: u64) -> bool {
        self.areas.own(start, bytes).is_ok_and(|range| self.areas.cover(range))
    }

    /// Makes a step of unmapping a range, mapped or not, from the page `from` on if it is not the
    /// first. Its addresses are free after the last.
    ///
    /// # Errors
    /// The kernel holds part of it, or there would be too many areas.
    pub fn unmap(&mut self, start: u64, bytes: u64, from: Step) -> Result<Step, SpaceError> {
        let rest = self.areas.own(start, bytes)?.from(from);
        if rest.is_empty() {
            return Ok(None);
        }
        self.areas.may_cut(rest)?;
        let next = self.free_pages(rest);
        // The areas last: they keep what the pages are of.
        self.areas.cut(rest.before(next));
        let (start, end) = (rest.start(), rest.before(next).end());
        log::trace!("address space {:#x}: unmapped {start:#x} to {end:#x}", self.space.id());
        Ok(next)
    }
}
