//! Retirement of blocks, whole or in part.

use std::{ops::Range, vec::Drain};

use super::state::{Core, TIMES};
use crate::{
    block::{Block, BranchKind, Privilege, StaticCounts, fuses},
    counts::Lanes,
    oracle::Charge,
    signal::Signal,
};

impl Core {
    /// Retires a block that ran to its end; execution continued at `next_pc` (an address under the
    /// mapping at translation).
    #[inline(always)] // Called for every block, from one hot place.
    pub fn retire(&mut self, block: &Block, next_pc: u64) {
        debug_assert!(!block.ends_in_repeat, "it retires in parts");
        if block.line_count() > self.lines_done {
            self.fetch_rest(block, block.line_count());
        }
        let fused = self.fuses_with != 0 && self.fuse_over_edge(block);
        self.fuses_with = block.ends_with();
        match block.lanes() {
            Some(lanes) => self.add_lanes(block.ring, lanes),
            None => self.add_static(block.ring, block.counts()),
        }
        if self.decode.is_some() {
            self.deliver(block, 0..block.insns().len(), fused);
        }
        if self.engine.is_some() {
            self.run(block, 0..block.insns().len(), fused, block.counts());
        }
        self.charge_block(block);
        if block.branch.kind != BranchKind::None {
            self.resolve(block, next_pc);
        }
    }

    /// Retires the instructions in `range` of a block that was left or resumed in the middle.
    pub fn retire_part(&mut self, block: &Block, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        self.fetch_rest(block, block.lines_through(range.end - 1));
        let fused = range.start == 0 && self.fuse_over_edge(block);
        self.fuses_with = block.fuses_after(range.end - 1);
        let counts = block.partial_counts(range.clone());
        self.add_static(block.ring, &counts);
        if block.ends_in_repeat && range.end == block.insns().len() {
            self.retire_string(block);
        }
        if self.decode.is_some() {
            self.deliver(block, range.clone(), fused);
        }
        if self.engine.is_some() {
            self.run(block, range.clone(), fused, &counts);
        }
        if range.end == block.insns().len() {
            self.charge_block(block);
        }
    }

    /// Takes the times of instructions that retired; `None` without [`Geometry::oracle`]. What is
    /// not read is dropped too.
    ///
    /// [`Geometry::oracle`]: crate::Geometry::oracle
    pub fn take_times(&mut self) -> Option<Drain<'_, Charge>> {
        self.engine.as_mut()?.take_times()
    }

    #[inline(always)] // Like its caller.
    fn add_lanes(&mut self, ring: Privilege, lanes: &Lanes) {
        self.lanes[ring as usize].add(lanes);
        self.lanes_left -= 1;
        if self.lanes_left == 0 {
            self.gather();
        }
        if let Some(sampler) = &mut self.sampler {
            self.clock += u64::from(lanes[Signal::Slots]);
            sampler.instructions += u64::from(lanes[Signal::Instructions]);
        }
    }

    #[cold]
    fn add_static(&mut self, ring: Privilege, counts: &StaticCounts) {
        let mut counts = *counts;
        match &mut self.sampler {
            None => TIMES.iter().for_each(|signal| counts[*signal as usize] = 0),
            Some(sampler) => {
                self.clock += u64::from(counts[Signal::Slots as usize]);
                sampler.instructions += u64::from(counts[Signal::Instructions as usize]);
            }
        }
        self.counts[ring as usize].add_static(&counts);
    }

    /// Fuses a pair that the block's start separates: the branch takes no slot. Returns whether
    /// there is such a pair.
    #[cold]
    fn fuse_over_edge(&mut self, block: &Block) -> bool {
        if !fuses(self.fuses_with, block.begins_with()) {
            return false;
        }
        self.split_pairs[block.ring as usize] += 1;
        if !self.is_out_of_order {
            // The first half of the pair has retired, so the clock does not become negative.
            self.clock -= 1;
        }
        true
    }

    /// Runs instructions, which add `counts`, through the out-of-order engine.
    fn run(&mut self, block: &Block, range: Range<usize>, fused: bool, counts: &StaticCounts) {
        if !self.is_out_of_order {
            let slots = counts[Signal::Slots as usize] - u32::from(fused);
            return self.learn(block, range, fused, slots);
        }
        let Some(engine) = &mut self.engine else { return };
        self.clock += engine.enter(block.ring, &mut self.counts);
        self.clock += engine.run(block, range, fused, &mut self.counts[block.ring as usize]);
    }
}
