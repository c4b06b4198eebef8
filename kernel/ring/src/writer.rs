//! Writers: another writer of the same CPU may interrupt one at every instruction.

use tally_abi::ring::{
    END, Header, LOST, MAX_RECORD_WORDS, PAGE_HEADER_WORDS, PAGE_LOST, PAGE_START, PAGE_TSC, READY,
    RESERVED, TAIL,
};

use crate::{
    Reservation, Ring, TimeSource, WhenFull,
    local::{self, AtomicU64, Ordering, fence},
};

/// Marks a point between two accesses to shared words, where an interrupt may come. In tests it
/// does.
#[inline(always)]
fn window() {
    #[cfg(all(test, not(loom)))]
    crate::nested::window();
}

impl<const WORDS: usize, const PAGES: usize> Ring<WORDS, PAGES> {
    /// Writes a record of `head` and then `tail`, with the time of `clock` at its reservation: time
    /// stamps in a ring do not decrease if `clock` does not. Returns whether there was room; if
    /// not, the record is counted as lost.
    ///
    /// # Safety
    /// 1. The ring was made by [`Self::new`], or from zeros by [`Self::init`], and since then only
    ///    this function and the ring's readers have written to it.
    /// 2. All its writers run on one CPU, or, outside of a kernel, in one thread and its signal
    ///    handlers: they reserve space without a locked instruction.
    #[inline(always)]
    pub unsafe fn write<const HEAD: usize>(
        &self,
        kind: u8,
        clock: impl TimeSource,
        head: &[u64; HEAD],
        tail: &[u64],
    ) -> bool {
        let words = 1 + HEAD + tail.len();
        if words > MAX_RECORD_WORDS || words > Self::PAGE_WORDS - PAGE_HEADER_WORDS {
            local::increment(&self.control[LOST]);
            return false;
        }
        // The first attempt is separate, so that the common path is one straight line.
        match self.reserve(kind, words, &clock) {
            Some((place, header)) => {
                // SAFETY: the caller's contract; the space was reserved for `words` words just now.
                unsafe { self.fill(place, header, head, tail) };
                true
            }
            // A copy, so that the common path keeps the head in registers.
            None => {
                let head = *head;
                // SAFETY: the caller's contract.
                unsafe { self.write_with_retries(kind, &clock, &head, tail) }
            }
        }
    }

    /// Writes a record with as many attempts as necessary.
    ///
    /// # Safety
    /// See [`Self::write`].
    #[cold]
    #[inline(never)]
    unsafe fn write_with_retries<const HEAD: usize>(
        &self,
        kind: u8,
        clock: &impl TimeSource,
        head: &[u64; HEAD],
        tail: &[u64],
    ) -> bool {
        let words = 1 + HEAD + tail.len();
        while self.make_room(words, clock.tsc()) {
            if let Some((place, header)) = self.reserve(kind, words, clock) {
                // SAFETY: the caller's contract; the space was reserved for `words` words just now.
                unsafe { self.fill(place, header, head, tail) };
                return true;
            }
        }
        false
    }

    /// Reserves the next space, and makes the header with its time stamp. `None` if the page has no
    /// room, or if an interrupt has written in between.
    #[inline(always)]
    fn reserve(
        &self,
        kind: u8,
        words: usize,
        clock: &impl TimeSource,
    ) -> Option<(Reservation, Header)> {
        // Relaxed: a CPU sees its own stores in their order.
        let old = Reservation(self.control[RESERVED].load(Ordering::Relaxed));
        window();
        let new = old.behind(words);
        if local::is_below(&self.control[END], new.0) {
            return None;
        }
        // Between the load and the exchange: a record that is written in between has an earlier
        // stamp.
        let header = Header::stamped(kind, words, clock.stamp());
        window();
        local::change(&self.control[RESERVED], old.0, new.0, header.0).then_some((old, header))
    }

    /// Writes a record into its space.
    ///
    /// # Safety
    /// The contract of [`Self::write`] holds, and [`Self::reserve`] returned this space, for a
    /// header and these words.
    #[inline(always)]
    unsafe fn fill<const HEAD: usize>(
        &self,
        place: Reservation,
        header: Header,
        head: &[u64; HEAD],
        tail: &[u64],
    ) {
        window();
        // Pairs with the reader's fence, and needs no instruction on x86-64: a reader that sees a
        // word of this record instead of an older one sees the reservation too.
        fence(Ordering::Release);
        let at = place.position() as usize & (8 * WORDS - 1);
        let put = |index: usize, word: &u64| {
            // SAFETY: it is in the reserved space, by the caller's contract. Relaxed: the header's
            // Release orders it.
            unsafe { self.word(at + 8 * (1 + index)) }.store(*word, Ordering::Relaxed);
            window();
        };
        // Two loops: the compiler unrolls the first, and would not unroll a chain of both.
        head.iter().enumerate().for_each(|(i, word)| put(i, word));
        tail.iter().enumerate().for_each(|(i, word)| put(HEAD + i, word));
        // SAFETY: it is in the reserved space, by the caller's contract.
        let first = unsafe { self.word(at) };
        // Pairs with the reader's Acquire: a reader that sees the header sees the record.
        first.store(header.0, Ordering::Release);
    }

