//! Samples of the interval pipeline: now and then some micro-operations also run through the
//! out-of-order engine, and what they cost there is what they cost from then on.
//!
//! Samples come often at first and rarely later, at random distances, so that no loop is in step
//! with them. They change no count but time. Sampling instead of simulation is that of Wunderlich,
//! Wenisch, Falsafi and Hoe, "SMARTS: accelerating microarchitecture simulation via rigorous
//! statistical sampling" (ISCA 2003).

use std::ops::Range;

use super::{learner::PARTS, state::Core};
use crate::{
    block::{Block, Privilege},
    signal::Signal,
};

/// Micro-operations of a sample. Of them the first only fill the engine.
const SAMPLE_UOPS: u64 = 2_000;
const WARM_UP_UOPS: u64 = 400;
/// Micro-operations from one sample to the next at most, in the mean.
const MOST_GAP_UOPS: u64 = 800_000;

impl Core {
    /// Begins a sample, between two blocks.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_sample(&mut self) {
        let Some(learner) = &mut self.learner else { return };
        learner.begin();
        learner.began_at = self.uops;
        self.sample_at = u64::MAX;
        self.engine = learner.asleep.take();
        self.all_accesses = u64::MAX;
        self.touched = u64::MAX;
    }

    fn end_sample(&mut self) {
        let Some(learner) = &mut self.learner else { return };
        learner.asleep = self.engine.take();
        let random = learner.random.wrapping_mul(6364136223846793005);
        learner.random = random.wrapping_add(1442695040888963407);
        let gap = learner.gap_uops;
        self.sample_at = self.uops + gap / 2 + (learner.random >> 33) % gap;
        learner.gap_uops = (gap + gap / 8).min(MOST_GAP_UOPS);
        self.all_accesses = if self.prefetch.is_some() { u64::MAX } else { 0 };
    }

    /// Instructions of a block retire in a sample; without any stall they take `slots`.
    pub(super) fn learn(&mut self, block: &Block, range: Range<usize>, fused: bool, slots: u32) {
        let (Some(engine), Some(learner)) = (&mut self.engine, &mut self.learner) else { return };
        let is_end = range.end == block.insns().len();
        engine.enter(block.ring, &mut learner.counts);
        let took = engine.run(block, range, fused, &mut learner.counts[block.ring as usize]);
        let stalls = learner.stalls();
        let passed = self.uops - learner.began_at;
        if passed > WARM_UP_UOPS {
            let above = (took as f32 - slots as f32) / f32::from(self.geometry.width);
            if let Some(cost) = learner.add(block, is_end, above, stalls) {
                self.costs[block.place()] = cost;
            }
        } else {
            learner.begin();
        }
        if passed > SAMPLE_UOPS {
            self.end_sample();
        }
    }

    /// In a sample nothing runs for `cycles`.
    pub(super) fn learn_nothing(&mut self, ring: Privilege, cycles: u32) {
        let (Some(engine), Some(learner)) = (&mut self.engine, &mut self.learner) else { return };
        engine.enter(ring, &mut learner.counts);
        engine.idle(cycles, &mut learner.counts[ring as usize]);
        learner.stalls();
    }

    /// Charges the exposed part of `cycles` for which an access waits.
    pub(super) fn charge_data<const STORE: bool>(
        &mut self,
        block: &Block,
        cause: Signal,
        cycles: u32,
    ) {
        let Some(learner) = &mut self.learner else { return };
        if self.engine.is_some() {
            learner.penalties.data_cycles += cycles;
            learner.penalties.by_stores |= STORE;
        }
        let exposure = learner.exposure(block);
        self.charge(block.ring, cause, u64::from(cycles) * u64::from(exposure));
    }

    /// Charges the exposed part of `cycles` for which fetch waits.
    pub(super) fn charge_code(&mut self, ring: Privilege, cause: Signal, cycles: u32) {
        let Some(learner) = &mut self.learner else { return };
        if self.engine.is_some() {
            learner.penalties.code_cycles += cycles;
        }
        let exposure = learner.code.parts();
        self.charge(ring, cause, u64::from(cycles) * u64::from(exposure));
    }

    /// Charges the way back from a mispredicted branch.
    pub(super) fn charge_misprediction(&mut self, ring: Privilege) {
        let Some(learner) = &mut self.learner else { return };
        learner.penalties.behind_branch = true;
        let parts = learner.branches.parts();
        self.charge(ring, Signal::StallMispredict, u64::from(parts));
    }

    /// Charges whole cycles of all that is owed.
    fn charge(&mut self, ring: Privilege, cause: Signal, parts: u64) {
        let owed = self.owed_parts + parts as i64;
        let cycles = owed.max(0) as u64 / u64::from(PARTS);
        self.owed_parts = owed - (cycles * u64::from(PARTS)) as i64;
        self.stall(ring, cause, cycles as u32);
    }

    /// Charges what a block costs. It may owe some parts of a cycle less than nothing.
    #[inline(always)] // For every block.
    pub(super) fn charge_cost(&mut self, block: &Block) {
        let cost = self.costs[block.place()];
        let owed = self.owed_parts + cost.parts();
        let cycles = owed.max(0) as u64 / u64::from(PARTS);
        self.owed_parts = owed - (cycles * u64::from(PARTS)) as i64;
        self.costs_charged[block.ring as usize][cost.cause()] += cycles;
        self.clock += cycles * u64::from(self.geometry.width);
    }
}
