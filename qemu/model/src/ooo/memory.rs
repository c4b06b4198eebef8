//! Memory operations in flight: lines on their way into the L1, and stores that have not reached
//! it.

use crate::access::{Access, ServedBy};

/// Entries of each table, a power of two: more than a core has in flight.
const LINES: usize = 1 << 8;
const WORDS: usize = 1 << 10;
/// Words of eight bytes in a page: half of the entries.
const PAGE_WORDS: u64 = 1 << 9;
/// A multiplier that spreads bits upwards, from the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A line in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    line: u64,
    arrives: u64,
    from: Option<ServedBy>,
}

/// Lines in flight to the L1. The modelled caches contain a line as soon as it is requested; an
/// access before its arrival waits for it.
#[derive(Clone, Debug)]
pub(super) struct Lines(Box<[Line; LINES]>);

impl Lines {
    pub(super) fn new() -> Lines {
        Lines(Box::new([Line::default(); LINES]))
    }

    fn slot(line: u64) -> usize {
        (line.wrapping_mul(SPREAD) >> 32) as usize & (LINES - 1)
    }

    /// Records the request of a line.
    pub(super) fn request(&mut self, line: u64, arrives: u64, from: ServedBy) {
        self.0[Lines::slot(line)] = Line { line, arrives, from: Some(from) };
    }

    /// The cycle of a line's arrival and its source, if it arrives after `cycle`.
    #[inline]
    pub(super) fn in_flight(&self, line: u64, cycle: u64) -> Option<(u64, ServedBy)> {
        let entry = &self.0[Lines::slot(line)];
        (entry.line == line && entry.arrives > cycle).then_some((entry.arrives, entry.from?))
    }
}

/// The number of cycles in a union of intervals. The intervals come in the order of instructions,
/// not of time: a part of an interval before the end of an earlier one is assumed to be covered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Covered {
    until: u64,
}

impl Covered {
    /// Returns whether an interval begins after all covered cycles.
    pub(super) fn is_new(self, from: u64, until: u64) -> bool {
        from < until && from > self.until
    }

    /// Adds the interval from `from` to `until` (exclusive); returns how many more cycles are
    /// covered.
    pub(super) fn extend(&mut self, from: u64, until: u64) -> u64 {
        let new = until.saturating_sub(from.max(self.until));
        if from < until {
            self.until = self.until.max(until);
        }
        new
    }
}

/// The last store to a word of eight bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    address: u64,
    /// The bytes of the word that the store writes, one bit each.
    bytes: u8,
    /// The store's number, modulo 2³².
    store: u32,
    times: StoreTimes,
}

/// The cycles from which a store's data and its address are known, and at which it reaches the
/// cache.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StoreTimes {
    pub(super) data_at: u64,
    pub(super) addressed_at: u64,
    pub(super) leaves_at: u64,
}

/// Result of a load's look-up in the store queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queued {
    pub(super) forward: Forward,
    /// The cycle from which the addresses of all stores that overlap the load are known; 0 without
    /// such a store.
    pub(super) addressed_at: u64,
}

/// The part of a load that is in the store queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forward {
    /// No byte.
    None,
    /// All bytes, available at this cycle.
    Whole(u64),
    /// Some bytes, or bytes of several stores: the load waits until the stores have reached the
    /// cache, at this cycle.
    Blocked(u64),
}

/// The last store to each word, in a table by address.
#[derive(Clone, Debug)]
pub(super) struct Stores {
    words: Box<[Word; WORDS]>,
    /// Number of the last store.
    last: u32,
}

impl Stores {
    pub(super) fn new() -> Stores {
        Stores { words: Box::new([Word::default(); WORDS]), last: 0 }
    }

    /// The words of an access, each with a mask of the accessed bytes.
    fn words(access: Access) -> impl Iterator<Item = (u64, u8)> {
        let (mut word, mut from) = (access.address >> 3, access.address & 7);
        let mut left = access.bytes.max(1);
        std::iter::from_fn(move || {
            let bytes = left.min(8 - from);
            let found = (bytes != 0).then_some((word, (0xff >> (8 - bytes.max(1))) << from));
            // Addresses wrap around at 2⁶⁴.
            (word, from) = ((word + 1) & (u64::MAX >> 3), 0);
            left -= bytes;
            found
        })
    }

