//! The slices that overflow interrupts have ended, in raw form, until they are folded into the
//! session: an interrupt stores a row and no more.

use alloc::boxed::Box;

use crate::Counts;

/// The most rows: at 200,000 cycles a slice, some milliseconds.
pub(crate) const ROWS: usize = 62;
/// Room for rows, so that no index is out of range.
const ROOM: usize = 64;
const _: () = assert!(ROWS <= ROOM && ROOM.is_power_of_two());
/// Rows from one mark to the next.
const STRETCH: usize = ROWS / 2;

/// One slice that an overflow interrupt has ended: two cache lines, or one if its groups use the
/// first four counters alone.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Row {
    /// When it ended.
    pub(crate) tsc: u64,
    /// The counters' values at its end: of the general ones, those of its group and of the next.
    pub(crate) raw: Counts,
}

/// Up to [`ROWS`] rows. What the overflow path needs comes first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Rows {
    rows: Box<[Row; ROOM]>,
    filled: usize,
    /// How many rows are filled when the next mark is due: up to [`STRETCH`] more than are filled.
    /// Emptying the rows does not put it off.
    due: usize,
    mark: Option<Mark>,
}

/// The processor's core cycles when a row was stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    /// The number of rows up to it.
    pub(crate) rows: usize,
    pub(crate) core_cycles: u64,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows { rows: Box::new([Row::default(); ROOM]), filled: 0, due: STRETCH, mark: None }
    }
}

impl Rows {
    pub(crate) fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Whether there is no room for the rows up to the next mark.
    pub(crate) fn is_full(&self) -> bool {
        self.due > ROWS
    }

    /// The row that is filled next. There is one, as full rows are folded at once.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> &mut Row {
        &mut self.rows[self.filled % ROOM]
    }

    /// Takes the next row as filled. Returns whether a mark is due, once in [`STRETCH`] rows.
    #[inline(always)]
    pub(crate) fn push(&mut self) -> bool {
        self.filled += 1;
        self.filled == self.due
    }

    /// Notes the processor's core cycles at the row that was just stored, if it counts them.
    pub(crate) fn mark(&mut self, core_cycles: Option<u64>) {
        self.due = self.filled + STRETCH;
        let rows = self.filled;
        self.mark = core_cycles.map(|core_cycles| Mark { rows, core_cycles }).or(self.mark.take());
    }

    /// Empties the rows and returns them, the oldest first, and the last mark.
    pub(crate) fn take(&mut self) -> (&[Row], Option<Mark>) {
        let filled = core::mem::take(&mut self.filled);
        // Rows that were filled without a look at what `push` returned may have passed the mark.
        self.due = self.due.saturating_sub(filled).max(1);
        (self.rows.get(..filled).unwrap_or_default(), self.mark.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores this many rows, as the overflow path does; gives the rows at which it marked.
    fn store(rows: &mut Rows, number: usize) -> usize {
        let mut marks = 0;
        for _ in 0..number {
            assert!(rows.filled < ROWS);
            if rows.push() {
                rows.mark(Some(1));
                marks += 1;
                if rows.is_full() {
                    rows.take();
                }
            }
        }
        marks
    }

    #[test]
    fn rows_that_are_emptied_early_do_not_put_a_mark_off() {
        for each in 1..=ROWS {
            let mut rows = Rows::default();
            let mut marks = 0;
            for _ in 0..10 * ROWS {
                marks += store(&mut rows, each);
                rows.take();
            }
            assert_eq!(marks, 10 * ROWS * each / STRETCH, "{each}");
        }
    }

    #[test]
    fn rows_that_nobody_empties_are_full_before_there_are_too_many() {
        let mut rows = Rows::default();
        assert_eq!(store(&mut rows, 10 * ROWS), 10 * ROWS / STRETCH);
    }
}
