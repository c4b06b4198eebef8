//! Sets of entries, each of which keeps the most recently used ones.

/// Entries in sets, each with the most recent first. An entry can have any value but 0.
#[derive(Clone, Debug)]
pub(crate) struct Recency {
    /// Entries by set; 0 for a free one.
    entries: Box<[u64]>,
    ways: usize,
}

impl Recency {
    pub(crate) fn new(sets: u32, ways: u32) -> Recency {
        let (sets, ways) = (sets as usize, ways as usize);
        Recency { entries: vec![0; sets * ways].into_boxed_slice(), ways }
    }

    /// The number of sets.
    pub(crate) fn sets(&self) -> usize {
        self.entries.len() / self.ways
    }

    /// Returns whether a set has an entry.
    pub(crate) fn has(&self, set: usize, entry: u64) -> bool {
        self.entries[set * self.ways..][..self.ways].contains(&entry)
    }

    /// Makes an entry the most recent of its set. Returns whether it was there.
    pub(crate) fn touch(&mut self, set: usize, entry: u64) -> bool {
        let set = &mut self.entries[set * self.ways..][..self.ways];
        let at = set.iter().position(|other| *other == entry);
        let last = at.unwrap_or(set.len() - 1);
        set[..=last].rotate_right(1);
        set[0] = entry;
        at.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recent_entry_of_a_set_makes_room() {
        let mut recency = Recency::new(3, 2);
        assert_eq!(recency.sets(), 3);
        for (entry, was_there) in [(1, false), (2, false), (1, true), (3, false), (2, false)] {
            assert_eq!(recency.has(2, entry), was_there, "{entry}");
            assert_eq!(recency.touch(2, entry), was_there, "{entry}");
        }
        assert!(!recency.touch(1, 3));
        assert!(recency.touch(2, 3));
    }
}