    /// Records a store.
    pub(super) fn store(&mut self, access: Access, times: StoreTimes) {
        self.last = self.last.wrapping_add(1);
        let store = self.last;
        for (address, bytes) in Stores::words(access) {
            self.words[address as usize & (WORDS - 1)] = Word { address, bytes, store, times };
        }
    }

    /// Looks a load at `cycle` up in the store queue.
    #[inline]
    pub(super) fn load(&self, access: Access, cycle: u64) -> Queued {
        let (mut source, mut is_whole): (Option<Word>, bool) = (None, true);
        let (mut addressed_at, mut leaves_at) = (0, 0);
        for (address, bytes) in Stores::words(access) {
            let word = self.words[address as usize & (WORDS - 1)];
            let is_of_one = source.is_none_or(|other| other.store == word.store);
            let times = word.times;
            let is_here = word.address == address && times.leaves_at > cycle;
            is_whole &= is_here && is_of_one && word.bytes & bytes == bytes;
            if is_here && word.bytes & bytes != 0 {
                source = Some(word);
                addressed_at = times.addressed_at.max(addressed_at);
                leaves_at = times.leaves_at.max(leaves_at);
            }
        }
        let forward = match source {
            None => Forward::None,
            Some(of) if is_whole => Forward::Whole(of.times.data_at),
            Some(_) => Forward::Blocked(leaves_at),
        };
        Queued { forward, addressed_at }
    }

    /// Returns whether the low 12 bits of the address of a load at `cycle` equal those of a queued
    /// store to another page.
    pub(super) fn has_alias(&self, access: Access, cycle: u64) -> bool {
        Stores::words(access).any(|(address, bytes)| {
            // Stores to even and odd pages have separate entries.
            [0, PAGE_WORDS].into_iter().any(|page| {
                let word = &self.words[(address ^ page) as usize & (WORDS - 1)];
                word.address != address
                    && word.address % PAGE_WORDS == address % PAGE_WORDS
                    && word.bytes & bytes != 0
                    && word.times.leaves_at > cycle
            })
        })
    }
}

/// Entries of [`Order`], by the low bits of loads' addresses, a power of two.
const LOADS: usize = 256;

/// The memory-order predictor: which loads may execute before the addresses of older stores are
/// known.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// Per load: executions since its last ordering violation, saturating.
    harmless: [u8; LOADS],
    /// The cycle from which the addresses of all older stores are known.
    pub(super) addressed_at: u64,
}

impl Order {
    pub(super) fn new() -> Order {
        Order { harmless: [0; LOADS], addressed_at: 0 }
    }

    /// The executions of the load at `pc` since its last ordering violation.
    pub(super) fn of(&mut self, pc: u64) -> &mut u8 {
        &mut self.harmless[pc as usize & (LOADS - 1)]
    }

