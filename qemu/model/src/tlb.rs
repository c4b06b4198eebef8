//! Translation look-aside buffers: two first levels, a second level, and the page walker's cache.
//!
//! Data and code share the second level on Intel's processors and have separate ones on AMD's.
//! Pages are 4 KiB; a larger page of the guest takes one entry for each 4 KiB that is accessed.

use crate::{
    cache::{Cache, Map, NARROW, SMALL},
    geometry::Geometry,
};

/// Bits of a page number in a 48-bit address space. With 57 bits, pages alias.
pub(crate) const PAGE_BITS: u32 = 36;
const PAGE_MASK: u64 = (1 << PAGE_BITS) - 1;
/// The bit of a page number that is set in the upper half, the kernel's.
const UPPER_HALF: u64 = 1 << (PAGE_BITS - 1);
/// Bits of a physical page number that are modelled: 16 TiB. Pages beyond alias with pages below.
pub(crate) const FRAME_BITS: u32 = 32;

/// The level that had a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlbLevel {
    First,
    Second,
    Walk,
}

/// All TLBs of a core.
#[derive(Clone, Debug)]
pub(crate) struct Tlbs {
    data: Map<SMALL>,
    code: Map<SMALL>,
    second: Map<NARROW>,
    /// The second level for code, if that is separate.
    second_code: Option<Map<NARROW>>,
    /// The regions of 2 MiB whose upper page-table levels the walker has cached.
    walker: Cache<SMALL>,
}

impl Tlbs {
    pub(crate) fn new(geometry: &Geometry) -> Tlbs {
        let (dtlb, itlb, stlb) = (geometry.dtlb, geometry.itlb, geometry.stlb);
        Tlbs {
            data: Map::new(dtlb.sets, dtlb.ways),
            code: Map::new(itlb.sets, itlb.ways),
            second: Map::new(stlb.sets, stlb.ways),
            second_code: geometry.stlb_code.map(|shape| Map::new(shape.sets, shape.ways)),
            walker: Cache::new(8, 4),
        }
    }

    /// The physical page of the virtual page `page`, if it is the most recent of its set.
    #[inline]
    pub(crate) fn recent_data(&self, page: u64) -> Option<u64> {
        self.data.recent(page & PAGE_MASK).map(u64::from)
    }

    /// The physical page of the virtual page `page`, if the first level has it.
    #[inline(always)] // It has one caller, which is out of line.
    pub(crate) fn data(&mut self, page: u64) -> Option<u64> {
        self.data.find(page & PAGE_MASK).map(u64::from)
    }

    /// The physical page of a page that the first level lacks, from the second level or from
    /// `walk`. Inserts it into both.
    pub(crate) fn refill_data(&mut self, page: u64, walk: impl FnOnce() -> u64) -> (u64, TlbLevel) {
        refill(&mut self.data, &mut self.second, page & PAGE_MASK, walk)
    }

    /// The level that has the translation of a fetch from `page`, which is `physical`. Inserts it.
    pub(crate) fn code(&mut self, page: u64, physical: u64) -> TlbLevel {
        let page = page & PAGE_MASK;
        if self.code.find(page).is_some() {
            return TlbLevel::First;
        }
        let second = self.second_code.as_mut().unwrap_or(&mut self.second);
        refill(&mut self.code, second, page, || physical).1
    }

    /// The physical page of code in `page`, and the level that has it, if one of both has. It is
    /// the most recent there from now on, and in the first.
    pub(crate) fn known_code(&mut self, page: u64) -> Option<(u64, TlbLevel)> {
        let page = page & PAGE_MASK;
        if let Some(frame) = self.code.find(page) {
            return Some((frame.into(), TlbLevel::First));
        }
        let second = self.second_code.as_mut().unwrap_or(&mut self.second);
        let frame = second.find(page)?;
        self.code.fill(page, frame);
        Some((frame.into(), TlbLevel::Second))
    }

    /// Returns whether the walker had cached the upper levels for `page`, and caches them.
    pub(crate) fn walker_has(&mut self, page: u64) -> bool {
        self.walker.touch((page & PAGE_MASK) >> 9)
    }

    /// Removes translations: those of the lower half, which belong to one address space, or all.
    /// Kernels map their half with global pages.
    pub(crate) fn flush(&mut self, global_too: bool) {
        self.retain(|page| !global_too && page & UPPER_HALF != 0);
        self.walker.clear();
    }

    /// Removes one page.
    pub(crate) fn flush_page(&mut self, page: u64) {
        self.retain(|held| held != page & PAGE_MASK);
    }

    fn retain(&mut self, keep: impl Fn(u64) -> bool) {
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
    first: &mut Map<SMALL>,
    second: &mut Map<NARROW>,
    page: u64,
    walk: impl FnOnce() -> u64,
) -> (u64, TlbLevel) {
    let (physical, found) = match second.find(page) {
        Some(physical) => (physical, TlbLevel::Second),
        None => {
            const { assert!(FRAME_BITS == u32::BITS) };
            let physical = walk() as u32;
            second.fill(page, physical);
            (physical, TlbLevel::Walk)
        }
    };
    first.fill(page, physical);
    (physical.into(), found)
}
