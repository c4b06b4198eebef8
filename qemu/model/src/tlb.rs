//! Translation look-aside buffers: two first levels, a second level, and the page walker's cache.
//!
//! Data and code share the second level on Intel's processors and have separate ones on AMD's. If
//! the geometry models large pages, they have entries as in the processor's TLBs. If not, a large
//! page of the guest takes one entry for each 4 KiB that is accessed.

mod level;
#[cfg(test)]
mod tests;

use self::level::{Level, Translation};
use crate::{
    cache::{Cache, NARROW, SMALL},
    geometry::Geometry,
    page::PageSize,
};

/// Bits of a page number in a 48-bit address space. With 57 bits, pages alias.
pub(crate) const PAGE_BITS: u32 = 36;
const PAGE_MASK: u64 = (1 << PAGE_BITS) - 1;
/// The bit of a page number that is set in the upper half of the address space, the kernel's.
const UPPER_HALF: u64 = 1 << (PAGE_BITS - 1);
/// Modelled bits of a physical page number: 16 TiB. Pages beyond alias with pages below.
pub(crate) const FRAME_BITS: u32 = 32;

/// The level that had a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlbLevel {
    First,
    Second,
    Walk,
}

/// A translation that was looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// The physical page.
    pub(crate) frame: u64,
    /// The level that had the translation.
    pub(crate) level: TlbLevel,
    /// The size of the page that the guest has mapped; 4 KiB where large pages are not modelled.
    pub(crate) size: PageSize,
}

impl Translation {
    fn at(self, level: TlbLevel) -> Found {
        Found { frame: self.frame.into(), level, size: self.size }
    }
}

/// All TLBs of a core.
#[derive(Clone, Debug)]
pub(crate) struct Tlbs {
    data: Level<SMALL>,
    code: Level<SMALL>,
    second: Level<NARROW>,
    /// The second level for code, if it is separate.
    second_code: Option<Level<NARROW>>,
    /// The regions of 2 MiB whose upper page-table levels the walker has cached.
    walker: Cache<SMALL>,
}

impl Tlbs {
    pub(crate) fn new(geometry: &Geometry) -> Tlbs {
        let large = geometry.has_large_pages.then_some(geometry.large_pages);
        let second_code = |shape| Level::new(shape, large.map(|large| large.stlb_code));
        Tlbs {
            data: Level::new(geometry.dtlb, large.map(|large| large.dtlb)),
            code: Level::new(geometry.itlb, large.map(|large| large.itlb)),
            second: Level::new(geometry.stlb, large.map(|large| large.stlb)),
            second_code: geometry.stlb_code.map(second_code),
            walker: Cache::new(8, 4),
        }
    }

    /// The physical page of the virtual page `page`, if it is the most recent of its set.
    #[inline]
    pub(crate) fn recent_data(&self, page: u64) -> Option<u64> {
        self.data.recent(page & PAGE_MASK).map(u64::from)
    }

    /// The physical page of the virtual page `page`, if the first level has it.
    #[inline(always)] // Has one caller, which is out of line.
    pub(crate) fn data(&mut self, page: u64) -> Option<u64> {
        self.data.find(page & PAGE_MASK).map(|found| found.frame.into())
    }

    /// The translation of a page that the first level lacks, from the second level or from `walk`.
    /// Inserts it into both.
    pub(crate) fn refill_data(
        &mut self,
        page: u64,
        walk: impl FnOnce() -> (u64, PageSize),
    ) -> Found {
        refill(&mut self.data, &mut self.second, page & PAGE_MASK, walk)
    }

    /// The translation of a fetch from `page`, from the TLBs or else from `walk`. Inserts the
    /// translation.
    pub(crate) fn code(&mut self, page: u64, walk: impl FnOnce() -> (u64, PageSize)) -> Found {
        let page = page & PAGE_MASK;
        if let Some(found) = self.code.find(page) {
            return found.at(TlbLevel::First);
        }
        let second = self.second_code.as_mut().unwrap_or(&mut self.second);
        refill(&mut self.code, second, page, walk)
    }

    /// The translation of code in `page`, if one of the two levels has it. Makes it the most recent
    /// of that level and inserts it into the first.
    pub(crate) fn known_code(&mut self, page: u64) -> Option<Found> {
        let page = page & PAGE_MASK;
        if let Some(found) = self.code.find(page) {
            return Some(found.at(TlbLevel::First));
        }
        let second = self.second_code.as_mut().unwrap_or(&mut self.second);
        let found = second.find(page)?;
        self.code.fill(page, found.frame, found.size);
        Some(found.at(TlbLevel::Second))
    }

    /// Returns whether the walker had cached the upper levels for `page`, and caches them.
    pub(crate) fn walker_has(&mut self, page: u64) -> bool {
        self.walker.touch((page & PAGE_MASK) >> 9)
    }

    /// Removes translations: all, or only those of the lower half, which belong to one address
    /// space. Kernels map their half with global pages.
    pub(crate) fn flush(&mut self, global_too: bool) {
        self.retain(|page, _| !global_too && page & UPPER_HALF != 0);
        self.walker.clear();
    }

    /// Removes all entries of the page, of any size, that contains this page of 4 KiB (SDM volume
    /// 3, "Operations that Invalidate TLBs and Paging-Structure Caches", INVLPG).
    pub(crate) fn flush_page(&mut self, page: u64) {
        let page = page & PAGE_MASK;
        self.retain(|held, size| held >> size.shift() != page >> size.shift());
    }

    fn retain(&mut self, keep: impl Fn(u64, PageSize) -> bool) {
        self.data.retain(&keep);
        self.code.retain(&keep);
        self.second.retain(&keep);
        if let Some(second) = &mut self.second_code {
            second.retain(&keep);
        }
    }
}

#[cold]
fn refill(
    first: &mut Level<SMALL>,
    second: &mut Level<NARROW>,
    page: u64,
    walk: impl FnOnce() -> (u64, PageSize),
) -> Found {
    let (frame, level, size) = match second.find(page) {
        Some(found) => (found.frame, TlbLevel::Second, found.size),
        None => {
            const { assert!(FRAME_BITS == u32::BITS) };
            let (frame, size) = walk();
            second.fill(page, frame as u32, size);
            (frame as u32, TlbLevel::Walk, size)
        }
    };
    first.fill(page, frame, size);
    Found { frame: frame.into(), level, size }
}