    /// Records that the addresses of an instruction's stores are known at this cycle.
    pub(super) fn stores(&mut self, addressed_at: u64) {
        self.addressed_at = self.addressed_at.max(addressed_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(address: u64, bytes: u64) -> Access {
        Access { address, bytes, retires: true, insn: 0 }
    }

    /// Times of a store whose address is known two cycles before its data.
    fn times(data_at: u64, leaves_at: u64) -> StoreTimes {
        StoreTimes { data_at, addressed_at: data_at - 2, leaves_at }
    }

    #[test]
    fn addresses_of_all_stores_of_a_load_have_to_be_known() {
        let mut stores = Stores::new();
        stores.store(access(0x1000, 8), times(10, 50));
        stores.store(access(0x1008, 8), times(12, 60));
        let known = |address, bytes, cycle| stores.load(access(address, bytes), cycle).addressed_at;
        assert_eq!([known(0x1000, 8, 5), known(0x1004, 8, 5), known(0x1010, 8, 5)], [8, 10, 0]);
        assert_eq!(known(0x1000, 16, 55), 10);
    }

    #[test]
    fn addresses_that_differ_by_pages_are_aliases() {
        let mut stores = Stores::new();
        stores.store(access(0x5100, 4), times(10, 50));
        let is_alias = |address, cycle| stores.has_alias(access(address, 4), cycle);
        let pages = [0x1100, 0x2100, 0x4100, 0x7fff_ffff_f100, 0xffff_ffff_ffff_f100];
        assert!(pages.into_iter().all(|address| is_alias(address, 20)));
        assert!(!is_alias(0x5100, 20) && !is_alias(0x1104, 20) && !is_alias(0x1100, 50));
    }

    #[test]
    fn a_load_inside_a_store_is_forwarded() {
        let mut stores = Stores::new();
        stores.store(access(0x1000, 8), times(10, 50));
        assert_eq!(stores.load(access(0x1000, 8), 20).forward, Forward::Whole(10));
        assert_eq!(stores.load(access(0x1004, 2), 20).forward, Forward::Whole(10));
        assert_eq!(stores.load(access(0x1008, 8), 20).forward, Forward::None);
        assert_eq!(stores.load(access(0x1000, 8), 50).forward, Forward::None);
    }

    #[test]
    fn a_load_over_the_edge_of_a_store_is_blocked() {
        let mut stores = Stores::new();
        stores.store(access(0x1002, 2), times(10, 50));
        assert_eq!(stores.load(access(0x1000, 8), 20).forward, Forward::Blocked(50));
        assert_eq!(stores.load(access(0x1004, 4), 20).forward, Forward::None);
        stores.store(access(0x100c, 8), times(12, 60));
        assert_eq!(stores.load(access(0x1010, 4), 20).forward, Forward::Whole(12));
        assert_eq!(stores.load(access(0x1008, 16), 20).forward, Forward::Blocked(60));
    }

    #[test]
    fn a_load_of_several_stores_is_blocked() {
        let mut stores = Stores::new();
        stores.store(access(0x1000, 8), times(10, 50));
        stores.store(access(0x1008, 8), times(12, 60));
        assert_eq!(stores.load(access(0x1000, 16), 20).forward, Forward::Blocked(60));
        assert_eq!(stores.load(access(0x1008, 16), 20).forward, Forward::Blocked(60));
        stores.store(access(0x1000, 32), times(14, 70));
        assert_eq!(stores.load(access(0x1008, 16), 20).forward, Forward::Whole(14));
    }

    #[test]
    fn words_at_both_ends_of_the_address_space_are_forwarded() {
        let mut stores = Stores::new();
        assert_eq!(stores.load(access(0, 8), 0).forward, Forward::None);
        stores.store(access(u64::MAX - 7, 8), times(10, 50));
        stores.store(access(0, 8), times(12, 60));
        assert_eq!(stores.load(access(u64::MAX, 1), 20).forward, Forward::Whole(10));
        assert_eq!(stores.load(access(7, 1), 20).forward, Forward::Whole(12));
        // The first address follows the last.
        assert_eq!(stores.load(access(u64::MAX - 3, 8), 20).forward, Forward::Blocked(60));
    }

    #[test]
    fn cycles_that_several_intervals_cover_count_once() {
        let mut covered = Covered::default();
        let all = [(10, 20), (15, 25), (15, 25), (30, 30), (30, 40), (12, 35)];
        let new =
            all.map(|(from, until)| (covered.is_new(from, until), covered.extend(from, until)));
        let [yes, no] = [true, false];
        assert_eq!(new, [(yes, 10), (no, 5), (no, 0), (no, 0), (yes, 10), (no, 0)]);
    }

    #[test]
    fn a_line_is_in_flight_until_it_arrives() {
        let mut lines = Lines::new();
        lines.request(7, 100, ServedBy::Llc);
        assert_eq!(lines.in_flight(7, 99), Some((100, ServedBy::Llc)));
        assert_eq!(lines.in_flight(7, 100), None);
        assert_eq!(lines.in_flight(8, 0), None);
    }
}
