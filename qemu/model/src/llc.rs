//! The last-level cache, which all cores of a machine share.
//!
//! The cache is lock-free: a set is a row of relaxed atomics, most recent first. A look-up moves
//! each way that it passes back by one. Cores that use a set at the same time can lose or duplicate
//! one of its entries, which costs a hit or a way until that entry is evicted. A single core sees
//! exact least-recently-used replacement. Only misses of a core's own L2 are looked up here.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use crate::geometry::CacheShape;

/// An empty way. A line's tag is stored incremented by one, so no line has this value.
const EMPTY: u32 = 0;

/// A last-level cache. Clones share it.
#[derive(Clone, Debug)]
pub struct Llc {
    tags: Arc<[AtomicU32]>,
    ways: usize,
    index_bits: u32,
}

impl Llc {
    /// Makes an empty cache.
    pub fn new(level: CacheShape) -> Llc {
        let sets = level.sets;
        assert!(sets.is_power_of_two(), "the last-level cache has {sets} sets, not a power of two");
        let entries = level.sets as usize * level.ways as usize;
        Llc {
            tags: (0..entries).map(|_| AtomicU32::new(EMPTY)).collect(),
            ways: level.ways as usize,
            index_bits: level.sets.trailing_zeros(),
        }
    }

    /// Returns whether the line was present, and makes it the most recent of its set.
    // Relaxed: the tags publish no other data.
    pub(crate) fn touch(&self, line: u64) -> bool {
        let set = (line & ((1 << self.index_bits) - 1)) as usize;
        let tag = line >> self.index_bits;
        debug_assert!(tag < u64::from(u32::MAX), "line {line:#x} is too long");
        let tag = tag as u32 + 1;
        let mut moved = tag;
        for way in &self.tags[set * self.ways..][..self.ways] {
            let held = way.load(Relaxed);
            way.store(moved, Relaxed);
            if held == tag {
                return true;
            }
            moved = held;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_a_list_in_order_of_use() {
        let llc = Llc::new(CacheShape { sets: 1, ways: 12 });
        let mut list: Vec<u64> = Vec::new();
        let mut state = 7u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let line = state >> 60;
            let was_here = list.iter().position(|held| *held == line);
            assert_eq!(llc.touch(line), was_here.is_some());
            was_here.map(|at| list.remove(at));
            list.insert(0, line);
            list.truncate(12);
        }
    }

    #[test]
    fn cores_share_it() {
        let ours = Llc::new(CacheShape { sets: 64, ways: 4 });
        let theirs = ours.clone();
        assert!(!ours.touch(123));
        assert!(theirs.touch(123));
    }

    #[test]
    fn no_line_is_present_at_first() {
        let llc = Llc::new(CacheShape { sets: 1024, ways: 4 });
        for line in [0, 1, (1 << 42) - (1 << 10) - 1] {
            assert!(!llc.touch(line), "{line:#x}");
            assert!(llc.touch(line), "{line:#x}");
        }
    }

    #[test]
    fn cores_that_race_neither_crash_nor_grow_it() {
        let llc = Llc::new(CacheShape { sets: 2, ways: 4 });
        std::thread::scope(|scope| {
            for seed in 0..2u64 {
                let llc = llc.clone();
                scope.spawn(move || (0..50_000).for_each(|at| _ = llc.touch((at * 7 + seed) % 16)));
            }
        });
        let held = (0..1000).filter(|line| {
            let set = (line % 2) as usize;
            llc.tags[set * 4..][..4].iter().any(|tag| u64::from(tag.load(Relaxed)) == line / 2 + 1)
        });
        assert!(held.count() <= 8);
    }
}
