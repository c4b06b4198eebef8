//! Trace ring: transports records out of any context, including NMIs, without a lock or a locked
//! instruction.
//!
//! Each CPU has one ring. Its writers run on that CPU and may interrupt one another at any
//! instruction: for example an interrupt, and an NMI within it. Readers run anywhere: on another
//! CPU, or in a program that maps the ring's memory, even read-only. A record is a header word,
//! with its kind, length and time stamp, followed by its words ([`tally_abi::ring`] has the
//! layout).
//!
//! # How it works
//! A writer reserves space by one `cmpxchg` without `lock` on the word that holds the end of the
//! last record and the number of records of its page. If an NMI has written in between, the
//! exchange fails, and the writer tries again. Then it stores its words, and its header last. Pages
//! are zeroed before they are written: a reader that finds no header knows that there is no record
//! yet, whichever writer was interrupted. Therefore no separate word has to be published.
//!
//! Records never cross the end of a page. A writer that finds no room turns to the next page, which
//! is ready (zeroed) by then, and makes the page after it ready; in a ring that discards, only if
//! the reader has consumed that page. Each turn stores the number of records so far in the header
//! of the new page, so that an overtaken reader knows how many records it missed.
//!
//! # Invariants
//! - No reader ever gets a torn record, nor the same record twice.
//! - At rest, written = read + lost + records in the ring, exactly ([`Status`]).
//! - Writers rely on the ring's contents being written by writers only, and run on one CPU:
//!   [`Ring::write`] is unsafe for that reason. Readers do not rely on the contents.
//! - A writer never waits. Its work is bounded by the clearing of one page, plus one retry for each
//!   interrupt that writes a record meanwhile.

#![no_std]

#[cfg(test)]
extern crate std;

mod local;
#[cfg(all(test, not(loom)))]
mod nested;
mod reader;
mod writer;

use tally_abi::ring::{
    CAPACITY, CONTROL_WORDS, END, LOST, MODE, PAGE_HEADER_WORDS, PAGE_START, PAGE_TSC, READY,
    RESERVED, TAIL,
};

use local::{AtomicU64, Ordering};
pub use reader::{Item, Reader};

/// Treatment of new records by a full ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// Discards new records, and counts them as lost.
    Discard,
    /// Overwrites the oldest records: a flight recorder.
    Overwrite,
}

/// Ring of `WORDS` words in `PAGES` pages, both powers of two.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Ring<const WORDS: usize, const PAGES: usize> {
    control: [AtomicU64; CONTROL_WORDS],
    words: [AtomicU64; WORDS],
}

/// Source of time stamps: the TSC, or a function.
pub trait TimeSource {
    /// Returns the time.
    fn tsc(&self) -> u64;

    /// Returns the low 48 bits of the time, shifted by 16.
    #[inline(always)]
    fn stamp(&self) -> u64 {
        self.tsc() << 16
    }
}

impl<F: Fn() -> u64> TimeSource for F {
    #[inline(always)]
    fn tsc(&self) -> u64 {
        self()
    }
}

/// Time-stamp counter of the processor.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Tsc;

#[cfg(target_arch = "x86_64")]
impl TimeSource for Tsc {
    #[inline(always)]
    fn tsc(&self) -> u64 {
        // SAFETY: every x86-64 processor has RDTSC; it has no effect on memory.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    /// Shifts the halves that RDTSC returns in place, which saves an instruction.
    #[inline(always)]
    fn stamp(&self) -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: as above.
        unsafe {
            core::arch::asm!(
                "rdtsc", out("rax") low, out("rdx") high, options(nomem, nostack, preserves_flags)
            );
        }
        (high << 48) + (low << 16)
    }
}

/// Number of records that were offered to a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Records offered by writers.
    pub written: u64,
    /// Offered records that had no room.
    pub refused: u64,
}

impl<const WORDS: usize, const PAGES: usize> Ring<WORDS, PAGES> {
    /// Number of words in a page.
    pub const PAGE_WORDS: usize = {
        assert!(WORDS.is_power_of_two() && PAGES.is_power_of_two() && PAGES >= 2);
        assert!(WORDS / PAGES > PAGE_HEADER_WORDS && WORDS / PAGES <= 1 << 15);
        WORDS / PAGES
    };

    /// Makes an empty ring. A ring that is too large to be moved is made in place, from zeros, by
    /// [`Self::init`].
    pub fn new(mode: WhenFull, tsc: u64) -> Self {
        let zero = |_| AtomicU64::new(0);
        let mut ring =
            Ring { control: core::array::from_fn(zero), words: core::array::from_fn(zero) };
        ring.init(mode, tsc);
        ring
    }

    /// Returns the ring in this memory, as a reader has it mapped; `None` if the memory does not
    /// have a ring's alignment and length. If no ring was made there, readers find arbitrary
    /// records, or panic.
    #[cfg(not(loom))]
    pub fn at(memory: &[AtomicU64]) -> Option<&Self> {
        let fits = size_of_val(memory) == size_of::<Self>()
            && memory.as_ptr().addr().is_multiple_of(align_of::<Self>());
        // SAFETY: (1) the memory has this type's size and alignment, and lives as long as the
        // result; (2) the type is nothing but such words in a row, by repr(C), for which any value
        // is valid.
        fits.then(|| unsafe { &*memory.as_ptr().cast::<Self>() })
    }

