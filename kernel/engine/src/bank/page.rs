//! A page that the kernel shares with a program.
//!
//! The page's words are atomics, so the bank needs no unsafe code: the caller that maps a page
//! guarantees the validity of its memory.

use tally_abi::bank::PAGE_WORDS;

use crate::sync::{AtomicU64, Ordering};

/// A page of a bank.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct Page([AtomicU64; PAGE_WORDS]);

impl Default for Page {
    fn default() -> Self {
        Page(core::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Page {
    /// A word, as a reader loads it.
    pub fn load(&self, index: usize) -> u64 {
        // Pairs with the Release fence and store in `ControlWord`, through the control word.
        self.0.get(index).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Changes a word from `old` to `new`, as a program does in the page that it writes. Returns
    /// whether the word was `old`.
    pub fn exchange(&self, index: usize, old: u64, new: u64) -> bool {
        // Only the word itself is ordered: the kernel and the program are on one CPU.
        let exchange = |word: &AtomicU64| {
            word.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        self.0.get(index).is_some_and(exchange)
    }

    pub(super) fn store(&self, index: usize, value: u64, ordering: Ordering) {
        if let Some(word) = self.0.get(index) {
            word.store(value, ordering);
        }
    }
}

/// Stores a word of several pages, indexed from the first page's first word.
pub(super) fn put(pages: &[&Page], index: usize, value: u64) {
    if let Some(page) = pages.get(index / PAGE_WORDS) {
        page.store(index % PAGE_WORDS, value, Ordering::Relaxed);
    }
}

/// Loads a word of several pages; 0 beyond them.
pub(super) fn load(pages: &[&Page], index: usize) -> u64 {
    pages.get(index / PAGE_WORDS).map_or(0, |page| page.load(index % PAGE_WORDS))
}
