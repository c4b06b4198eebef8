//! Samples of the interval pipeline: from time to time instructions also run through the
//! out-of-order engine, and their costs there are charged from then on.
//!
//! Samples are frequent at first and in new code, and rare later. Their distances are random, so
//! that no loop is in step with them. They change only the time, no other count. The method follows
//! Wunderlich, Wenisch, Falsafi and Hoe, "SMARTS: accelerating microarchitecture simulation via
//! rigorous statistical sampling" (ISCA 2003).

use std::{mem, ops::Range};

use super::{
    block_cost::Cost,
    exposure::CAUSES,
    learner::Learner,
    sampler::{Domain, Sampler},
    state::Core,
};
use crate::{
    block::{Block, Privilege},
    cost::PARTS,
    ooo::Alone,
    signal::Signal,
    stacks::FetchWait,
};

/// Maximum samplers that are kept besides the running domain's. Another one evicts the least
/// recent.
const MOST_OTHERS: usize = 15;
/// Cap on deferred stall cycles, in parts; blocks with a negative balance absorb cycles and so
/// defer stalls.
const MOST_STALLED_PARTS: i64 = 64 * PARTS as i64;

impl Core {
    /// Notes that the next block runs in `ring`.
    #[cold]
    #[inline(never)]
    pub(super) fn enter_ring(&mut self, ring: Privilege) {
        self.ring = ring;
        self.change_sampler();
    }

    /// Changes to the sampler of the running ring and address space.
    pub(super) fn change_sampler(&mut self) {
        let Some(sampler) = &mut self.sampler else { return };
        let domain = Domain::of(self.ring, self.space);
        if sampler.domain == domain {
            return;
        }
        sampler.settle(self.clock, self.geometry.width.into(), &mut self.active);
        sampler.leave(self.engine.take());
        let mut others = self.other_samplers.iter();
        let next = match others.position(|other| other.domain == domain) {
            Some(at) => self.other_samplers.remove(at),
            None => Sampler::new(&self.geometry, domain),
        };
        self.other_samplers.push(mem::replace(sampler, next));
        if self.other_samplers.len() > MOST_OTHERS {
            self.other_samplers.remove(0);
        }
        sampler.settled_at = self.clock;
        self.engine = sampler.enter();
        self.follow_accesses();
    }

    /// Requests every access, or only those that hit no fast path, as engine, prefetchers and other
    /// cores need.
    pub(super) fn follow_accesses(&mut self) {
        let needs_all = self.engine.is_some()
            || self.prefetch.is_some()
            || self.has_others
            || self.noted.is_on
            || self.slow_load_cycles < self.geometry.latency.l1_cycles;
        self.all_accesses = if needs_all { u64::MAX } else { 0 };
        self.touched = u64::MAX;
    }

    /// Begins a sample, between two blocks.
    #[cold]
    #[inline(never)]
    fn begin_sample(&mut self) {
        let Some(sampler) = &mut self.sampler else { return };
        self.engine = sampler.begin();
        self.follow_accesses();
    }

    fn end_sample(&mut self) {
        let Some(sampler) = &mut self.sampler else { return };
        sampler.settle(self.clock, self.geometry.width.into(), &mut self.active);
        sampler.end(self.engine.take());
        self.follow_accesses();
    }

    /// Learns from instructions of a block that retire in a sample; without any stall they take
    /// `slots`.
    pub(super) fn learn(&mut self, block: &Block, range: Range<usize>, fused: bool, slots: u32) {
        let (Some(engine), Some(sampler)) = (&mut self.engine, &mut self.sampler) else { return };
        let learner = &mut sampler.learner;
        let is_end = range.end == block.insns().len();
        if range.start == 0 {
            learner.begin_block();
        }
        let took = engine.run(block, range, fused, &mut learner.counts);
        let stalls = learner.stalls();
        if sampler.is_warming_up() {
            sampler.learner.warm_up();
        } else {
            let above = (took as f32 - slots as f32) / f32::from(self.geometry.width);
            if let Some(cost) = sampler.learner.add(block, is_end, above, stalls) {
                sampler.costs[block.place()] = cost;
            }
        }
        if sampler.is_complete() {
            self.end_sample();
        }
    }

