//! The repeated string instruction that runs: its accesses, and its time so far.

use crate::{access::ServedBy, block::Privilege, cost::PARTS};

/// The accesses of a repeated string instruction that are not counted yet, and the lines that it
/// touched last. A processor whose events count retired instructions counts one load and one store
/// when the instruction retires.
#[derive(Clone, Debug, Default)]
pub(super) struct StringRun {
    /// The instruction's address and ring; `None` if none runs.
    pub(super) of: Option<(u64, Privilege)>,
    /// The last two virtual lines, the later one second, each with its kind of access.
    lines: [Option<(u64, bool)>; 2],
    /// Whether a new line is looked up now.
    pub(super) is_touching: bool,
    /// New lines touched so far.
    pub(super) new_lines: u32,
    /// Accesses since a new line was touched.
    pub(super) accesses: u32,
    /// Loads and stores of the instruction.
    pub(super) kinds: [StringAccess; 2],
    /// Time and micro-operations that are not charged yet, less than a cycle's.
    owed_parts: u32,
    owed_uops: u64,
}

/// All loads, or all stores, of a repeated string instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StringAccess {
    /// The furthest level that served an access; `None` if there was no access.
    pub(super) by: Option<ServedBy>,
    /// Whether an access crossed a cache line.
    pub(super) crosses: bool,
    /// Whether an access took a page walk.
    pub(super) walks: bool,
}

impl StringAccess {
    /// Adds the accesses of `other`.
    pub(super) fn merge(&mut self, other: StringAccess) {
        self.by = self.by.max(other.by);
        self.crosses |= other.crosses;
        self.walks |= other.walks;
    }
}

impl StringRun {
    /// Begins the instruction at an address in a ring.
    pub(super) fn new(of: (u64, Privilege)) -> StringRun {
        StringRun { of: Some(of), ..StringRun::default() }
    }

    /// Returns whether the instruction touched the line as one of its last two. Both are the most
    /// recent of their sets, so that another access changes nothing.
    #[inline]
    pub(super) fn has_touched(&self, line: u64, is_store: bool) -> bool {
        self.lines.contains(&Some((line, is_store)))
    }

    /// Notes a new line. An instruction with two streams touches them in turn.
    pub(super) fn touch(&mut self, line: u64, is_store: bool) {
        self.lines = [self.lines[1], Some((line, is_store))];
    }

    /// Forgets the lines, as other code may have evicted them.
    pub(super) fn forget_lines(&mut self) {
        self.lines = [None; 2];
    }

    /// Adds time and micro-operations to those that are owed; returns the whole cycles, and as many
    /// of the micro-operations as these have slots.
    pub(super) fn owe(&mut self, parts: u32, uops: u32, width: u64) -> (u32, u64) {
        let owed = self.owed_parts + parts;
        let cycles = owed / PARTS;
        self.owed_parts = owed % PARTS;
        self.owed_uops += u64::from(uops);
        let charged = self.owed_uops.min(u64::from(cycles) * width);
        self.owed_uops -= charged;
        (cycles, charged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_each_of_two_streams_is_known() {
        let mut run = StringRun::new((0, Privilege::User));
        run.touch(1, false);
        run.touch(9, true);
        assert!(
            run.has_touched(1, false) && run.has_touched(9, true) && !run.has_touched(9, false)
        );
        run.touch(2, false);
        assert!(!run.has_touched(1, false) && run.has_touched(9, true));
        run.forget_lines();
        assert!(!run.has_touched(9, true));
    }

    #[test]
    fn whole_cycles_and_their_slots_are_charged() {
        let mut run = StringRun::new((0, Privilege::User));
        assert_eq!(run.owe(PARTS / 2, 8, 5), (0, 0));
        assert_eq!(run.owe(PARTS / 2, 0, 5), (1, 5));
        assert_eq!(run.owe(3 * PARTS, 0, 5), (3, 3));
    }
}
