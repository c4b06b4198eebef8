//! What memory has under way: lines on their way into the L1, and stores that have not reached it.

use crate::{Access, core::Source};

/// Entries of each table, a power of two: more than the machine has in flight.
const LINES: usize = 1 << 8;
const WORDS: usize = 1 << 10;
/// A multiplier that spreads bits upwards, from the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A line on its way.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    line: u64,
    arrives: u64,
    from: Option<Source>,
}

/// Lines on their way into the L1. The caches have them as soon as they were asked for; who comes
/// before they arrive waits for them all the same.
#[derive(Clone, Debug)]
pub(super) struct Lines(Box<[Line; LINES]>);

impl Lines {
    pub(super) fn new() -> Lines {
        Lines(Box::new([Line::default(); LINES]))
    }

    fn slot(line: u64) -> usize {
        (line.wrapping_mul(SPREAD) >> 32) as usize & (LINES - 1)
    }

    /// A line was asked for.
    pub(super) fn ask(&mut self, line: u64, arrives: u64, from: Source) {
        self.0[Lines::slot(line)] = Line { line, arrives, from: Some(from) };
    }

    /// When the line arrives and from where, if that is after `cycle`.
    #[inline]
    pub(super) fn on_its_way(&self, line: u64, cycle: u64) -> Option<(u64, Source)> {
        let entry = &self.0[Lines::slot(line)];
        (entry.line == line && entry.arrives > cycle).then_some((entry.arrives, entry.from?))
    }
}

/// The last store to a word of eight bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    address: u64,
    /// A bit for each byte that it wrote.
    bytes: u8,
    data_at: u64,
    leaves_at: u64,
}

/// What a load finds in the store queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forward {
    /// Nothing of it.
    None,
    /// All of it, which is there at this cycle.
    Whole(u64),
    /// Some of it: the load waits until the store has reached the cache.
    Blocked(u64),
}

/// Stores by the words that they write.
#[derive(Clone, Debug)]
pub(super) struct Stores(Box<[Word; WORDS]>);

impl Stores {
    pub(super) fn new() -> Stores {
        Stores(Box::new([Word::default(); WORDS]))
    }

    /// The words of an access, with the bytes in each.
    fn words(access: Access) -> impl Iterator<Item = (u64, u8)> {
        let (first, end) = (access.address, access.address + access.bytes.max(1));
        (first >> 3..=(end - 1) >> 3).map(move |word| {
            let from = first.max(word << 3) & 7;
            let to = end.min((word + 1) << 3) - (word << 3);
            (word, (0xff >> (8 - (to - from))) << from)
        })
    }

    /// A store whose data is there at `data_at` and which reaches the cache at `leaves_at`.
    pub(super) fn store(&mut self, access: Access, data_at: u64, leaves_at: u64) {
        for (address, bytes) in Stores::words(access) {
            self.0[address as usize & (WORDS - 1)] = Word { address, bytes, data_at, leaves_at };
        }
    }

    /// What a load at `cycle` finds.
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
        Access { address, bytes, retires: true, chases: false, insn: 0 }
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
    fn a_line_is_on_its_way_until_it_arrives() {
        let mut lines = Lines::new();
        lines.ask(7, 100, Source::Llc);
        assert_eq!(lines.on_its_way(7, 99), Some((100, Source::Llc)));
        assert_eq!(lines.on_its_way(7, 100), None);
        assert_eq!(lines.on_its_way(8, 0), None);
    }
}