    /// Returns the word at `offset` bytes from the first.
    ///
    /// # Safety
    /// The word is in space that a writer reserved, in a ring that meets the contract of
    /// [`Self::write`].
    #[inline(always)]
    unsafe fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset < 8 * WORDS);
        // SAFETY: reserved space consists of whole words, and does not extend beyond its page:
        // `make_room` sets `END` to the end of a page only, `reserve` reserves no space beyond
        // `END`, and the ring's words are whole pages. As all writers are on one CPU, the page of
        // `END` is never after that of `RESERVED`.
        unsafe { &*self.words.as_ptr().byte_add(offset) }
    }

    /// Turns the page if a record of `words` words does not fit into it. Returns whether to try
    /// again; if not, the record is counted as lost.
    fn make_room(&self, words: usize, tsc: u64) -> bool {
        loop {
            let old = self.place();
            let page = old.page(Self::PAGE_WORDS);
            window();
            if old.behind(words).0 <= Self::end(page) {
                // `END` belonged to another page: the writer that turned the page has not stored it
                // yet, or an interrupt has overwritten it.
                self.control[END].store(Self::end(page), Ordering::Relaxed);
                return true;
            }
            if !self.is_ready(page + 1) {
                self.make_ready(page + 1);
                window();
                if !self.is_ready(page + 1) {
                    // The reader has not consumed the page, or this writer interrupted the one that
                    // clears it.
                    local::increment(&self.control[LOST]);
                    return false;
                }
            }
            if self.turn(old, page, tsc) {
                return true;
            }
        }
    }

    /// Turns to the page after `page`, if `old` is still the end. Returns whether it was.
    fn turn(&self, old: Reservation, page: u64, tsc: u64) -> bool {
        let start = self.page(page, PAGE_START).load(Ordering::Relaxed) + old.records();
        let header = self.page(page + 1, PAGE_START);
        let seen = header.load(Ordering::Relaxed);
        window();
        // The header is written before any writer reserves space in the page, and never by a writer
        // that was overtaken: numbers of records only grow, so an interrupt's value never equals
        // `seen`.
        if self.control[RESERVED].load(Ordering::Relaxed) != old.0
            || !local::change(header, seen, start, 0)
        {
            return false;
        }
        window();
        // Both stores may overwrite those of an interrupt: the values are lower bounds.
        let lost = self.control[LOST].load(Ordering::Relaxed);
        self.page(page + 1, PAGE_LOST).store(lost, Ordering::Relaxed);
        window();
        self.page(page + 1, PAGE_TSC).store(tsc, Ordering::Relaxed);
        window();
        if !local::change(&self.control[RESERVED], old.0, Self::first(page + 1).0, 0) {
            return false;
        }
        window();
        self.control[END].store(Self::end(page + 1), Ordering::Relaxed);
        window();
        self.make_ready(page + 2);
        true
    }

    fn is_ready(&self, page: u64) -> bool {
        // Acquire: pairs with the Release in `make_ready`, needed only by loom; on one CPU the
        // order is guaranteed anyway.
        self.control[READY].load(Ordering::Acquire) >= 2 * (page + 1)
    }

    /// Clears the slot of a page for its records, if it is the next page, no other writer is
    /// clearing it, and its old records may be dropped.
    fn make_ready(&self, page: u64) {
        let capacity = match self.mode() {
            WhenFull::Discard => self.capacity(),
            WhenFull::Overwrite => PAGES as u64,
        };
        if page >= capacity && !self.may_drop(page - capacity) {
            return;
        }
        window();
        if !local::change(&self.control[READY], 2 * page, 2 * page + 1, 0) {
            return;
        }
        window();
        // Pairs with the reader's fence: a reader that sees a word cleared here sees the
        // reservation that led to it.
        fence(Ordering::Release);
        local::clear(&self.slot(page)[PAGE_HEADER_WORDS..]);
        window();
        self.control[READY].store(2 * (page + 1), Ordering::Release);
    }

    /// Returns whether a page's records may be dropped: in a ring that discards, the reader has
    /// consumed them; in one that overwrites, no writer that this one interrupted is still writing
    /// one of them.
    fn may_drop(&self, page: u64) -> bool {
        if self.mode() == WhenFull::Discard {
            // Pairs with the reader's Release: it has read the words that will be cleared.
            return self.control[TAIL].load(Ordering::Acquire) > page;
        }
        let load = |word: &AtomicU64| word.load(Ordering::Acquire);
        let records =
            load(self.page(page + 1, PAGE_START)).wrapping_sub(load(self.page(page, PAGE_START)));
        let slot = self.slot(page);
        let mut offset = PAGE_HEADER_WORDS;
        (0..records).all(|_| {
            let words = slot.get(offset).map_or(0, |header| Header(load(header)).words());
            offset += words;
            words > 0
        })
    }
}
