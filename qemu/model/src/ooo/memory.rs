//! Memory operations in flight: lines on their way into the L1, and stores that have not reached
//! it.

use crate::access::{Access, ServedBy};

/// Entries of each table, a power of two: more than a core has in flight.
const LINES: usize = 1 << 8;
const WORDS: usize = 1 << 10;
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

/// Cycles that intervals cover, each counted once. The intervals come in the order of instructions,
/// not of time: a part of one that lies before the end of an earlier one is taken for covered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Covered {
    until: u64,
}

impl Covered {
    /// Adds an interval, without its end; returns how many more cycles are covered.
    pub(super) fn extend(&mut self, from: u64, until: u64) -> u64 {
        let new = until.saturating_sub(from.max(self.until));
        self.until = self.until.max(until);
        new
    }
}

/// The last store to a word of eight bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    address: u64,
    /// A bit for each byte of it that is written.
    bytes: u8,
    data_at: u64,
    leaves_at: u64,
}

/// The part of a load that is in the store queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forward {
    /// None of it.
    None,
    /// All of it, available at this cycle.
    Whole(u64),
    /// Some of it: the load waits until the store has reached the cache, at this cycle.
    Blocked(u64),
}

/// The last store to each word, in a table by address.
#[derive(Clone, Debug)]
pub(super) struct Stores(Box<[Word; WORDS]>);

impl Stores {
    pub(super) fn new() -> Stores {
        Stores(Box::new([Word::default(); WORDS]))
    }

    /// The words of an access, each with the bytes of the access.
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

    /// Records a store whose data is available at `data_at` and which reaches the cache at
    /// `leaves_at`.
    pub(super) fn store(&mut self, access: Access, data_at: u64, leaves_at: u64) {
        for (address, bytes) in Stores::words(access) {
            self.0[address as usize & (WORDS - 1)] = Word { address, bytes, data_at, leaves_at };
        }
    }

    /// The part of a load at `cycle` that is in the store queue.
    #[inline]
    pub(super) fn load(&self, access: Access, cycle: u64) -> Forward {
        let mut found = Forward::None;
        for (address, bytes) in Stores::words(access) {
            let word = &self.0[address as usize & (WORDS - 1)];
            if word.address != address || word.bytes & bytes == 0 || word.leaves_at <= cycle {
                continue;
            }
            found = match (found, word.bytes & bytes == bytes) {
                (Forward::None, true) => Forward::Whole(word.data_at),
                (Forward::Whole(at), true) => Forward::Whole(at.max(word.data_at)),
                (Forward::Blocked(at), _) => Forward::Blocked(at.max(word.leaves_at)),
                (_, false) => Forward::Blocked(word.leaves_at),
            };
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(address: u64, bytes: u64) -> Access {
        Access { address, bytes, retires: true, insn: 0 }
    }

    #[test]
    fn a_load_inside_a_store_is_forwarded() {
        let mut stores = Stores::new();
        stores.store(access(0x1000, 8), 10, 50);
        assert_eq!(stores.load(access(0x1000, 8), 20), Forward::Whole(10));
        assert_eq!(stores.load(access(0x1004, 2), 20), Forward::Whole(10));
        assert_eq!(stores.load(access(0x1008, 8), 20), Forward::None);
        assert_eq!(stores.load(access(0x1000, 8), 50), Forward::None);
    }

    #[test]
    fn a_load_over_the_edge_of_a_store_is_blocked() {
        let mut stores = Stores::new();
        stores.store(access(0x1002, 2), 10, 50);
        assert_eq!(stores.load(access(0x1000, 8), 20), Forward::Blocked(50));
        assert_eq!(stores.load(access(0x1004, 4), 20), Forward::None);
        stores.store(access(0x100c, 8), 12, 60);
        assert_eq!(stores.load(access(0x1010, 4), 20), Forward::Whole(12));
        assert_eq!(stores.load(access(0x1008, 16), 20), Forward::Blocked(60));
    }

    #[test]
    fn words_at_both_ends_of_the_address_space_are_forwarded() {
        let mut stores = Stores::new();
        assert_eq!(stores.load(access(0, 8), 0), Forward::None);
        stores.store(access(u64::MAX - 7, 8), 10, 50);
        stores.store(access(0, 8), 12, 60);
        assert_eq!(stores.load(access(u64::MAX, 1), 20), Forward::Whole(10));
        assert_eq!(stores.load(access(7, 1), 20), Forward::Whole(12));
        // The first address follows the last.
        assert_eq!(stores.load(access(u64::MAX - 3, 8), 20), Forward::Whole(12));
    }

    #[test]
    fn cycles_that_several_intervals_cover_count_once() {
        let mut covered = Covered::default();
        let all = [(10, 20), (15, 25), (15, 25), (30, 30), (30, 40), (12, 35)];
        let new = all.map(|(from, until)| covered.extend(from, until));
        assert_eq!(new, [10, 5, 0, 0, 10, 0]);
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
