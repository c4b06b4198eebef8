//! The branch target buffer: the taken branches that fetch knows before it has decoded them.
//!
//! Processors have several levels: the first answer without a lost cycle, the last within a few.
//! The model has only the last level, as one table indexed by the branch's address.

use crate::{geometry::BufferShape, recency::Recency};

/// Bytes of code whose branches are in one set.
const BLOCK_BITS: u32 = 4;

/// Branches by their addresses.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    branches: Recency,
    set_bits: u32,
}

impl Buffer {
    pub(super) fn new(shape: BufferShape) -> Buffer {
        let branches = Recency::new(shape.sets, shape.ways);
        Buffer { branches, set_bits: shape.sets.ilog2() }
    }

    /// Records a taken branch as its set's most recent. Returns whether it was there.
    pub(super) fn touch(&mut self, pc: u64) -> bool {
        self.branches.touch(self.set(pc), pc.wrapping_add(1))
    }

    /// Returns whether a branch is there.
    pub(super) fn has(&self, pc: u64) -> bool {
        self.branches.has(self.set(pc), pc.wrapping_add(1))
    }

    fn set(&self, pc: u64) -> usize {
        let block = pc >> BLOCK_BITS;
        // How processors choose a set is not published.
        let folded = block ^ block >> self.set_bits ^ block >> (2 * self.set_bits);
        folded as usize & ((1 << self.set_bits) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: BufferShape = BufferShape { sets: 512, ways: 10 };

    /// Misses of the second of two passes over `count` branches, `step` bytes apart.
    fn misses(count: u64, step: u64, first: u64) -> usize {
        let mut buffer = Buffer::new(SHAPE);
        let mut pass =
            || (0..count).filter(|at| !buffer.touch(first.wrapping_add(at * step))).count();
        assert_eq!(pass(), count as usize);
        pass()
    }

    #[test]
    fn branches_are_known_from_the_second_time_on_wherever_they_lie() {
        for first in [0, 0x40_0000, 0x7fff_ffff_0000, 0xffff_8000_0000_0000, 0xffff_ffff_fff0_0000]
        {
            for step in [2, 7, 16, 64, 4096] {
                let missed = misses(2048, step, first);
                assert!(missed < 20, "{missed} of 2048 from {first:#x} on, {step} bytes apart");
            }
        }
    }

    #[test]
    fn more_branches_than_entries_are_forgotten() {
        assert!(misses(2 * 5120, 16, 0x40_0000) > 10_000);
    }
}