    /// Advances the engine by `cycles` in which nothing runs, if a sample is running.
    pub(super) fn learn_nothing(&mut self, cycles: u32) {
        let (Some(engine), Some(sampler)) = (&mut self.engine, &mut self.sampler) else { return };
        engine.occupy(Alone::serializing(cycles), &mut sampler.learner.counts);
        sampler.learner.stalls();
    }

    /// Charges the exposed part of `cycles` for which an access waits.
    pub(super) fn charge_data<const STORE: bool>(
        &mut self,
        block: &Block,
        cause: Signal,
        cycles: u32,
    ) {
        let Some(sampler) = &mut self.sampler else { return };
        if self.engine.is_some() {
            sampler.learner.penalties.data_cycles += cycles;
            sampler.learner.penalties.by_stores |= STORE;
        }
        let exposure = sampler.learner.exposure(block);
        self.charge(block.ring, cause, u64::from(cycles) * u64::from(exposure));
    }

    /// Charges the exposed part of `cycles` for which fetch waits.
    pub(super) fn charge_code(&mut self, ring: Privilege, wait: FetchWait, cycles: u32) {
        let Some(sampler) = &mut self.sampler else { return };
        let Learner { penalties, resteers, decoders, code, .. } = &mut *sampler.learner;
        let (penalty, share) = match wait {
            FetchWait::Resteer => (&mut penalties.resteer_cycles, resteers),
            FetchWait::Decoders => (&mut penalties.decode_cycles, decoders),
            FetchWait::Code(_) | FetchWait::Translation => (&mut penalties.code_cycles, code),
        };
        if self.engine.is_some() {
            *penalty += cycles;
        }
        let exposure = share.parts();
        self.charge(ring, wait.cause(), u64::from(cycles) * u64::from(exposure));
    }

    /// Charges the recovery from a mispredicted branch.
    pub(super) fn charge_misprediction(&mut self, ring: Privilege) {
        let Some(sampler) = &mut self.sampler else { return };
        sampler.learner.penalties.behind_branch = true;
        let parts = sampler.learner.branches.parts();
        let before = self.clock;
        self.charge(ring, Signal::StallMispredict, u64::from(parts));
        self.recovery = self.clock - before;
    }

    /// Adds `parts` to what is owed, and charges the whole cycles of it.
    fn charge(&mut self, ring: Privilege, cause: Signal, parts: u64) {
        let Some(sampler) = &mut self.sampler else { return };
        let owed = sampler.owed_parts + parts as i64;
        let cycles = owed.max(0) as u64 / u64::from(PARTS);
        sampler.owed_parts = owed - (cycles * u64::from(PARTS)) as i64;
        let charged = &mut self.slots_charged[ring as usize];
        sampler.division.charge(cycles, &mut sampler.order, charged);
        self.stall(ring, cause, cycles as u32);
    }

    /// Charges the cost of a block that has retired to its end, and begins a sample if one is due.
    /// The balance may become negative by parts of a cycle. A charged cycle is a stall if as many
    /// parts are due as stalls.
    #[inline(always)] // For every block.
    pub(super) fn charge_block(&mut self, block: &Block) {
        let Some(sampler) = &mut self.sampler else { return };
        let mut cost = sampler.costs[block.place()];
        if cost.is_unknown() {
            sampler.note_uncosted(block.place());
            cost = Cost::NOTHING;
        }
        let owed = sampler.owed_parts + cost.parts();
        let cycles = owed.max(0) as u64 / u64::from(PARTS);
        let charged = (cycles * u64::from(PARTS)) as i64;
        sampler.owed_parts = owed - charged;
        let stalled = sampler.stalled_parts + cost.stalled_parts();
        let is_stalled = stalled >= charged;
        let rest = if is_stalled { stalled - charged } else { stalled };
        sampler.stalled_parts = rest.min(MOST_STALLED_PARTS);
        let cause = if is_stalled { cost.cause() } else { CAUSES };
        self.costs_charged[block.ring as usize][cause] += cycles;
        if cycles > 0 {
            let charged = &mut self.slots_charged[block.ring as usize];
            sampler.division.charge(cycles, &mut sampler.order, charged);
        }
        self.clock += cycles * u64::from(self.geometry.width);
        if sampler.instructions >= sampler.sample_at {
            self.begin_sample();
        }
    }
}
