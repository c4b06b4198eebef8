//! Tests of translations in an address space whose pages of all sizes change.

use std::collections::BTreeMap;

use super::{Found, TlbLevel, Tlbs};
use crate::{Geometry, PageSize};

/// Number of 4 KiB pages in a page of 2 MiB, and of 1 GiB.
const LARGE: u64 = 1 << 9;
const HUGE: u64 = 1 << 18;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

/// An address space whose gigabytes are pages or divided into 2 MiB regions, which are pages or
/// divided into 4 KiB pages. The division changes, and so do the frames.
#[derive(Default)]
struct Space {
    /// Generations by number. An odd generation is a page, an even one is divided.
    huge: BTreeMap<u64, u64>,
    large: BTreeMap<u64, u64>,
}

impl Space {
    fn size(&self, page: u64) -> PageSize {
        let is_whole =
            |map: &BTreeMap<u64, u64>, number| map.get(&number).is_some_and(|n| n % 2 == 1);
        if is_whole(&self.huge, page / HUGE) {
            PageSize::Huge
        } else if is_whole(&self.large, page / LARGE) {
            PageSize::Large
        } else {
            PageSize::Small
        }
    }

    /// The frame of a page. Frames of a large page are consecutive and begin at a multiple of its
    /// size.
    fn frame(&self, page: u64) -> u64 {
        let of = |map: &BTreeMap<u64, u64>, number| map.get(&number).copied().unwrap_or_default();
        let (huge, large) = (of(&self.huge, page / HUGE), of(&self.large, page / LARGE));
        let scattered = |number: u64, bits: u32, generation: u64| {
            (number ^ (generation * 0x55)).wrapping_mul(0x9e37_79b1) & ((1 << bits) - 1)
        };
        match self.size(page) {
            PageSize::Huge => scattered(page / HUGE, 14, huge) * HUGE + page % HUGE,
            PageSize::Large => scattered(page / LARGE, 23, large + huge) * LARGE + page % LARGE,
            PageSize::Small => scattered(page, 32, large + huge),
        }
    }

    /// Divides a page, or merges its parts into a page; invalidates the old translation as a kernel
    /// does.
    fn change(&mut self, page: u64, tlbs: &mut Tlbs, random: &mut Random) {
        let was = self.size(page);
        if was == PageSize::Huge || random.below(20) == 0 {
            *self.huge.entry(page / HUGE).or_default() += 1;
            match was {
                PageSize::Huge => tlbs.flush_page(page),
                _ => tlbs.flush(true),
            }
        } else {
            *self.large.entry(page / LARGE).or_default() += 1;
            let first = page / LARGE * LARGE;
            match was {
                PageSize::Large => tlbs.flush_page(first + random.below(LARGE)),
                _ => (first..first + LARGE).for_each(|page| tlbs.flush_page(page)),
            }
        }
    }
}

/// A random page: from few gigabytes in both halves of the address space, and few 2 MiB regions of
/// each, so that pages of all sizes are often used again. Representatives of large pages are
/// frequent.
fn any_page(random: &mut Random) -> u64 {
    let gigabyte = random.below(3) + if random.below(2) == 0 { 0 } else { (1 << 18) - 3 };
    let large = random.below(40) * 13 % LARGE;
    let small = if random.below(2) == 0 { large % 256 } else { random.below(LARGE) };
    gigabyte * HUGE + large * LARGE + small
}

#[test]
fn a_translation_is_the_page_tables_whatever_is_mapped() {
    for (name, geometry) in Geometry::ALL {
        let mut tlbs = Tlbs::new(&Geometry { has_large_pages: true, ..*geometry });
        let (mut space, mut random) = (Space::default(), Random(5));
        let mut levels = [0; 3];
        let mut sizes = [0; 3];
        for _ in 0..200_000 {
            let page = any_page(&mut random);
            if random.below(200) == 0 {
                space.change(page, &mut tlbs, &mut random);
            }
            let right = (space.frame(page), space.size(page));
            sizes[right.1 as usize] += 1;
            if let Some(frame) = tlbs.recent_data(page) {
                assert_eq!(frame, right.0, "{name}: {page:#x}");
            }
            let level = match tlbs.data(page) {
                Some(frame) => {
                    assert_eq!(frame, right.0, "{name}: {page:#x}");
                    TlbLevel::First
                }
                None => {
                    let Found { frame, size, level } = tlbs.refill_data(page, || right);
                    assert_eq!((frame, size), right, "{name}: {page:#x}");
                    level
                }
            };
            levels[level as usize] += 1;
            // The translation is present now, and the most recent.
            assert_eq!(tlbs.data(page), Some(right.0), "{name}: {page:#x}");
            if random.below(4) == 0 {
                let Found { size, .. } = tlbs.code(page, || right);
                assert_eq!(size, right.1, "{name}: {page:#x}");
            }
        }
        assert!(
            levels.iter().chain(&sizes).all(|count| *count > 1_000),
            "{name}: {levels:?} {sizes:?}"
        );
    }
}

#[test]
fn a_page_of_4_kib_is_not_taken_for_the_large_page_that_it_would_stand_for() {
    for (name, geometry) in Geometry::ALL {
        let mut tlbs = Tlbs::new(&Geometry { has_large_pages: true, ..*geometry });
        // All 4 KiB pages of a region of 2 MiB, beginning with the one that would represent a large
        // page.
        let first = 5 * LARGE;
        let scattered = |page: u64| page * 7 + 1;
        let pages =
            [first + 5].into_iter().chain((first..first + LARGE).filter(|page| *page != first + 5));
        for page in pages {
            assert_eq!(tlbs.data(page), None, "{name}: {page:#x}");
            let found = tlbs.refill_data(page, || (scattered(page), PageSize::Small));
            assert_eq!((found.frame, found.level), (scattered(page), TlbLevel::Walk), "{name}");
        }
        // INVLPG removes only one of them.
        tlbs.flush_page(first + 100);
        let walks = |page: &u64| {
            let found = tlbs.refill_data(*page, || (scattered(*page), PageSize::Small));
            found.level == TlbLevel::Walk
        };
        assert_eq!(
            (first..first + LARGE).filter(walks).collect::<Vec<_>>(),
            [first + 100],
            "{name}"
        );
    }
}
