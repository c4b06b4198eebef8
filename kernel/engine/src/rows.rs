//! The slices that overflow interrupts have ended, in raw form, until they are folded into the
//! session: an interrupt only stores a row.

use alloc::boxed::Box;

use crate::{Counts, core_time::CoreReading};

/// Maximum number of rows: some milliseconds of slices of 200,000 cycles.
pub(crate) const ROWS: usize = 62;
/// Room for rows, a power of two so that no index is out of range.
const ROOM: usize = 64;
const _: () = assert!(ROWS <= ROOM && ROOM.is_power_of_two());
/// Rows from one search for a pair of marks to the next.
const STRETCH: usize = ROWS / 2;
/// Maximum number of pairs in one search.
const MAX_PAIRS: usize = 8;

/// A slice that an overflow interrupt has ended: two cache lines, or one if the groups use only the
/// first four counters.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Row {
    /// TSC at the slice's end.
    pub(crate) tsc: u64,
    /// The counters' values at the slice's end: general counters only of its group and the next.
    pub(crate) raw: Counts,
}

/// Up to [`ROWS`] rows. The fields that the overflow path needs come first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Rows {
    rows: Box<[Row; ROOM]>,
    filled: usize,
    /// Row index at which core cycles are next read. Always within [`STRETCH`] of `filled`; folding
    /// does not postpone it.
    due: usize,
    /// Pairs of marks in this search.
    pairs: usize,
    /// The last mark, unless its row has been folded.
    last: Option<Mark>,
    /// The last two marks at adjacent rows, unless these have been folded.
    pair: Option<[Mark; 2]>,
}

/// A reading of the processor's core cycles when a row was stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// Number of rows up to the mark.
    pub(crate) rows: usize,
    pub(crate) reading: CoreReading,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows {
            rows: Box::new([Row::default(); ROOM]),
            filled: 0,
            due: STRETCH,
            pairs: 0,
            last: None,
            pair: None,
        }
    }
}

impl Rows {
    pub(crate) fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Returns whether the rows up to the next mark do not fit.
    pub(crate) fn is_full(&self) -> bool {
        self.due > ROWS
    }

    /// The row that is filled next. One exists, as full rows are folded at once.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> &mut Row {
        &mut self.rows[self.filled % ROOM]
    }

    /// Makes marks due from the next row on: the cost of an interrupt is not known yet.
    pub(crate) fn search(&mut self) {
        self.pairs = 0;
        self.due = self.filled + 1;
    }

    /// Counts the next row as filled. Returns whether a mark is due: in each [`STRETCH`] rows some
    /// adjacent ones.
    #[inline(always)]
    pub(crate) fn push(&mut self) -> bool {
        self.filled += 1;
        self.filled == self.due
    }

    /// Marks the row that was just stored with the processor's core cycles, if it counts them.
    /// Marks are due at each row until the kernel was not entered between two. Returns whether rows
    /// should be folded soon.
    pub(crate) fn mark(&mut self, reading: Option<CoreReading>) -> bool {
        let Some(reading) = reading else {
            let is_half_full = self.filled >= STRETCH;
            self.due = STRETCH + if is_half_full { self.filled } else { 0 };
            return is_half_full;
        };
        let mark = Mark { rows: self.filled, reading };
        self.due = self.filled + 1;
        let before = self.last.replace(mark).filter(|before| before.rows + 1 == mark.rows);
        let Some(before) = before else { return false };
        self.pair = Some([before, mark]);
        self.pairs += 1;
        let is_first = self.pairs == 1;
        if before.reading.entries == reading.entries || self.pairs >= MAX_PAIRS {
            self.pairs = 0;
            self.due = self.filled + STRETCH - 1;
        }
        is_first
    }

    /// Empties the rows and returns them, the oldest first, with the last pair of marks.
    pub(crate) fn take(&mut self) -> (&[Row], Option<[Mark; 2]>) {
        let filled = core::mem::take(&mut self.filled);
        // If `push`'s result was ignored, the rows may have passed the mark.
        self.due = self.due.saturating_sub(filled).max(1);
        self.last = None;
        (self.rows.get(..filled).unwrap_or_default(), self.pair.take())
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// Rows, and a kernel that is entered in each slice except every `quiet`th.
    struct Bench {
        rows: Rows,
        stored: usize,
        quiet: usize,
        entries: u64,
        marked: Vec<usize>,
        asked: Vec<usize>,
    }

    impl Bench {
        fn new(quiet: usize) -> Bench {
            let (marked, asked) = (Vec::new(), Vec::new());
            Bench { rows: Rows::default(), stored: 0, quiet, entries: 0, marked, asked }
        }

        /// Stores this many rows, as the overflow path does.
        fn store(&mut self, number: usize) {
            for _ in 0..number {
                self.stored += 1;
                self.entries += u64::from(!self.stored.is_multiple_of(self.quiet));
                assert!(self.rows.filled < ROWS);
                if self.rows.push() {
                    self.marked.push(self.stored);
                    let reading = CoreReading { cycles: 1, entries: self.entries };
                    if self.rows.mark(Some(reading)) {
                        self.asked.push(self.stored);
                    }
                    if self.rows.is_full() {
                        self.rows.take();
                    }
                }
            }
        }
    }

    /// The rows up to `last` at which marks are due in a kernel that is never entered.
    fn pairs(last: usize) -> Vec<usize> {
        let firsts = (STRETCH..).step_by(STRETCH);
        firsts.flat_map(|first| [first, first + 1]).take_while(|&row| row <= last).collect()
    }

    #[test]
    fn rows_that_are_emptied_early_do_not_put_a_mark_off() {
        for each in 2..=ROWS {
            let mut bench = Bench::new(1);
            for _ in 0..100 {
                bench.store(each);
                bench.rows.take();
            }
            let pairs = pairs(100 * each).len();
            assert!((pairs..=pairs + 100).contains(&bench.marked.len()), "{each}");
        }
    }

    #[test]
    fn rows_that_nobody_empties_are_full_before_there_are_too_many() {
        for quiet in [1, 2, 7, 100] {
            Bench::new(quiet).store(100 * ROWS);
        }
    }

    #[test]
    fn folding_is_asked_for_at_the_first_pair_of_a_search() {
        let mut bench = Bench::new(1);
        bench.store(2 * STRETCH);
        assert_eq!(bench.marked, pairs(2 * STRETCH));
        assert_eq!(bench.asked, [STRETCH + 1]);
    }

    #[test]
    fn it_looks_for_a_slice_in_which_the_kernel_was_not_entered() {
        let mut bench = Bench::new(STRETCH + 4);
        bench.store(STRETCH + 1);
        bench.rows.take();
        bench.store(20);
        assert_eq!(bench.marked, [0, 1, 2, 3, 4].map(|after| STRETCH + after));
        assert_eq!(bench.asked, [STRETCH + 1]);
        let (taken, marks) = bench.rows.take();
        assert_eq!(taken.len(), 20);
        assert_eq!(marks.map(|marks| marks.map(|mark| mark.rows)), Some([2, 3]));
        // The search gives up.
        let mut bench = Bench::new(1_000);
        bench.store(STRETCH + 20);
        assert_eq!(bench.marked.len(), 1 + MAX_PAIRS);
    }
}
