//! A set-associative array with least-recently-used replacement.
//!
//! Invariants:
//! - The first way of a set is the most recently used one, so that the most common hit is one
//!   comparison and changes nothing. For each other way, `left` is the time at which it stopped
//!   being the first, so that these times are in the order of last use.
//! - A way is empty exactly if its `left` is 0. No tag means "empty": a tag can have any value.
//! - A key's tag fits in 32 bits, so that two keys of a set never share a tag. A test checks every
//!   profile for it.
//!
//! A hit beyond the first way compares all ways by a few vector instructions and swaps two. The
//! oldest way is determined only when one has to be replaced.

/// Maximum ways of a first-level TLB.
pub(crate) const SMALL: usize = 8;
/// Maximum ways of an L1 cache or a second-level TLB.
pub(crate) const NARROW: usize = 16;
/// Maximum ways of an L2 cache.
pub(crate) const WIDE: usize = 32;

/// The ways of one set.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Set<const ROOM: usize> {
    tags: [u32; ROOM],
    /// Time at which each way last stopped being the first, or became it; 0 if the way is empty.
    left: [u32; ROOM],
}

impl<const ROOM: usize> Set<ROOM> {
    const CLEAR: Set<ROOM> = Set { tags: [0; ROOM], left: [0; ROOM] };

    /// Returns whether the first way has `tag`.
    #[inline]
    fn is_first(&self, tag: u32) -> bool {
        self.tags[0] == tag && self.left[0] != 0
    }

    /// The way that holds `tag`.
    #[inline]
    fn position(&self, tag: u32) -> Option<usize> {
        // Counted from one, so that all ways are treated alike, in vectors.
        let mut found = 0;
        for way in 0..ROOM {
            let hit = (self.tags[way] == tag) & (self.left[way] != 0);
            found |= if hit { way as u32 + 1 } else { 0 };
        }
        (found as usize).checked_sub(1)
    }

    /// The way to use for a new tag: an empty one, or the least recently used.
    fn victim(&self, ways: usize) -> usize {
        if self.left[0] == 0 {
            return 0;
        }
        (1..ways.min(ROOM)).min_by_key(|way| self.left[*way]).unwrap_or_default()
    }

    /// Puts `tag` into the first way, and moves the first way's entry to `way`.
    #[inline]
    fn bring_forward(&mut self, tag: u32, way: usize, now: u32) {
        self.tags[way] = self.tags[0];
        // An empty first way stays empty where it moves to.
        self.left[way] = if self.left[0] == 0 { 0 } else { now };
        (self.tags[0], self.left[0]) = (tag, now);
    }
}

/// A cache: a set of keys, which are line or page numbers.
#[derive(Clone, Debug)]
pub(crate) struct Cache<const ROOM: usize> {
    sets: Box<[Set<ROOM>]>,
    ways: usize,
    index_bits: u32,
    /// The number of times that a first way has changed.
    now: u32,
}

impl<const ROOM: usize> Cache<ROOM> {
    /// A cache of `sets` (a power of two) times `ways`.
    pub(crate) fn new(sets: u32, ways: u32) -> Cache<ROOM> {
        assert!(sets.is_power_of_two(), "a cache has {sets} sets, not a power of two");
        assert!((1..=ROOM).contains(&(ways as usize)), "a cache has {ways} ways, not 1 to {ROOM}");
        Cache {
            sets: vec![Set::CLEAR; sets as usize].into_boxed_slice(),
            ways: ways as usize,
            index_bits: sets.trailing_zeros(),
            now: 0,
        }
    }

    #[inline]
    fn place(&self, key: u64) -> (usize, u32) {
        debug_assert!(key >> self.index_bits <= u64::from(u32::MAX), "key {key:#x} is too long");
        (key as usize & (self.sets.len() - 1), (key >> self.index_bits) as u32)
    }

    /// Advances the time; returns the new one.
    #[inline]
    fn tick(&mut self) -> u32 {
        if self.now == u32::MAX {
            self.age();
        }
        self.now += 1;
        self.now
    }

