//! Translation look-aside buffers: two first levels, a second level, and page walks.
//!
//! The second level is unified, as on the profiles' machines or near enough. Pages are 4 KiB; a
//! larger page of the guest takes one entry for each 4 KiB that is touched.

use crate::{cache::Cache, geometry::Geometry};

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
    data: Cache,
    code: Cache,
    second: Cache,
}

impl Tlbs {
    pub(crate) fn new(geometry: &Geometry) -> Tlbs {
        let cache = |shape: crate::TlbShape| Cache::new(shape.sets, shape.ways);
        Tlbs {
            data: cache(geometry.dtlb),
            code: cache(geometry.itlb),
            second: cache(geometry.stlb),
        }
    }

    /// The physical page of the virtual page `page`, asking `walk` where it is in no level.
    #[inline]
    pub(crate) fn data(&mut self, page: u64, walk: impl FnOnce() -> u64) -> (u64, Found) {
        match self.data.find(page) {
            Some(physical) => (physical, Found::First),
            None => refill(&mut self.data, &mut self.second, page, walk),
        }
    }

    /// Likewise for a fetch, whose physical page is known.
    #[inline]
    pub(crate) fn code(&mut self, page: u64, physical: u64) -> Found {
        match self.code.find(page) {
            Some(_) => Found::First,
            None => refill(&mut self.code, &mut self.second, page, || physical).1,
        }
    }

    /// Forgets translations: the lower half's, which belong to one address space, or all.
    pub(crate) fn flush(&mut self, global_too: bool) {
        // Kernels map their own half as global pages; the walker does not tell the model.
        let keep = |page: u64| !global_too && page >> 51 & 1 == 1;
        for cache in [&mut self.data, &mut self.code, &mut self.second] {
            cache.retain(keep);
        }
    }

    /// Forgets one page.
    pub(crate) fn flush_page(&mut self, page: u64) {
        for cache in [&mut self.data, &mut self.code, &mut self.second] {
            cache.retain(|held| held != page);
        }
    }
}

#[cold]
fn refill(
    first: &mut Cache,
    second: &mut Cache,
    page: u64,
    walk: impl FnOnce() -> u64,
) -> (u64, Found) {
    let (physical, found) = match second.find(page) {
        Some(physical) => (physical, Found::Second),
        None => {
            let physical = walk();
            second.fill(page, physical);
            (physical, Found::Walk)
        }
    };
    first.fill(page, physical);
    (physical, found)
}
