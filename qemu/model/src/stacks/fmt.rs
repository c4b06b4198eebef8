//! The frontend miss event table (FMT): a circular buffer with a row for each outstanding branch.
//!
//! The fetch of a branch takes a row and clears it; the branch's retirement frees it. If dispatch
//! gets nothing because of a miss on the instruction side, the cycle counts in the row that was
//! taken last, and is added to the global counters when that row's branch retires; if the branch
//! has retired already, the cycle counts globally at once. A row also counts the cycles from its
//! branch's dispatch to its resolution in which the reorder buffer is not full. If the branch was
//! mispredicted they count globally, as do the cycles from its resolution until the right path is
//! dispatched.
//!
//! The paper lets a row's penalty run as long as the branch is in the buffer. Here it stops at the
//! resolution, where the global counter starts, so that no cycle counts twice.

use std::collections::VecDeque;

use super::component::Component;
use crate::{counts::Counts, geometry::Geometry, signal::Signal};

/// Bits of a row's counters, which saturate.
const LOCAL_BITS: u32 = 12;
const LOCAL_MAX: u64 = (1 << LOCAL_BITS) - 1;
/// Entries of the reorder buffer for each row: about one in five instructions is a branch.
const ENTRIES_PER_ROW: u32 = 4;
/// A row's counters of the instruction side: L1I, L2 for code, ITLB.
const MISSES: usize = 3;

/// The rows of a processor.
pub(super) fn rows(geometry: &Geometry) -> u32 {
    (geometry.reorder_uops / ENTRIES_PER_ROW).max(1)
}

/// The bits of a row in both kinds of table: the branch's entry in the reorder buffer, whether it
/// was mispredicted, and its penalty.
fn branch_bits(geometry: &Geometry) -> u64 {
    u64::from(bits_of(geometry.reorder_uops) + 1 + LOCAL_BITS)
}

/// The bits of a number below `count`.
fn bits_of(count: u32) -> u32 {
    count.next_power_of_two().trailing_zeros()
}

/// The bits besides the global counters: rows, three pointers, and two for each load as on POWER5.
pub(super) fn bits(geometry: &Geometry) -> u64 {
    shared_bits(geometry) + MISSES as u64 * counter_bits(geometry)
}

/// The bits of one counter in every row.
pub(super) fn counter_bits(geometry: &Geometry) -> u64 {
    u64::from(rows(geometry)) * u64::from(LOCAL_BITS)
}

/// The bits without the rows' counters of the instruction side.
pub(super) fn shared_bits(geometry: &Geometry) -> u64 {
    let pointers = 3 * u64::from(bits_of(rows(geometry)));
    let loads = 2 * u64::from(geometry.backend.loads);
    u64::from(rows(geometry)) * branch_bits(geometry) + pointers + loads
}

/// The bits of one set of counters of the instruction side.
pub(super) const fn miss_bits() -> u64 {
    MISSES as u64 * LOCAL_BITS as u64
}

/// The counter of a component.
pub(super) fn signal(component: Component) -> Signal {
    match component {
        Component::L1i => Signal::FmtL1i,
        Component::L2i => Signal::FmtL2i,
        Component::Itlb => Signal::FmtItlb,
        Component::Branch => Signal::FmtBranch,
        Component::L1d => Signal::FmtL1d,
        Component::L2d => Signal::FmtL2d,
        Component::Dtlb => Signal::FmtDtlb,
        Component::Units => Signal::FmtUnits,
    }
}

#[derive(Clone, Copy, Debug)]
struct Row {
    /// The cycle at which the row's branch retires.
    retires_at: u64,
    /// Cycles by [`Component::L1i`], [`Component::L2i`], [`Component::Itlb`].
    misses: [u64; MISSES],
}

/// The table.
#[derive(Clone, Debug)]
pub(super) struct Fmt {
    rows: VecDeque<Row>,
    capacity: usize,
}

impl Fmt {
    pub(super) fn new(geometry: &Geometry) -> Fmt {
        let capacity = rows(geometry) as usize;
        Fmt { rows: VecDeque::with_capacity(capacity), capacity }
    }

    /// Records a branch that is dispatched at `cycle` and retires at `retires_at`; returns whether
    /// a row was free for it.
    pub(super) fn branch(&mut self, cycle: u64, retires_at: u64, counts: &mut Counts) -> bool {
        self.retire_until(cycle, counts);
        let has_row = self.rows.len() < self.capacity;
        if has_row {
            self.rows.push_back(Row { retires_at, misses: [0; MISSES] });
        }
        has_row
    }

    /// Frees the rows whose branches retire up to `cycle`.
    pub(super) fn retire_until(&mut self, cycle: u64, counts: &mut Counts) {
        while let Some(row) = self.rows.front().filter(|row| row.retires_at <= cycle) {
            for (misses, component) in row.misses.iter().zip(Component::ALL) {
                counts[signal(component)] += misses;
            }
            self.rows.pop_front();
        }
    }

    /// Counts the cycles from `from` up to `until`, in which dispatch got nothing because of a
    /// miss.
    pub(super) fn unfed(&mut self, from: u64, until: u64, miss: Component, counts: &mut Counts) {
        let row = self.rows.back_mut().filter(|row| row.retires_at > from);
        let Some(row) = row else {
            counts[signal(miss)] += until - from;
            return;
        };
        let local = row.retires_at.min(until);
        let count = &mut row.misses[miss as usize];
        *count = (*count + local - from).min(LOCAL_MAX);
        counts[signal(miss)] += until - local;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_reach_the_global_counters_when_their_branch_retires() {
        let (mut fmt, mut counts) = (Fmt::new(&Geometry::ICELAKE_SERVER), Counts::ZERO);
        assert!(fmt.branch(100, 150, &mut counts));
        fmt.unfed(110, 120, Component::L1i, &mut counts);
        assert_eq!(counts[Signal::FmtL1i], 0);
        // The branch retires in the middle of the next span.
        fmt.unfed(130, 180, Component::Itlb, &mut counts);
        assert_eq!(counts[Signal::FmtItlb], 30);
        fmt.retire_until(150, &mut counts);
        assert_eq!((counts[Signal::FmtL1i], counts[Signal::FmtItlb]), (10, 50));
        fmt.unfed(200, 210, Component::L2i, &mut counts);
        assert_eq!(counts[Signal::FmtL2i], 10);
    }

    #[test]
    fn a_branch_beyond_the_last_row_has_none() {
        let geometry = Geometry { reorder_uops: 8, ..Geometry::ICELAKE_SERVER };
        let (mut fmt, mut counts) = (Fmt::new(&geometry), Counts::ZERO);
        let taken = [10, 11, 12, 50].map(|cycle| fmt.branch(cycle, cycle + 20, &mut counts));
        assert_eq!(taken, [true, true, false, true]);
    }

    #[test]
    fn local_counters_stop_at_their_maximum() {
        let (mut fmt, mut counts) = (Fmt::new(&Geometry::ICELAKE_SERVER), Counts::ZERO);
        fmt.branch(0, 10_000, &mut counts);
        fmt.unfed(1, 9_001, Component::L1i, &mut counts);
        fmt.retire_until(10_000, &mut counts);
        assert_eq!(counts[Signal::FmtL1i], LOCAL_MAX);
    }
}