    /// Makes all times small again, and keeps their order in each set.
    #[cold]
    fn age(&mut self) {
        for set in &mut self.sets {
            let before = set.left;
            for (way, left) in set.left.iter_mut().enumerate() {
                let older = before.iter().filter(|other| **other < before[way]).count();
                *left = if before[way] == 0 { 0 } else { 1 + older as u32 };
            }
        }
        self.now = ROOM as u32;
    }

    /// Returns whether `key` is the most recent of its set, so that finding it changes nothing.
    #[inline]
    pub(crate) fn is_recent(&self, key: u64) -> bool {
        let (set, tag) = self.place(key);
        self.sets[set].is_first(tag)
    }

    /// Returns whether `key` is present, and makes it the most recent of its set.
    #[inline]
    pub(crate) fn find(&mut self, key: u64) -> bool {
        self.is_recent(key) || self.find_further(key).is_some()
    }

    /// Looks `key` up beyond the first way, and makes it the most recent: returns the set, and the
    /// way where the key was.
    // Out of line, so that the common case stays small where it is inlined.
    #[inline(never)]
    fn find_further(&mut self, key: u64) -> Option<(usize, usize)> {
        let (at, tag) = self.place(key);
        let way = self.sets[at].position(tag)?;
        let now = self.tick();
        self.sets[at].bring_forward(tag, way, now);
        Some((at, way))
    }

    /// Returns whether `key` was present, and makes it present, as the most recent of its set.
    #[inline]
    pub(crate) fn touch(&mut self, key: u64) -> bool {
        self.find(key) || {
            self.fill(key);
            false
        }
    }

    /// Inserts `key`, which is absent, in place of the least recent of its set. Returns the set,
    /// and the way to which the first way's key moved.
    pub(crate) fn fill(&mut self, key: u64) -> (usize, usize) {
        let now = self.tick();
        let (at, tag) = self.place(key);
        let set = &mut self.sets[at];
        let way = set.victim(self.ways);
        set.bring_forward(tag, way, now);
        (at, way)
    }

    /// Removes every key.
    pub(crate) fn clear(&mut self) {
        self.sets.fill(Set::CLEAR);
    }
}

/// A cache with a value for each key.
#[derive(Clone, Debug)]
pub(crate) struct Map<const ROOM: usize, V> {
    keys: Cache<ROOM>,
    values: Box<[[V; ROOM]]>,
}

impl<const ROOM: usize, V: Copy + Default> Map<ROOM, V> {
    /// A map of `sets` (a power of two) times `ways`.
    pub(crate) fn new(sets: u32, ways: u32) -> Map<ROOM, V> {
        let values = vec![[V::default(); ROOM]; sets as usize].into_boxed_slice();
        Map { keys: Cache::new(sets, ways), values }
    }

    /// The value of `key`, if the key is the most recent of its set.
    #[inline]
    pub(crate) fn recent(&self, key: u64) -> Option<&V> {
        let (set, _) = self.keys.place(key);
        self.keys.is_recent(key).then(|| &self.values[set][0])
    }

    /// The value of `key`; makes the key the most recent of its set.
    #[inline]
    pub(crate) fn find(&mut self, key: u64) -> Option<V> {
        self.recent(key).copied().or_else(|| {
            let (set, way) = self.keys.find_further(key)?;
            self.values[set].swap(0, way);
            Some(self.values[set][0])
        })
    }

    /// Inserts `key`, which is absent, in place of the least recent of its set.
    pub(crate) fn fill(&mut self, key: u64, value: V) {
        let (set, way) = self.keys.fill(key);
        self.values[set][way] = self.values[set][0];
        self.values[set][0] = value;
    }

    /// The value of `key`; does not change the order of use.
    pub(crate) fn peek(&self, key: u64) -> Option<V> {
        let (set, tag) = self.keys.place(key);
        self.keys.sets[set].position(tag).map(|way| self.values[set][way])
    }

    /// Removes the least recent of the values in `key`'s set for which `is_of_kind` holds, if there
    /// are at least `most` of them.
    pub(crate) fn make_room(&mut self, key: u64, most: usize, is_of_kind: impl Fn(V) -> bool) {
        let (at, _) = self.keys.place(key);
        let (set, values) = (&mut self.keys.sets[at], &self.values[at]);
        let is_one = |way: &usize| set.left[*way] != 0 && is_of_kind(values[*way]);
        // The first way is the most recent one whatever its `left`.
        let oldest = (1..ROOM).filter(is_one).min_by_key(|way| set.left[*way]).unwrap_or(0);
        if (0..ROOM).filter(is_one).count() >= most {
            set.left[oldest] = 0;
        }
    }

