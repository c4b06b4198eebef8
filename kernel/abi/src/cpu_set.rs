//! Sets of CPUs, in the words of Linux's `cpu_set_t`: bit `n % 64` of word `n / 64` is CPU `n`.

use crate::boot::MAX_CPUS;

/// Number of words of a set.
const WORDS: usize = MAX_CPUS / u64::BITS as usize;

/// A [`CpuSet`] as it crosses the system-call boundary.
pub type CpuSetWords = [u64; WORDS];

/// A set of CPUs by their numbers, from 0 to [`MAX_CPUS`] - 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(CpuSetWords);

impl CpuSet {
    /// The set of all numbers.
    pub const ALL: CpuSet = CpuSet([u64::MAX; WORDS]);

    /// The set of one CPU; empty if there can be no such number.
    pub fn of(cpu: usize) -> CpuSet {
        let mut set = CpuSet::default();
        set.insert(cpu);
        set
    }

    /// The set of the first `count` CPUs.
    pub fn first(count: usize) -> CpuSet {
        let mut set = CpuSet::default();
        (0..count).for_each(|cpu| set.insert(cpu));
        set
    }

    /// Adds a CPU, if there can be such a number.
    pub fn insert(&mut self, cpu: usize) {
        if let Some(word) = self.0.get_mut(cpu / 64) {
            *word |= 1 << (cpu % 64);
        }
    }

    /// Returns whether a CPU is in the set.
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// Returns whether no CPU is in the set.
    pub fn is_empty(&self) -> bool {
        self.lowest().is_none()
    }

    /// The lowest number in the set.
    pub fn lowest(&self) -> Option<usize> {
        let (index, word) = self.0.iter().enumerate().find(|(_, word)| **word != 0)?;
        Some(64 * index + word.trailing_zeros() as usize)
    }

    /// The numbers in the set, in order.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        (0..MAX_CPUS).filter(|cpu| self.contains(*cpu))
    }

    /// The CPUs that both sets have.
    #[must_use]
    pub fn intersection(self, other: CpuSet) -> CpuSet {
        CpuSet(core::array::from_fn(|index| self.0[index] & other.0[index]))
    }

    /// The CPUs that `other` does not have.
    #[must_use]
    pub fn without(self, other: CpuSet) -> CpuSet {
        CpuSet(core::array::from_fn(|index| self.0[index] & !other.0[index]))
    }

    /// Parses a list of numbers and ranges, such as `0,2-3`; `None` if it is none, or has a number
    /// that no CPU can have.
    pub fn parse(list: &str) -> Option<CpuSet> {
        let mut set = CpuSet::default();
        for range in list.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            if first > last || last >= MAX_CPUS {
                return None;
            }
            (first..=last).for_each(|cpu| set.insert(cpu));
        }
        Some(set)
    }

    /// Encodes the set.
    pub const fn to_words(self) -> CpuSetWords {
        self.0
    }

    /// Decodes the words of [`Self::to_words`]. Every bit is a CPU.
    pub const fn from_words(words: CpuSetWords) -> CpuSet {
        CpuSet(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn numbers_above_a_word_are_in_the_set() {
        let mut set = CpuSet::of(71);
        set.insert(3);
        set.insert(1023);
        assert_eq!(set.numbers().collect::<Vec<_>>(), [3, 71, 1023]);
        assert_eq!((set.lowest(), set.contains(71), set.contains(70)), (Some(3), true, false));
        let words = set.to_words();
        assert_eq!((words[0], words[1], words[15]), (1 << 3, 1 << 7, 1 << 63));
        assert_eq!(CpuSet::from_words(words), set);
        // No CPU has such a number.
        set.insert(1024);
        assert!(!set.contains(1024) && CpuSet::of(1024).is_empty());
        assert_eq!(CpuSet::of(1024).lowest(), None);
    }

    #[test]
    fn sets_are_intersected_and_subtracted() {
        let (set, present) = (CpuSet::parse("70-80").unwrap(), CpuSet::first(72));
        assert_eq!(set.intersection(present).numbers().collect::<Vec<_>>(), [70, 71]);
        assert_eq!(set.without(present).lowest(), Some(72));
        assert_eq!((CpuSet::first(MAX_CPUS), CpuSet::first(0)), (CpuSet::ALL, CpuSet::default()));
    }

    #[test]
    fn lists_are_parsed() {
        let numbers = |list| CpuSet::parse(list).map(|set| set.numbers().collect::<Vec<_>>());
        assert_eq!(numbers("0,2-4,63-65"), Some([0, 2, 3, 4, 63, 64, 65].into()));
        assert_eq!(numbers("1023"), Some([1023].into()));
        for list in ["", "a", "3-2", "1024", "0-1024", "1,", "-1", "1--2"] {
            assert_eq!(numbers(list), None, "{list}");
        }
    }
}
