//! The samplers of the interval pipeline: one for ring 0, and one for ring 3 of each address space.
//!
//! The places of a sampler's samples depend only on the instructions that retire in its ring and
//! address space. So interrupts do not move a program's samples: a sample that an interrupt splits
//! continues after it. The unit is instructions, not micro-operations: an interrupt between a pair
//! that would fuse adds a micro-operation.

use super::{
    activity::{Cycles, Shares},
    block_cost::Cost,
    exposure::Division,
    learner::Learner,
    uncosted::Uncosted,
};
use crate::{
    block::{PLACES, Privilege},
    geometry::{Geometry, PipelineMode},
    ooo::Engine,
};

/// Instructions of a sample; the first `WARM_UP_INSTRUCTIONS` only fill the engine.
const SAMPLE_INSTRUCTIONS: u64 = 2_000;
const WARM_UP_INSTRUCTIONS: u64 = 400;
/// Mean distance of samples in instructions: the least, at first and after a sample of mostly new
/// code, and the most.
const LEAST_GAP_INSTRUCTIONS: u64 = 2_000;
const MOST_GAP_INSTRUCTIONS: u64 = 800_000;

/// The domain of a sampler: ring 0, or ring 3 of an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    Kernel,
    User { space: u64 },
}

impl Domain {
    pub(super) fn of(ring: Privilege, space: u64) -> Domain {
        match ring {
            Privilege::User => Domain::User { space },
            Privilege::Kernel => Domain::Kernel,
        }
    }

    pub(super) fn ring(self) -> Privilege {
        match self {
            Domain::Kernel => Privilege::Kernel,
            Domain::User { .. } => Privilege::User,
        }
    }
}

/// A domain's costs, and the schedule of its samples.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    pub(super) domain: Domain,
    /// Instructions that have retired in the domain.
    pub(super) instructions: u64,
    /// The instruction at which the next sample begins; the maximum value during a sample.
    pub(super) sample_at: u64,
    /// Costs of blocks above their slots.
    pub(super) costs: Box<[Cost]>,
    uncosted: Uncosted,
    /// Balance of parts of a cycle still to be charged; can be negative.
    pub(super) owed_parts: i64,
    /// Parts of a cycle that will be attributed to stalls when cycles are charged.
    pub(super) stalled_parts: i64,
    /// Division of lost slots among causes. Dispatch loses slots some time before retirement
    /// stalls, often in another block, so there is one division for all blocks.
    pub(super) division: Division,
    /// Shares of cycles by activity, and the clock up to which cycles have been attributed.
    pub(super) activity: Shares,
    pub(super) settled_at: u64,
    /// Selects the cause that the next few lost cycles are charged to.
    pub(super) order: u16,
    pub(super) learner: Box<Learner>,
    /// The engine of the samples, while the core does not use it.
    asleep: Option<Box<Engine>>,
    /// The instruction at which the present or last sample was due. The sample begins after the
    /// block with that instruction; the next sample's place is computed from the due instruction,
    /// so it does not depend on where blocks end.
    begins_at: u64,
    /// The instruction at which the next sample is due by its distance from the last such one,
    /// while a sample runs that a block without a cost has made due before.
    postponed: Option<u64>,
    gap_instructions: u64,
    /// The state of a generator of random gaps.
    random: u64,
}

impl Sampler {
    pub(super) fn new(geometry: &Geometry, domain: Domain) -> Sampler {
        Sampler {
            domain,
            instructions: 0,
            sample_at: LEAST_GAP_INSTRUCTIONS,
            costs: vec![Cost::UNKNOWN; PLACES].into_boxed_slice(),
            uncosted: Uncosted::new(SAMPLE_INSTRUCTIONS),
            owed_parts: 0,
            stalled_parts: 0,
            division: Division::default(),
            activity: Shares::default(),
            settled_at: 0,
            order: 0,
            learner: Box::new(Learner::new(geometry)),
            asleep: Some(Box::new(Engine::new(geometry, PipelineMode::Real))),
            begins_at: LEAST_GAP_INSTRUCTIONS,
            postponed: None,
            gap_instructions: LEAST_GAP_INSTRUCTIONS,
            random: 1,
        }
    }

