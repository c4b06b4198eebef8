//! A set-associative array with least-recently-used replacement, most recent first.
//!
//! Invariants: the ways of a set are in the order of their last use, so the common hit is one
//! compare; and a set is one array of fixed length, so that finding and reordering are a handful of
//! vector instructions without a branch. A set of 16 ways is one cache line of the host.

/// Ways that a first-level translation buffer has room for.
pub(crate) const SMALL: usize = 8;
/// Ways that a narrow array has room for.
pub(crate) const NARROW: usize = 16;
/// Ways that a wide array has room for.
pub(crate) const WIDE: usize = 32;

/// A tag that nothing has: keys are too short to reach it.
const EMPTY: u32 = u32::MAX;

/// The ways of one set.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct Set<const ROOM: usize>([u32; ROOM]);

impl<const ROOM: usize> Set<ROOM> {
    /// Where `tag` is, the first way aside; 0 where it is not.
    #[inline]
    fn position(&self, tag: u32) -> usize {
        let mut found = 0;
        for way in 1..ROOM {
            found |= if self.0[way] == tag { way } else { 0 };
        }
        found
    }

    /// Whether `tag` is here beyond the first way; it is the first afterwards.
    // Out of line, so that the common case stays small where it is inlined.
    #[inline(never)]
    fn find_further(&mut self, tag: u32) -> bool {
        let way = self.position(tag);
        if way != 0 {
            self.promote(way, tag);
        }
        way != 0
    }

    /// Puts `value` first and moves the ways before `way` back by one, over it.
    #[inline]
    fn promote(&mut self, way: usize, value: u32) {
        let old = self.0;
        for to in 1..ROOM {
            self.0[to] = if to <= way { old[to - 1] } else { old[to] };
        }
        self.0[0] = value;
    }
}

/// A cache: which keys are here. Keys are line or page numbers.
#[derive(Clone, Debug)]
pub(crate) struct Cache<const ROOM: usize> {
    sets: Box<[Set<ROOM>]>,
    ways: usize,
    index_bits: u32,
}

impl<const ROOM: usize> Cache<ROOM> {
    /// A cache of `sets` (a power of two) times `ways`.
    pub(crate) fn new(sets: u32, ways: u32) -> Cache<ROOM> {
        assert!(sets.is_power_of_two(), "a cache of {sets} sets");
        assert!((1..=ROOM).contains(&(ways as usize)), "a cache of {ways} ways");
        Cache {
            sets: vec![Set([EMPTY; ROOM]); sets as usize].into_boxed_slice(),
            ways: ways as usize,
            index_bits: sets.trailing_zeros(),
        }
    }

    #[inline]
    fn place(&self, key: u64) -> (usize, u32) {
        debug_assert!(key >> self.index_bits < u64::from(EMPTY), "{key:#x} is too long a key");
        (key as usize & (self.sets.len() - 1), (key >> self.index_bits) as u32)
    }

    /// Whether `key` is here; it then is the most recent of its set.
    #[inline]
    pub(crate) fn find(&mut self, key: u64) -> bool {
        let (set, tag) = self.place(key);
        let set = &mut self.sets[set];
        set.0[0] == tag || set.find_further(tag)
    }

    /// Whether `key` was here; it is afterwards, as the most recent of its set.
    #[inline]
    pub(crate) fn touch(&mut self, key: u64) -> bool {
        self.find(key) || {
            self.fill(key);
            false
        }
    }

    /// Brings `key` in over the least recent of its set.
    #[inline]
    pub(crate) fn fill(&mut self, key: u64) {
        let (set, tag) = self.place(key);
        let last = self.ways - 1;
        self.sets[set].promote(last, tag);
    }

    /// Throws everything away.
    pub(crate) fn clear(&mut self) {
        self.sets.fill(Set([EMPTY; ROOM]));
    }
}

/// A map of recent keys to values: a cache with a payload.
#[derive(Clone, Debug)]
pub(crate) struct Map<const ROOM: usize> {
    keys: Cache<ROOM>,
    values: Box<[Set<ROOM>]>,
}

impl<const ROOM: usize> Map<ROOM> {
    /// A map of `sets` (a power of two) times `ways`.
    pub(crate) fn new(sets: u32, ways: u32) -> Map<ROOM> {
        let values = vec![Set([0; ROOM]); sets as usize].into_boxed_slice();
        Map { keys: Cache::new(sets, ways), values }
    }

    /// The value of `key`, which then is the most recent of its set.
    #[inline]
    pub(crate) fn find(&mut self, key: u64) -> Option<u32> {
        let (set, tag) = self.keys.place(key);
        match self.keys.sets[set].0[0] == tag || self.find_further(set, tag) {
            true => Some(self.values[set].0[0]),
            false => None,
        }
    }

    #[inline(never)]
    fn find_further(&mut self, set: usize, tag: u32) -> bool {
        let (keys, values) = (&mut self.keys.sets[set], &mut self.values[set]);
        let way = keys.position(tag);
        if way != 0 {
            keys.promote(way, tag);
            values.promote(way, values.0[way]);
        }
        way != 0
    }

    /// Brings `key` in over the least recent of its set.
    pub(crate) fn fill(&mut self, key: u64, value: u32) {
        let (set, _) = self.keys.place(key);
        self.values[set].promote(self.keys.ways - 1, value);
        self.keys.fill(key);
    }

    /// Throws away every entry whose key `keep` refuses.
    pub(crate) fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        let bits = self.keys.index_bits;
        for (index, set) in self.keys.sets.iter_mut().enumerate() {
            for tag in &mut set.0 {
                if *tag != EMPTY && !keep(u64::from(*tag) << bits | index as u64) {
                    *tag = EMPTY;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes() {
        let mut map = Map::<SMALL>::new(1, 3);
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
    fn what_is_refused_goes() {
        let mut map = Map::<SMALL>::new(2, 2);
        (0..4).for_each(|key| map.fill(key, 1));
        map.retain(|key| key != 2);
        assert_eq!((0..4).filter(|key| map.find(*key).is_some()).count(), 3);
        assert_eq!(map.find(2), None);
    }
}
