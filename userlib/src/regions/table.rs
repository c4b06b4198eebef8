//! Table of regions: a row for each name and thread, and the visits that have not ended.

use alloc::{string::String, vec, vec::Vec};

use tally_abi::thread::{EVENT_WORDS, HEADER_WORDS, TIME_NS};

use crate::sums::{self, Bases, Sums};

/// All regions of a program.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Row>,
    /// Visits that have not ended, in the order in which they began.
    open: Vec<Visit>,
}

/// Counts of one thread in one region.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) thread: u64,
    pub(super) calls: u64,
    pub(super) time_ns: u64,
    pub(super) bases: Bases,
    /// Sums by event.
    pub(super) sums: Vec<Sums>,
}

/// Visit that has not ended.
#[derive(Debug)]
struct Visit {
    row: usize,
    /// Words of the thread at the start of the visit.
    words: Vec<u64>,
}

impl Table {
    /// Begins a visit. Returns the buffer of `words` words for its start values.
    pub(super) fn enter(&mut self, name: &str, thread: u64, words: usize) -> &mut [u64] {
        let known = self.rows.iter().position(|row| row.is(name, Some(thread)));
        let row = known.unwrap_or_else(|| {
            let sums = vec![Sums::default(); (words - HEADER_WORDS) / EVENT_WORDS];
            let row = Row { name: name.into(), thread, calls: 0, time_ns: 0, bases: [0; 2], sums };
            self.rows.push(row);
            self.rows.len() - 1
        });
        &mut self.open.push_mut(Visit { row, words: vec![0; words] }).words
    }

    /// Ends the thread's last visit, if it has this name. Returns the region's row, and the words
    /// of the visit's start unless the visit is inside another one of the region, which has its
    /// counts.
    pub(super) fn leave(
        &mut self,
        name: &str,
        thread: u64,
    ) -> Option<(&mut Row, Option<Vec<u64>>)> {
        let is_own = |visit: &Visit| self.rows[visit.row].thread == thread;
        let last = self.open.iter().rposition(is_own)?;
        if !self.rows[self.open[last].row].is(name, Some(thread)) {
            return None;
        }
        let Visit { row, words } = self.open.remove(last);
        let is_inner = self.open.iter().any(|visit| visit.row == row);
        Some((&mut self.rows[row], (!is_inner).then_some(words)))
    }

    /// Returns the rows with visits that have not ended, and the number of these.
    pub(super) fn open(&self) -> Vec<(&Row, usize)> {
        let number = |row: usize| self.open.iter().filter(|visit| visit.row == row).count();
        let rows = self.rows.iter().enumerate().map(|(row, of)| (of, number(row)));
        rows.filter(|(_, number)| *number > 0).collect()
    }

    /// Returns the rows of which a visit has ended.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.calls > 0)
    }
}

impl Row {
    /// Returns whether the row has this name, and this thread if one is given.
    pub(super) fn is(&self, name: &str, thread: Option<u64>) -> bool {
        self.name == name && thread.is_none_or(|thread| thread == self.thread)
    }

    /// Adds a visit, from its words at the start, if its counts are not those of another visit, and
    /// at the end.
    pub(super) fn visit(&mut self, began: Option<&[u64]>, ended: &[u64]) {
        self.calls += 1;
        let Some(began) = began else { return };
        let since = |word: usize| ended[word].saturating_sub(began[word]);
        self.time_ns += since(TIME_NS);
        let bases = sums::visit(&mut self.sums, since);
        sums::add(&mut self.bases, bases);
    }

    /// Adds the counts of another thread in the region.
    pub(super) fn add(&mut self, other: &Row) {
        self.calls += other.calls;
        self.time_ns += other.time_ns;
        sums::add(&mut self.bases, other.bases);
        for (sums, other) in self.sums.iter_mut().zip(&other.sums) {
            sums.add(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the words of a thread after `cycles` cycles and `events` occurrences of one event.
    fn words(cycles: u64, events: u64) -> [u64; 7] {
        [0, 1000 * cycles, cycles, 2 * cycles, events, cycles, 2 * cycles]
    }

    #[test]
    fn visits_nest_and_threads_are_apart() {
        let mut table = Table::default();
        let enter = |table: &mut Table, name, thread, at: [u64; 7]| {
            table.enter(name, thread, at.len()).copy_from_slice(&at);
        };
        enter(&mut table, "outer", 1, words(10, 100));
        enter(&mut table, "outer", 2, words(0, 0));
        enter(&mut table, "inner", 1, words(20, 200));
        assert!(table.leave("outer", 1).is_none(), "the inner one is left first");
        assert!(table.leave("inner", 2).is_none() && table.leave("inner", 3).is_none());
        for (name, end) in [("inner", words(25, 260)), ("outer", words(30, 300))] {
            let (row, began) = table.leave(name, 1).unwrap();
            row.visit(began.as_deref(), &end);
        }
        let found: Vec<_> =
            table.rows().map(|row| (&*row.name, row.thread, row.bases[0])).collect();
        assert_eq!(found, [("outer", 1, 20), ("inner", 1, 5)]);
        assert_eq!(table.rows().map(|row| (row.calls, row.time_ns)).max(), Some((1, 20_000)));
    }

    /// Inner visits would count the same events again, with the same errors.
    #[test]
    fn a_recursion_counts_from_its_outermost_start_to_its_end() {
        let mut table = Table::default();
        for at in [10, 20, 30] {
            table.enter("deep", 1, 7).copy_from_slice(&words(at, 10 * at));
        }
        assert_eq!(
            table.open().iter().map(|(row, open)| (&*row.name, *open)).max(),
            Some(("deep", 3))
        );
        for at in [40, 50, 60] {
            let (row, began) = table.leave("deep", 1).unwrap();
            row.visit(began.as_deref(), &words(at, 10 * at));
        }
        let row = table.rows().next().unwrap();
        assert_eq!((row.calls, row.bases, row.time_ns), (3, [50, 100], 50_000));
        assert!(table.open().is_empty());
    }
}
