//! Structures with a number of entries, as the times at which their entries become free, and lanes
//! that process a number of micro-operations a cycle.

/// A structure whose entries are freed in the order in which they were taken.
#[derive(Clone, Debug)]
pub(super) struct Fifo {
    /// The cycle at which each entry becomes free, the oldest at `next`.
    free_at: Box<[u64]>,
    next: usize,
}

impl Fifo {
    pub(super) fn new(entries: usize) -> Fifo {
        Fifo { free_at: vec![0; entries.max(1)].into_boxed_slice(), next: 0 }
    }

    /// Makes a structure that is never full: it has no entries to look at.
    pub(super) fn endless() -> Fifo {
        Fifo { free_at: Box::new([]), next: 0 }
    }

    /// The first cycle from which `count` more entries (at least 1) are free.
    #[inline]
    pub(super) fn room(&self, count: usize) -> u64 {
        let entries = self.free_at.len();
        let last = self.next + count.min(entries).max(1) - 1;
        let last = if last >= entries { last - entries } else { last };
        self.free_at.get(last).copied().unwrap_or(0)
    }

    /// Takes an entry until cycle `free_at`.
    #[inline]
    pub(super) fn take(&mut self, free_at: u64) {
        if let Some(entry) = self.free_at.get_mut(self.next) {
            *entry = free_at;
            self.next = if self.next + 1 == self.free_at.len() { 0 } else { self.next + 1 };
        }
    }
}

/// The cycles ahead that a [`Pool`] represents, a power of two. An entry that is freed later is
/// treated as freed at the end.
const AHEAD: usize = 1 << 12;
/// The entries of a [`Pool`] that is never full.
const ENDLESS: usize = usize::MAX;

/// A structure whose entries are freed in any order: the scheduler. It stores only the number of
/// entries that are freed in each future cycle.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    freed: Box<[u16; AHEAD]>,
    /// The cycle up to which freed entries have been subtracted.
    now: u64,
    held: usize,
    entries: usize,
}

impl Pool {
    pub(super) fn new(entries: usize) -> Pool {
        Pool { freed: Box::new([0; AHEAD]), now: 0, held: 0, entries: entries.max(1) }
    }

    /// Makes a pool that is never full. It does not count its entries, which have no bound.
    pub(super) fn endless() -> Pool {
        Pool::new(ENDLESS)
    }

    /// The first cycle from `from` on at which an entry is free. Calls must be in order of time.
    #[inline]
    pub(super) fn room(&mut self, from: u64) -> u64 {
        while self.now < from && self.held != 0 || self.held >= self.entries {
            self.now += 1;
            let freed = &mut self.freed[self.now as usize & (AHEAD - 1)];
            self.held -= usize::from(std::mem::take(freed));
        }
        self.now = self.now.max(from);
        self.now
    }

    /// Takes an entry until cycle `free_at`.
    #[inline]
    pub(super) fn take(&mut self, free_at: u64) {
        if free_at > self.now && self.entries != ENDLESS {
            let at = free_at.min(self.now + AHEAD as u64 - 1);
            self.freed[at as usize & (AHEAD - 1)] += 1;
            self.held += 1;
        }
    }
}

/// A stage that processes up to `width` micro-operations a cycle, in order.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    width: u64,
    cycle: u64,
    used: u64,
}

impl Stage {
    pub(super) fn new(width: u16) -> Stage {
        Stage { width: width.into(), cycle: 0, used: 0 }
    }

    /// The cycle that is being filled.
    pub(super) fn cycle(&self) -> u64 {
        self.cycle
    }

    /// The cycle of the next micro-operation, from `earliest` on.
    #[inline]
    pub(super) fn next(&self, earliest: u64) -> u64 {
        earliest.max(self.cycle + u64::from(self.used >= self.width))
    }

    /// The first cycle in which nothing is processed yet.
    pub(super) fn unused_from(&self) -> u64 {
        self.cycle + u64::from(self.used != 0)
    }

    /// Processes `count` from `earliest` on; returns the cycle of the last.
    #[inline]
    pub(super) fn take(&mut self, earliest: u64, count: u8) -> u64 {
        if earliest > self.cycle {
            (self.cycle, self.used) = (earliest, 0);
        }
        self.used += u64::from(count);
        while self.used > self.width {
            self.used -= self.width;
            self.cycle += 1;
        }
        self.cycle
    }

    /// Ends the current cycle.
    #[inline]
    pub(super) fn close(&mut self) {
        if self.used != 0 {
            (self.cycle, self.used) = (self.cycle + 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_filled_in_order() {
        let mut lanes = Stage::new(4);
        let cycles = [(5, 3), (5, 1), (5, 1), (0, 0), (9, 2), (0, 9)];
        let taken = cycles.map(|(earliest, count)| lanes.take(earliest, count));
        assert_eq!(taken, [5, 5, 6, 6, 9, 11]);
        lanes.close();
        lanes.close();
        assert_eq!(lanes.take(0, 1), 12);
    }

    #[test]
    fn an_entry_is_free_when_its_holder_leaves() {
        let mut fifo = Fifo::new(3);
        [10, 20, 30].into_iter().for_each(|at| fifo.take(at));
        assert_eq!([1, 2, 3, 9].map(|count| fifo.room(count)), [10, 20, 30, 30]);
        fifo.take(40);
        assert_eq!(fifo.room(3), 40);
    }

    #[test]
    fn a_pool_frees_the_earliest_first() {
        let mut pool = Pool::new(2);
        assert_eq!(pool.room(0), 0);
        pool.take(30);
        pool.take(10);
        assert_eq!(pool.room(5), 10);
        pool.take(20);
        assert_eq!(pool.room(40), 40);
    }

    #[test]
    fn what_is_endless_always_has_room() {
        let (mut fifo, mut pool) = (Fifo::endless(), Pool::endless());
        for at in 0..100_000 {
            fifo.take(1 << 40);
            pool.take(1 << 40);
            assert_eq!((fifo.room(1), fifo.room(9), pool.room(at)), (0, 0, at));
        }
    }
}
