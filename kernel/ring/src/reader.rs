//! Readers, on any CPU, or in a program that has the ring mapped.

use tally_abi::ring::{
    Header, LOST, MAX_RECORD_WORDS, PAGE_HEADER_WORDS, PAGE_LOST, PAGE_START, PAGE_TSC, TAIL,
};

use crate::{
    Ring, WhenFull,
    local::{Ordering, fence},
};

/// Reader of a ring, from its oldest record on.
///
/// One reader consumes records ([`Self::consume`]); in a ring that discards, its progress frees
/// pages for writers. Any number of readers may observe ([`Self::observe`]); they learn how many
/// records they missed.
#[derive(Debug)]
pub struct Reader<'a, const WORDS: usize, const PAGES: usize> {
    ring: &'a Ring<WORDS, PAGES>,
    /// Whether this reader's progress frees pages.
    consumes: bool,
    page: u64,
    /// Position of the next record in the page.
    offset: usize,
    /// Number of records of all pages that were read or missed; `None` before the first page.
    seen: Option<u64>,
    /// Number of records without room that were already reported.
    refused: u64,
    /// Time stamp near the next one: the last one, or the page's.
    near_tsc: u64,
    record: [u64; MAX_RECORD_WORDS],
}

/// Item read from a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'r> {
    /// A record.
    Record {
        /// Kind of the record.
        kind: u8,
        /// Time stamp of the record.
        tsc: u64,
        /// All words of the record, starting with its header.
        words: &'r [u64],
    },
    /// Number of records that were overwritten, or had no room. They were written after the
    /// previous item, and before the next one.
    Lost(u64),
}

/// State of the ring at the reader's position.
enum Scan {
    /// A record with this number of words.
    Record(usize),
    /// End of the page; the next page has begun.
    Turn,
    /// No record yet.
    Nothing,
    /// Unreliable words: writers may have overwritten the page.
    Overtaken,
}

impl<'a, const WORDS: usize, const PAGES: usize> Reader<'a, WORDS, PAGES> {
    /// Makes a reader that consumes records. It reports the records that were lost before it was
    /// made.
    pub fn consume(ring: &'a Ring<WORDS, PAGES>) -> Self {
        Reader::new(ring, ring.mode() == WhenFull::Discard, true)
    }

    /// Makes a reader that observes, and writes nothing. It does not report the records that were
    /// lost before it was made.
    pub fn observe(ring: &'a Ring<WORDS, PAGES>) -> Self {
        Reader::new(ring, false, false)
    }

    fn new(ring: &'a Ring<WORDS, PAGES>, consumes: bool, begins: bool) -> Self {
        Reader {
            ring,
            consumes,
            page: 0,
            offset: PAGE_HEADER_WORDS,
            seen: begins.then_some(0),
            refused: 0,
            // If page 0 was overwritten, `go_to` replaces the stamp.
            near_tsc: ring.page(0, PAGE_TSC).load(Ordering::Relaxed),
            record: [0; MAX_RECORD_WORDS],
        }
    }

    /// Returns the next record, or the number lost before it; `None` if there is none yet.
    pub fn take(&mut self) -> Option<Item<'_>> {
        loop {
            let lost = match self.find() {
                Scan::Record(words) => {
                    let words = &self.record[..words];
                    let header = Header(words[0]);
                    let tsc = header.tsc(self.near_tsc);
                    self.near_tsc = tsc;
                    return Some(Item::Record { kind: header.kind(), tsc, words });
                }
                Scan::Nothing => return None,
                Scan::Turn => self.go_to(self.page + 1),
                Scan::Overtaken => self.go_to(self.oldest()),
            };
            if lost > 0 {
                return Some(Item::Lost(lost));
            }
        }
    }

    /// Returns a time stamp between those of the last item and the next one.
    pub fn near_tsc(&self) -> u64 {
        self.near_tsc
    }

    /// Returns the number of records without room that were not reported yet. To be called after
    /// the last record and while no writer runs.
    pub fn rest(&mut self) -> u64 {
        // Relaxed: a count on which nothing else depends.
        let now = self.ring.control[LOST].load(Ordering::Relaxed);
        self.note_refused(now)
    }

    /// Copies the next record, if there is one.
    fn find(&mut self) -> Scan {
        let Some(seen) = self.seen else { return Scan::Overtaken };
        let slot = self.ring.slot(self.page);
        let rest = slot.get(self.offset..).unwrap_or_default();
        // Pairs with the writer's Release: the record is seen with its header.
        let header = Header(rest.first().map_or(0, |word| word.load(Ordering::Acquire)));
        if header.words() == 0 {
            // The record does not exist yet, or is in the next page.
            let turned = self.ring.place().page(slot.len()) > self.page
                && self.word(self.page + 1, PAGE_START) == seen;
            return match turned {
                _ if self.is_overtaken() => Scan::Overtaken,
                true => Scan::Turn,
                false => Scan::Nothing,
            };
        }
        self.record[0] = header.0;
        let words = self.record[..header.words()].iter_mut().zip(rest);
        // Relaxed: ordered by the header's Acquire.
        words.skip(1).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
        if self.is_overtaken() {
            return Scan::Overtaken;
        }
        self.offset += header.words();
        self.seen = Some(seen + 1);
        Scan::Record(header.words())
    }

    /// Returns whether the page's slot may already hold another page.
    fn is_overtaken(&self) -> bool {
        if self.consumes {
            return false;
        }
        // Pairs with the Release before a page is cleared: if any word that was read belongs to the
        // later page, the writers' reservation is seen too.
        fence(Ordering::Acquire);
        self.page + PAGES as u64 - 1 <= self.ring.place().page(self.ring.slot(0).len())
    }

    /// Returns the oldest page that may be read.
    fn oldest(&self) -> u64 {
        let now = self.ring.place().page(self.ring.slot(0).len());
        now.saturating_sub(PAGES as u64 - 2)
    }

    /// Turns to a page that was begun, or to the oldest page if writers have overtaken it. Returns
    /// the number of records lost before it.
    fn go_to(&mut self, page: u64) -> u64 {
        self.page = page;
        let (start, refused) = loop {
            self.near_tsc = self.word(self.page, PAGE_TSC);
            let head = (self.word(self.page, PAGE_START), self.word(self.page, PAGE_LOST));
            if !self.is_overtaken() {
                break head;
            }
            self.page = self.oldest();
        };
        self.offset = PAGE_HEADER_WORDS;
        if self.consumes {
            // Pairs with the writer's Acquire: words that were read may be cleared.
            self.ring.control[TAIL].store(self.page, Ordering::Release);
        }
        let is_first = self.seen.is_none();
        let missed = start - self.seen.replace(start).unwrap_or(start);
        let refused = self.note_refused(refused);
        if is_first { 0 } else { missed + refused }
    }

    /// Returns how many of `now` records without room in total were not reported yet.
    fn note_refused(&mut self, now: u64) -> u64 {
        let more = now.saturating_sub(self.refused);
        self.refused += more;
        more
    }

    /// Returns a word of a page. Relaxed: an Acquire has seen that the page was begun, and
    /// [`Self::is_overtaken`] checks that it is still there.
    fn word(&self, page: u64, word: usize) -> u64 {
        self.ring.page(page, word).load(Ordering::Relaxed)
    }
}
