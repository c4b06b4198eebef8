//! A translation look-aside buffer, for pages of all sizes.
//!
//! An entry for a large page that shares the ways of 4 KiB pages is stored as a translation of one
//! of the 4 KiB pages in it, its representative. The guest cannot map a 4 KiB page with that number
//! at the same time, so entries of both kinds have different keys; and an access to the
//! representative itself finds its right frame like any other. Representatives of neighbouring
//! large pages are in neighbouring sets.

use crate::{
    cache::Map,
    geometry::{LargeEntries, LargeTlb, TlbShape},
    page::PageSize,
};

/// A translation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Translation {
    /// The physical page of 4 KiB: in an entry, of the entry's key; in a result, of the requested
    /// page.
    pub(crate) frame: u32,
    /// The size that the entry covers.
    span: PageSize,
    /// The size of the page that the guest has mapped.
    pub(crate) size: PageSize,
}

/// A TLB.
#[derive(Clone, Debug)]
pub(crate) struct Level<const ROOM: usize> {
    /// The entries for 4 KiB pages, and for large pages that share them.
    entries: Map<ROOM, Translation>,
    set_bits: u32,
    /// The entries for large pages, if they are modelled.
    large: Option<Large<ROOM>>,
}

/// A TLB's entries for large pages.
#[derive(Clone, Debug)]
struct Large<const ROOM: usize> {
    kinds: LargeTlb,
    own: [Option<Map<ROOM, Translation>>; 2],
    /// Maximum ways of a set that pages of one large size can use, if the size is limited to half.
    half_ways: usize,
}

impl<const ROOM: usize> Level<ROOM> {
    pub(crate) fn new(shape: TlbShape, large: Option<LargeTlb>) -> Level<ROOM> {
        let own = |kind| match kind {
            LargeEntries::Own(shape) => Some(Map::new(shape.sets, shape.ways)),
            _ => None,
        };
        let half_ways = shape.ways.div_ceil(2) as usize;
        let large = large.map(|kinds| Large { kinds, own: kinds.map(own), half_ways });
        let set_bits = shape.sets.trailing_zeros();
        assert!(set_bits <= PageSize::Large.shift(), "a TLB has {} sets", shape.sets);
        Level { entries: Map::new(shape.sets, shape.ways), set_bits, large }
    }

    /// The physical page of `page`, if it is the most recent of its set.
    #[inline]
    pub(crate) fn recent(&self, page: u64) -> Option<u32> {
        self.entries.recent(page).map(|entry| entry.frame)
    }

    /// The translation of `page`; makes it the most recent of its set.
    #[inline(always)] // Inlined as before large pages were modelled.
    pub(crate) fn find(&mut self, page: u64) -> Option<Translation> {
        match self.entries.find(page) {
            None if self.large.is_some() => self.find_large(page),
            found => found,
        }
    }

    #[cold]
    fn find_large(&mut self, page: u64) -> Option<Translation> {
        PageSize::LARGE.into_iter().find_map(|span| {
            let key = self.key(page, span)?;
            let map = self.map(span);
            // The key can belong to an entry of a 4 KiB page, which is not used here.
            let entry = map.peek(key).filter(|entry| entry.span == span)?;
            map.find(key);
            Some(Translation { frame: entry.frame & !within(span) | low(page, span), ..entry })
        })
    }

    /// Inserts the translation of `page`, which is absent. The entry covers the page of `size`, or
    /// the part of it that an entry can cover.
    pub(crate) fn fill(&mut self, page: u64, frame: u32, size: PageSize) {
        let span = self.span(size);
        if span == PageSize::Small {
            return self.entries.fill(page, Translation { frame, span, size });
        }
        let Some(key) = self.key(page, span) else { return };
        self.make_room(key, span);
        let frame = frame & !within(span) | low(key, span);
        self.map(span).fill(key, Translation { frame, span, size });
    }

    /// The size that an entry covers in a page of this size.
    fn span(&self, size: PageSize) -> PageSize {
        let has = |size: &PageSize| !matches!(self.kind(*size), LargeEntries::Parts);
        PageSize::LARGE.into_iter().rev().filter(|span| *span <= size).find(has).unwrap_or_default()
    }

    fn kind(&self, span: PageSize) -> LargeEntries {
        match (&self.large, span) {
            (Some(large), PageSize::Large) => large.kinds[0],
            (Some(large), PageSize::Huge) => large.kinds[1],
            _ => LargeEntries::Parts,
        }
    }

    /// The key of the entry of this span for `page`; `None` if there are no such entries.
    fn key(&self, page: u64, span: PageSize) -> Option<u64> {
        let number = page >> span.shift();
        match self.kind(span) {
            LargeEntries::Own(_) => Some(number),
            LargeEntries::Shared | LargeEntries::SharedHalf => {
                Some(number << span.shift() | number & ((1 << self.set_bits) - 1))
            }
            LargeEntries::Parts => None,
        }
    }

    /// The map that contains the entries of this span.
    fn map(&mut self, span: PageSize) -> &mut Map<ROOM, Translation> {
        let own = self.large.as_mut().map(|large| &mut large.own);
        let own = match (own, span) {
            (Some([own, _]), PageSize::Large) | (Some([_, own]), PageSize::Huge) => own.as_mut(),
            _ => None,
        };
        own.unwrap_or(&mut self.entries)
    }

    /// Removes the least recent entry of this span from the key's set if there are as many as may
    /// share the set.
    fn make_room(&mut self, key: u64, span: PageSize) {
        if let (LargeEntries::SharedHalf, Some(large)) = (self.kind(span), &self.large) {
            self.entries.make_room(key, large.half_ways, |entry| entry.span == span);
        }
    }

    /// Removes the entries for which `keep` returns false. Its arguments are a 4 KiB page of the
    /// entry and the size of the page that the guest has mapped.
    pub(crate) fn retain(&mut self, keep: &impl Fn(u64, PageSize) -> bool) {
        self.entries.retain(|page, entry| keep(page, entry.size));
        let own = self.large.as_mut().map(|large| &mut large.own).into_iter().flatten();
        for (map, span) in own.zip(PageSize::LARGE) {
            if let Some(map) = map {
                map.retain(|number, entry| keep(number << span.shift(), entry.size));
            }
        }
    }
}

/// The bits of a frame number that select a 4 KiB frame within a page of this size.
fn within(span: PageSize) -> u32 {
    span.within() as u32
}

/// The low bits of a page number, which are equal in the number of its frame.
fn low(page: u64, span: PageSize) -> u32 {
    (page & span.within()) as u32
}
