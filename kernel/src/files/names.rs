//! The names of a folder. The first few are looked up in the order in which they were added, and
//! never move: so what finding one of Tally's own files at the ramdisk's beginning takes does not
//! depend on what else the ramdisk has.

use alloc::{collections::BTreeMap, string::String, vec::Vec};
use core::ops::Bound::{Excluded, Unbounded};

/// Names that are compared one by one.
const FIRST: usize = 8;

/// Names, each with what it stands for.
pub(super) struct Names<T> {
    first: Vec<(String, T)>,
    rest: BTreeMap<String, T>,
}

impl<T> Names<T> {
    pub(super) const fn new() -> Names<T> {
        Names { first: Vec::new(), rest: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty() && self.rest.is_empty()
    }

    pub(super) fn get(&self, name: &str) -> Option<&T> {
        let first = self.first.iter().find(|(of, _)| of == name).map(|(_, value)| value);
        first.or_else(|| self.rest.get(name))
    }

    /// The first name in alphabetical order after `name`.
    pub(super) fn next(&self, name: &str) -> Option<(&String, &T)> {
        let first = self.first.iter().filter(|(of, _)| **of > *name).map(|(of, value)| (of, value));
        let rest = self.rest.range::<str, _>((Excluded(name), Unbounded)).next();
        first.chain(rest).min_by_key(|(of, _)| *of)
    }

    /// Adds a name that is not there.
    pub(super) fn insert(&mut self, name: &str, value: T) {
        if self.first.len() < FIRST {
            self.first.reserve_exact(FIRST - self.first.len());
            self.first.push((name.into(), value));
        } else {
            self.rest.insert(name.into(), value);
        }
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<T> {
        match self.first.iter().position(|(of, _)| of == name) {
            Some(at) => Some(self.first.remove(at).1),
            None => self.rest.remove(name),
        }
    }
}