    /// Adds the cycles up to `clock` that are not attributed yet to those of the domain's ring, and
    /// returns them.
    pub(super) fn add_active(&self, clock: u64, width: u64, active: &mut [Cycles; 2]) -> u64 {
        // A pair of instructions that fuses over a block's edge takes the clock back a slot.
        let cycles = clock.saturating_sub(self.settled_at) / width;
        self.activity.add(cycles, &mut active[self.domain.ring() as usize]);
        cycles
    }

    /// Leaves out the last `slots`, which are attributed elsewhere.
    pub(super) fn leave_out(&mut self, slots: u64) {
        self.settled_at += slots;
    }

    /// Attributes the cycles up to `clock`, before the shares change or the domain is left.
    pub(super) fn settle(&mut self, clock: u64, width: u64, active: &mut [Cycles; 2]) {
        self.settled_at += self.add_active(clock, width, active) * width;
    }

    /// Returns whether a sample is running.
    fn is_sampling(&self) -> bool {
        self.sample_at == u64::MAX
    }

    /// Notes the execution of a block without a cost. If it repeats, a sample is due at the next
    /// multiple of a sample's length: an interrupt in the block moves no sample, as a rule.
    #[cold]
    #[inline(never)]
    pub(super) fn note_uncosted(&mut self, place: usize) {
        if self.is_sampling() || !self.uncosted.note(place, self.instructions) {
            return;
        }
        let due = self.instructions.next_multiple_of(SAMPLE_INSTRUCTIONS);
        if due < self.sample_at {
            self.postponed = Some(self.sample_at);
            (self.begins_at, self.sample_at) = (due, due);
        }
    }

    /// Begins a sample; returns the engine for it.
    pub(super) fn begin(&mut self) -> Option<Box<Engine>> {
        self.learner.begin();
        self.sample_at = u64::MAX;
        self.asleep.take()
    }

    /// Returns whether the sample's instructions still only fill the engine.
    pub(super) fn is_warming_up(&self) -> bool {
        self.instructions <= self.begins_at + WARM_UP_INSTRUCTIONS
    }

    /// Returns whether the sample has all of its instructions.
    pub(super) fn is_complete(&self) -> bool {
        self.instructions > self.begins_at + SAMPLE_INSTRUCTIONS
    }

    /// Ends a sample that used `engine`.
    pub(super) fn end(&mut self, engine: Option<Box<Engine>>) {
        self.asleep = engine;
        let is_new = self.learner.end();
        self.division = self.learner.division();
        self.activity = self.learner.activity();
        let ended_at = self.begins_at + SAMPLE_INSTRUCTIONS;
        self.begins_at = match self.postponed.take() {
            Some(due) if !is_new => due.max(ended_at),
            _ => ended_at + self.next_gap(is_new),
        };
        self.sample_at = self.begins_at;
    }

    /// Draws the distance to the next sample, and chooses the mean of the one after that.
    fn next_gap(&mut self, is_new: bool) -> u64 {
        let random = self.random.wrapping_mul(6364136223846793005);
        self.random = random.wrapping_add(1442695040888963407);
        let gap = self.gap_instructions;
        let longer = (gap + gap / 8).min(MOST_GAP_INSTRUCTIONS);
        self.gap_instructions = if is_new { LEAST_GAP_INSTRUCTIONS } else { longer };
        gap / 2 + (self.random >> 33) % gap
    }

    /// Leaves the domain, with the `engine` of a sample that is running.
    pub(super) fn leave(&mut self, engine: Option<Box<Engine>>) {
        if engine.is_some() {
            self.asleep = engine;
        }
    }

    /// Enters the domain; returns the engine if a sample is running.
    pub(super) fn enter(&mut self) -> Option<Box<Engine>> {
        if self.is_sampling() { self.asleep.take() } else { None }
    }
}