    /// Removes every key for which `keep`, given key and value, returns false.
    pub(crate) fn retain(&mut self, keep: impl Fn(u64, V) -> bool) {
        let bits = self.keys.index_bits;
        for (index, set) in self.keys.sets.iter_mut().enumerate() {
            let entries = set.tags.iter().zip(&self.values[index]).zip(&mut set.left);
            for ((tag, value), left) in entries {
                if *left != 0 && !keep(u64::from(*tag) << bits | index as u64, *value) {
                    *left = 0;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_key_is_replaced() {
        let mut map = Map::<SMALL, u32>::new(1, 3);
        (1..=3).for_each(|key| map.fill(key, key as u32 * 10));
        assert_eq!(map.find(1), Some(10));
        map.fill(4, 40);
        let left: Vec<_> = (1..=4).map(|key| map.find(key)).collect();
        assert_eq!(left, [Some(10), None, Some(30), Some(40)]);
    }

    #[test]
    fn sets_do_not_disturb_each_other() {
        let mut cache = Cache::<NARROW>::new(4, 1);
        (0..4).for_each(|key| assert!(!cache.touch(key)));
        (0..4).for_each(|key| assert!(cache.touch(key)));
        assert!(!cache.touch(4));
        assert!(!cache.touch(0));
    }

    #[test]
    fn it_agrees_with_a_list_in_order_of_use() {
        let mut cache = Cache::<WIDE>::new(1, 20);
        let mut list: Vec<u64> = Vec::new();
        let mut state = 7u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let key = state >> 59;
            let was_here = list.iter().position(|held| *held == key);
            assert_eq!(cache.touch(key), was_here.is_some());
            was_here.map(|at| list.remove(at));
            list.insert(0, key);
            list.truncate(20);
        }
    }

    #[test]
    fn every_tag_can_be_stored_and_none_is_present_at_first() {
        let tags = [0, 1, u64::from(u32::MAX) - 1, u64::from(u32::MAX)];
        for tag in tags {
            for set in [0, 15] {
                let mut map = Map::<SMALL, u32>::new(16, 4);
                assert_eq!(map.find(tag << 4 | set), None, "{tag:#x}");
                map.fill(tag << 4 | set, 7);
                assert_eq!(map.find(tag << 4 | set), Some(7), "{tag:#x}");
                let others = tags.iter().filter(|other| **other != tag);
                others.for_each(|other| assert_eq!(map.find(other << 4 | set), None));
                map.retain(|_, _| false);
                assert_eq!(map.find(tag << 4 | set), None, "{tag:#x}");
            }
        }
    }

    #[test]
    fn order_survives_the_wrap_of_time() {
        let mut cache = Cache::<NARROW>::new(1, 4);
        cache.now = u32::MAX - 5;
        (0..4).for_each(|key| assert!(!cache.touch(key)));
        // The second of these restarts the time.
        assert!(cache.find(0) && cache.find(2));
        assert!(cache.now < 100);
        assert!(!cache.touch(4) && !cache.find(1));
        assert!(!cache.touch(5) && !cache.find(3));
        assert!(cache.find(0) && cache.find(2) && cache.find(4) && cache.find(5));
    }

    #[test]
    fn removed_keys_make_room() {
        let mut map = Map::<SMALL, u32>::new(1, 4);
        (0..4).for_each(|key| map.fill(key, key as u32));
        map.retain(|key, _| key != 3 && key != 1);
        map.fill(4, 4);
        map.fill(5, 5);
        let left: Vec<_> = (0..6).map(|key| map.find(key)).collect();
        assert_eq!(left, [Some(0), None, Some(2), None, Some(4), Some(5)]);
    }

    #[test]
    fn refused_keys_are_removed() {
        let mut map = Map::<SMALL, u32>::new(2, 2);
        (0..4).for_each(|key| map.fill(key, 1));
        map.retain(|key, _| key != 2);
        assert_eq!((0..4).filter(|key| map.find(*key).is_some()).count(), 3);
        assert_eq!(map.find(2), None);
    }
}
