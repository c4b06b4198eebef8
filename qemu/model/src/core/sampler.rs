//! The samplers of the interval pipeline: one for ring 0, and one for ring 3 of each address space.
//!
//! Where a sampler's samples are is decided by the instructions that retire in its ring and space,
//! and by nothing else. So interrupts move no sample of a program: a sample that one splits
//! continues after it. Instructions count and not micro-operations, as an interrupt between a pair
//! that would fuse makes one more of these.

use super::{
    activity::{Cycles, Shares},
    exposure::Division,
    learner::{Cost, Learner},
};
use crate::{
    block::{PLACES, Privilege},
    geometry::{Geometry, PipelineMode},
    ooo::Engine,
};

/// Instructions of a sample. Of them the first only fill the engine.
const SAMPLE_INSTRUCTIONS: u64 = 2_000;
const WARM_UP_INSTRUCTIONS: u64 = 400;
/// Instructions from one sample to the next, in the mean: at first and behind a sample of mostly
/// new code, and at most.
const LEAST_GAP_INSTRUCTIONS: u64 = 2_000;
const MOST_GAP_INSTRUCTIONS: u64 = 800_000;

/// Where a sampler is in use: ring 0, or ring 3 of an address space.
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

/// What a domain's instructions have taught, and when they are sampled next.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    pub(super) domain: Domain,
    /// Instructions that have retired in the domain.
    pub(super) instructions: u64,
    /// The instruction at which the next sample begins; never during one.
    pub(super) sample_at: u64,
    /// What blocks cost, above their slots.
    pub(super) costs: Box<[Cost]>,
    /// Parts of a cycle that are to be charged, or negative.
    pub(super) owed_parts: i64,
    /// Parts of a cycle that are due as stalls when cycles are charged.
    pub(super) stalled_parts: i64,
    /// What lost slots belong to. Dispatch loses them some time before retirement stalls, often in
    /// another block, so this is known of all blocks together.
    pub(super) division: Division,
    /// What executes in cycles, and the clock from which on that is not settled.
    pub(super) activity: Shares,
    pub(super) settled_at: u64,
    /// Decides which cause the next cycles' slots belong to.
    pub(super) order: u16,
    pub(super) learner: Box<Learner>,
    /// The engine of its samples, while the core does not use it.
    asleep: Option<Box<Engine>>,
    /// The instruction at which the present or last sample was to begin. It begins behind the block
    /// of that instruction, so the next one's place does not depend on where blocks end.
    begins_at: u64,
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
            costs: vec![Cost::default(); PLACES].into_boxed_slice(),
            owed_parts: 0,
            stalled_parts: 0,
            division: Division::default(),
            activity: Shares::default(),
            settled_at: 0,
            order: 0,
            learner: Box::new(Learner::new(geometry)),
            asleep: Some(Box::new(Engine::new(geometry, PipelineMode::Real))),
            begins_at: LEAST_GAP_INSTRUCTIONS,
            gap_instructions: LEAST_GAP_INSTRUCTIONS,
            random: 1,
        }
    }

    /// Adds the cycles up to `clock` that are not settled to those of its ring, and returns them.
    pub(super) fn add_active(&self, clock: u64, width: u64, active: &mut [Cycles; 2]) -> u64 {
        let cycles = (clock - self.settled_at) / width;
        self.activity.add(cycles, &mut active[self.domain.ring() as usize]);
        cycles
    }

    /// Settles the cycles up to `clock`: other shares are known from there on, or it is left.
    pub(super) fn settle(&mut self, clock: u64, width: u64, active: &mut [Cycles; 2]) {
        self.settled_at += self.add_active(clock, width, active) * width;
    }

    /// Returns whether it is in a sample.
    fn is_sampling(&self) -> bool {
        self.sample_at == u64::MAX
    }

    /// Begins a sample: the engine for it.
    pub(super) fn begin(&mut self) -> Option<Box<Engine>> {
        self.learner.begin();
        self.sample_at = u64::MAX;
        self.asleep.take()
    }

    /// Returns whether the sample's instructions only fill the engine yet.
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
        let random = self.random.wrapping_mul(6364136223846793005);
        self.random = random.wrapping_add(1442695040888963407);
        let gap = self.gap_instructions;
        self.begins_at += SAMPLE_INSTRUCTIONS + gap / 2 + (self.random >> 33) % gap;
        self.sample_at = self.begins_at;
        let longer = (gap + gap / 8).min(MOST_GAP_INSTRUCTIONS);
        self.gap_instructions = if self.learner.end() { LEAST_GAP_INSTRUCTIONS } else { longer };
        self.division = self.learner.division();
        self.activity = self.learner.activity();
    }

    /// Its domain is left, perhaps in a sample with `engine`.
    pub(super) fn leave(&mut self, engine: Option<Box<Engine>>) {
        if engine.is_some() {
            self.asleep = engine;
        }
    }

    /// Its domain is entered: the engine, if it is in a sample.
    pub(super) fn enter(&mut self) -> Option<Box<Engine>> {
        if self.is_sampling() { self.asleep.take() } else { None }
    }
}