    /// Makes an empty ring out of one with all words 0, at the time `tsc`.
    pub fn init(&mut self, mode: WhenFull, tsc: u64) {
        // Relaxed: the ring is not shared yet.
        let first = Self::first(0);
        self.control[RESERVED].store(first.0, Ordering::Relaxed);
        self.control[END].store(Self::end(0), Ordering::Relaxed);
        self.control[READY].store(2 * 2, Ordering::Relaxed);
        self.control[MODE].store(mode as u64, Ordering::Relaxed);
        self.control[CAPACITY].store(PAGES as u64, Ordering::Relaxed);
        self.page(0, PAGE_TSC).store(tsc, Ordering::Relaxed);
    }

    /// Limits a ring that discards to `pages` unconsumed pages, 2 to `PAGES`; the other pages stay
    /// empty. To be called after [`Self::init`].
    pub fn limit(&mut self, pages: usize) {
        // Relaxed: the ring is not shared yet.
        self.control[CAPACITY].store(pages.clamp(2, PAGES) as u64, Ordering::Relaxed);
    }

    /// Returns the maximum number of pages that hold records which the reader has not consumed.
    fn capacity(&self) -> u64 {
        // Relaxed: the value never changes.
        self.control[CAPACITY].load(Ordering::Relaxed)
    }

    /// Returns whether at least half of a ring that discards is full of unconsumed records.
    pub fn is_half_full(&self) -> bool {
        // Relaxed: a count on which nothing else depends.
        let consumed = self.control[TAIL].load(Ordering::Relaxed);
        let written = self.place().page(Self::PAGE_WORDS);
        2 * written.saturating_sub(consumed) >= self.capacity()
    }

    fn mode(&self) -> WhenFull {
        // Relaxed: the value never changes.
        match self.control[MODE].load(Ordering::Relaxed) {
            0 => WhenFull::Discard,
            _ => WhenFull::Overwrite,
        }
    }

    /// Returns the number of records so far. While writers run, unfinished ones may be included or
    /// not.
    pub fn status(&self) -> Status {
        loop {
            let place = self.place();
            // The page is still the same afterwards, so the two values belong together.
            let start = self.page(place.page(Self::PAGE_WORDS), PAGE_START).load(Ordering::Acquire);
            let refused = self.control[LOST].load(Ordering::Acquire);
            if self.place().page(Self::PAGE_WORDS) == place.page(Self::PAGE_WORDS) {
                return Status { written: start + place.records() + refused, refused };
            }
        }
    }

    /// Returns the end of the last record.
    fn place(&self) -> Reservation {
        // Pairs with the Release of the writer that turned the page: its header is seen.
        Reservation(self.control[RESERVED].load(Ordering::Acquire))
    }

    /// Returns the end before the first record of a page.
    const fn first(page: u64) -> Reservation {
        Reservation(
            (page * Self::PAGE_WORDS as u64 + PAGE_HEADER_WORDS as u64) << Reservation::WORD_SHIFT,
        )
    }

    /// Returns the highest value in a page.
    const fn end(page: u64) -> u64 {
        ((page + 1) * Self::PAGE_WORDS as u64) << Reservation::WORD_SHIFT | Reservation::RECORDS
    }

    /// Returns the words of a page's slot.
    fn slot(&self, page: u64) -> &[AtomicU64] {
        let slot = page as usize % PAGES;
        &self.words[slot * Self::PAGE_WORDS..][..Self::PAGE_WORDS]
    }

    /// Returns a word of a page.
    fn page(&self, page: u64, word: usize) -> &AtomicU64 {
        &self.slot(page)[word]
    }
}

/// Value of the control word [`RESERVED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reservation(u64);

impl Reservation {
    const SHIFT: u32 = 16;
    /// In bytes, so that in a ring of 64 KiB one shift leaves nothing but the position.
    const WORD_SHIFT: u32 = Self::SHIFT + 3;
    const RECORDS: u64 = (1 << Self::SHIFT) - 1;

    /// Returns the end after another record of `words` words.
    #[inline(always)]
    const fn behind(self, words: usize) -> Reservation {
        Reservation(self.0.wrapping_add((words as u64) << Self::WORD_SHIFT | 1))
    }

    /// Returns the position, in bytes from the beginning of page 0.
    #[inline(always)]
    const fn position(self) -> u64 {
        self.0 >> Self::SHIFT
    }

    /// Returns the number of records in the page.
    const fn records(self) -> u64 {
        self.0 & Self::RECORDS
    }

    /// Returns the page of the last record, or of its header.
    const fn page(self, page_words: usize) -> u64 {
        (self.position() - 1) / (8 * page_words as u64)
    }
}
