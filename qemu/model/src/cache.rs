//! A set-associative cache with least-recently-used replacement, most recent first.
//!
//! Invariant: the ways of a set are in the order of their last use, so that the common hit is one
//! compare and replacement is a shift.

/// A cache of tags, with one word of payload each.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    /// `(tag, payload)`, set by set.
    entries: Box<[(u64, u64)]>,
    ways: usize,
    set_mask: u64,
}

/// A tag that no line and no page has.
const EMPTY: u64 = u64::MAX;

impl Cache {
    /// A cache of `sets` (a power of two) times `ways`.
    pub(crate) fn new(sets: u32, ways: u32) -> Cache {
        assert!(sets.is_power_of_two() && ways > 0, "a cache of {sets} sets and {ways} ways");
        let entries = vec![(EMPTY, 0); (sets * ways) as usize].into_boxed_slice();
        Cache { entries, ways: ways as usize, set_mask: u64::from(sets - 1) }
    }

    #[inline]
    fn set(&mut self, tag: u64) -> &mut [(u64, u64)] {
        let first = (tag & self.set_mask) as usize * self.ways;
        &mut self.entries[first..first + self.ways]
    }

    /// The payload of `tag` if it is here, which then is the most recent.
    #[inline]
    pub(crate) fn find(&mut self, tag: u64) -> Option<u64> {
        let set = self.set(tag);
        if set[0].0 == tag {
            return Some(set[0].1);
        }
        let way = set.iter().position(|entry| entry.0 == tag)?;
        set[..=way].rotate_right(1);
        Some(set[0].1)
    }

    /// Brings `tag` in as the most recent; gives back the tag that had to go.
    #[inline]
    pub(crate) fn fill(&mut self, tag: u64, payload: u64) -> Option<u64> {
        let set = self.set(tag);
        set.rotate_right(1);
        let victim = std::mem::replace(&mut set[0], (tag, payload));
        (victim.0 != EMPTY).then_some(victim.0)
    }

    /// Whether `tag` was here; it is afterwards.
    #[inline]
    pub(crate) fn touch(&mut self, tag: u64) -> bool {
        if self.find(tag).is_some() {
            return true;
        }
        self.fill(tag, 0);
        false
    }

    /// Throws away every entry whose tag `keep` refuses.
    pub(crate) fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        for entry in &mut self.entries {
            if entry.0 != EMPTY && !keep(entry.0) {
                entry.0 = EMPTY;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes() {
        let mut cache = Cache::new(1, 3);
        for tag in 1..=3 {
            assert_eq!(cache.fill(tag, tag * 10), None);
        }
        assert_eq!(cache.find(1), Some(10));
        assert_eq!(cache.fill(4, 40), Some(2));
        assert_eq!((cache.find(2), cache.find(3), cache.find(4)), (None, Some(30), Some(40)));
    }

    #[test]
    fn sets_do_not_disturb_each_other() {
        let mut cache = Cache::new(4, 1);
        (0..4).for_each(|tag| assert!(!cache.touch(tag)));
        (0..4).for_each(|tag| assert!(cache.touch(tag)));
        assert!(!cache.touch(4));
        assert!(!cache.touch(0));
    }
}
