//! The slices that overflow interrupts have ended, in raw form, until they are folded into the
//! session: an interrupt stores a row and no more.

use alloc::boxed::Box;

use crate::{Counts, session::DrawnSlice};

/// The most rows: at 200,000 cycles a slice, some milliseconds.
pub(crate) const ROWS: usize = 64;

/// One slice that an overflow interrupt has ended: two cache lines.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(crate) struct Row {
    /// The counters' values at its end: of the general ones, those of its group and of the next.
    pub(crate) raw: Counts,
    pub(crate) slice: DrawnSlice,
    /// When it ended.
    pub(crate) tsc: u64,
}

/// Up to [`ROWS`] rows.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    rows: Box<[Row; ROWS]>,
    filled: usize,
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
        Rows { rows: Box::new([Row::default(); ROWS]), filled: 0, mark: None }
    }
}

impl Rows {
    pub(crate) fn is_empty(&self) -> bool {
        self.filled == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.filled == ROWS
    }

    /// The row that is filled next. There is one, as full rows are folded at once.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> &mut Row {
        &mut self.rows[self.filled % ROWS]
    }

    /// Completes the next row, whose values are read.
    #[inline(always)]
    pub(crate) fn complete(&mut self, slice: DrawnSlice, tsc: u64) {
        let row = self.next();
        (row.slice, row.tsc) = (slice, tsc);
    }

    /// Takes the next row as filled. Returns whether half of the rows, or all, are filled now.
    #[inline(always)]
    pub(crate) fn push(&mut self) -> bool {
        self.filled += 1;
        self.filled.is_multiple_of(ROWS / 2)
    }

    /// Notes the processor's core cycles at the row that was just stored.
    pub(crate) fn mark(&mut self, core_cycles: u64) {
        self.mark = Some(Mark { rows: self.filled, core_cycles });
    }

    /// Empties the rows and returns them, the oldest first, and the last mark.
    pub(crate) fn take(&mut self) -> (&[Row], Option<Mark>) {
        let filled = core::mem::take(&mut self.filled);
        (self.rows.get(..filled).unwrap_or_default(), self.mark.take())
    }
}
