//! Translation look-aside buffers: two first levels, a second level, and the walker's own cache.
//!
//! The second level is shared by data and code on Intel's machines and parted on AMD's. Pages are
//! 4 KiB; a larger page of the guest takes one entry for each 4 KiB that is touched.

use crate::{
    cache::{Cache, Map, NARROW, SMALL},
    geometry::Geometry,
};

/// The bits of a page number that tell pages apart in a 48-bit address space.
const PAGE_BITS: u64 = (1 << 36) - 1;
/// Of these, the one that tells the upper half, the kernel's, from the lower.
const UPPER_HALF: u64 = 1 << 35;

/// Where a translation was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    First,
    Second,
    Walk,
}

/// All of a core's translation buffers.
#[derive(Clone, Debug)]
pub(crate) struct Tlbs {
    data: Map<SMALL>,
    code: Map<SMALL>,
    second: Map<NARROW>,
    /// The second level for code, where it has its own.
    second_code: Option<Map<NARROW>>,
    /// The regions of 2 MiB whose upper page-table levels the walker has at hand.
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

    /// The physical page of the virtual page `page`, where it is the most recent of its set.
    #[inline]
    pub(crate) fn recent_data(&self, page: u64) -> Option<u64> {
        self.data.recent(page & PAGE_BITS).map(u64::from)
    }

    /// The physical page of the virtual page `page`, where the first level has it.
    #[inline(always)] // Once, in what is out of line already.
    pub(crate) fn data(&mut self, page: u64) -> Option<u64> {
        self.data.find(page & PAGE_BITS).map(u64::from)
    }

    /// The physical page of one that the first level has not, asking `walk` where the second has it
    /// neither; the first has it afterwards.
    pub(crate) fn refill_data(&mut self, page: u64, walk: impl FnOnce() -> u64) -> (u64, Found) {
        refill(&mut self.data, &mut self.second, page & PAGE_BITS, walk)
    }

    /// Where a fetch finds the translation of `page`, which is `physical`.
    pub(crate) fn code(&mut self, page: u64, physical: u64) -> Found {
        let page = page & PAGE_BITS;
        if self.code.find(page).is_some() {
            return Found::First;
        }
        let second = self.second_code.as_mut().unwrap_or(&mut self.second);
        refill(&mut self.code, second, page, || physical).1
    }

    /// Whether the walker had the upper levels for `page` at hand; it has them afterwards.
    pub(crate) fn walker_has(&mut self, page: u64) -> bool {
        self.walker.touch((page & PAGE_BITS) >> 9)
    }

    /// Forgets translations: the lower half's, which belong to one address space, or all. Kernels
    /// map their own half as global pages.
    pub(crate) fn flush(&mut self, global_too: bool) {
        self.retain(|page| !global_too && page & UPPER_HALF != 0);
        self.walker.clear();
    }

    /// Forgets one page.
    pub(crate) fn flush_page(&mut self, page: u64) {
        self.retain(|held| held != page & PAGE_BITS);
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
) -> (u64, Found) {
    let (physical, found) = match second.find(page) {
        Some(physical) => (physical, Found::Second),
        None => {
            // 32 bits of frame number: 16 TiB of guest memory.
            let physical = walk() as u32;
            second.fill(page, physical);
            (physical, Found::Walk)
        }
    };
    first.fill(page, physical);
    (physical.into(), found)
}
