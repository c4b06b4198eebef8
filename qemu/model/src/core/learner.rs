//! The interval pipeline's knowledge of blocks and penalties, from samples of the out-of-order
//! engine.
//!
//! A penalty is the cost of an access, a fetch or a misprediction if nothing hid it. For each kind
//! of penalty, the learner knows the exposed share. The rest of a block's cycles above its slots is
//! the block's cost: stalls, and cycles that retire less than the pipeline's width.

use std::mem;

use super::{
    activity::{self, Cycles, KINDS, Shares},
    block_cost::Cost,
    exposure::{CAUSES, Division, LOST, Share, Stalls, add_sample, lost_slots},
};
use crate::{
    block::{Block, PLACES},
    cost::PARTS,
    counts::Counts,
    geometry::Geometry,
    signal::Signal,
};

/// Time constants of the weighted sums: a block's samples, and cycles of its data's penalties.
const MOST_SAMPLES: f32 = 64.0;
const MOST_DATA_CYCLES: f32 = 10_000.0;
/// Weight of the share of all blocks, as a prior of a block's own share, in cycles of penalties.
const ASSUMED_DATA_CYCLES: f32 = 50.0;
/// Cap on a cause's lead over a block's other causes, so that a new cause wins within 1,000 cycles.
const MOST_LEAD: f32 = 1_000.0;

/// Statistics of a block.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Tag of the block: the lowest bits of its physical address.
    code: u32,
    /// Cost in cycles, and the stall cycles among them: means over `samples` samples.
    cycles: f32,
    stalled: f32,
    samples: f32,
    /// The index of the most frequent cause, and its lead in cycles over the others.
    cause: u8,
    lead: f32,
    /// The exposed share of the penalties of the block's data, in cycles.
    data: Share,
}

impl Known {
    const NOTHING: Known = Known {
        code: 0,
        cycles: 0.0,
        stalled: 0.0,
        samples: 0.0,
        cause: 0,
        lead: 0.0,
        data: Share::of_none(MOST_DATA_CYCLES),
    };

    fn add(&mut self, cycles: f32, stalled: f32) {
        self.samples = (self.samples + 1.0).min(MOST_SAMPLES);
        self.cycles += (cycles - self.cycles) / self.samples;
        self.stalled += (stalled - self.stalled) / self.samples;
    }

    /// Returns the entry for `block`, cleared if it held another block.
    fn of(&mut self, block: &Block) -> &mut Known {
        let code = (block.lines.0 << 6 | block.pc & 63) as u32;
        if self.code != code {
            *self = Known { code, ..Known::NOTHING };
        }
        self
    }

    /// Updates the most frequent cause by a majority vote with one counter (Boyer and Moore).
    fn add_cause(&mut self, stalls: &Stalls) {
        let Some((cause, cycles)) = stalls.longest() else { return };
        if self.cause == cause {
            self.lead = (self.lead + cycles).min(MOST_LEAD);
        } else if cycles > self.lead {
            (self.cause, self.lead) = (cause, cycles - self.lead);
        } else {
            self.lead -= cycles;
        }
    }

    /// Adds exposed cycles of the penalties of the block's data; returns the updated share.
    fn add_data(&mut self, exposed: f32, of: f32, usual: f32) -> f32 {
        self.data.add(exposed, of);
        self.data.with(usual, ASSUMED_DATA_CYCLES)
    }
}

/// The penalties of a block, in cycles.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Penalties {
    pub(super) data_cycles: u32,
    /// Whether any of `data_cycles` is a store's.
    pub(super) by_stores: bool,
    pub(super) code_cycles: u32,
    /// Cycles behind branches that fetch did not know.
    pub(super) resteer_cycles: u32,
    /// Cycles in which the decoders limit fetch.
    pub(super) decode_cycles: u32,
    /// Whether the branch before was mispredicted.
    pub(super) behind_branch: bool,
}

/// Everything that a sampler has learnt.
#[derive(Clone, Debug)]
pub(super) struct Learner {
    /// The engine's counts; nothing else counts here.
    pub(super) counts: Counts,
    /// The engine's stalls up to the last block.
    stalled: [u64; CAUSES],
    /// The engine's lost slots up to the last sample, and weighted sums of them by cause.
    lost: [u64; LOST],
    slots: [f32; LOST],
    /// The engine's cycles of each kind up to the last sample, and weighted sums of them.
    active: Cycles,
    cycles_active: [f32; KINDS],
    known: Box<[Known]>,
    /// Exposed shares of blocks' data penalties, in parts plus one; 0 where none is known.
    exposures: Box<[u16]>,
    pub(super) data: Share,
    pub(super) code: Share,
    pub(super) resteers: Share,
    pub(super) decoders: Share,
    /// Cycles per misprediction.
    pub(super) branches: Share,
    pub(super) penalties: Penalties,
    /// Blocks that ran in the present sample: those seen in an earlier one, and new ones.
    blocks: [u32; 2],
    /// Cycles above their slots of the current block's instructions that have retired, and the
    /// stall cycles among them.
    cycles: f32,
    stalled_cycles: f32,
}

impl Learner {
    pub(super) fn new(geometry: &Geometry) -> Learner {
        let mispredict_cycles = geometry.latency.mispredict_cycles as f32;
        Learner {
            counts: Counts::ZERO,
            stalled: [0; CAUSES],
            lost: [0; LOST],
            slots: [0.0; LOST],
            active: [0; KINDS],
            cycles_active: [0.0; KINDS],
            known: vec![Known::NOTHING; PLACES].into_boxed_slice(),
            exposures: vec![0; PLACES].into_boxed_slice(),
            data: Share::new(0.4, 1_000.0, 100_000.0),
            code: Share::new(0.8, 1_000.0, 20_000.0),
            resteers: Share::new(0.8, 100.0, 10_000.0),
            decoders: Share::new(0.2, 1_000.0, 20_000.0),
            branches: Share::new(mispredict_cycles, 20.0, 2_000.0),
            penalties: Penalties::default(),
            blocks: [0; 2],
            cycles: 0.0,
            stalled_cycles: 0.0,
        }
    }

    /// Discards partial sums that the last sample left of a block.
    pub(super) fn begin(&mut self) {
        self.penalties = Penalties::default();
        self.begin_block();
    }

    /// Ends a sample's warm-up: from now on the slots that the engine loses are attributed to the
    /// program.
    pub(super) fn warm_up(&mut self) {
        self.begin();
        self.lost = lost_slots(&self.counts);
        self.active = activity::of(&self.counts);
    }

    /// Ends a sample. Returns whether most blocks that ran in it were new.
    pub(super) fn end(&mut self) -> bool {
        add_sample(&mut self.slots, lost_slots(&self.counts), self.lost);
        add_sample(&mut self.cycles_active, activity::of(&self.counts), self.active);
        let [old, new] = mem::take(&mut self.blocks);
        new > old
    }

    /// The division of lost slots among causes.
    pub(super) fn division(&self) -> Division {
        Division::of(&self.slots)
    }

    /// The shares of cycles by activity.
    pub(super) fn activity(&self) -> Shares {
        Shares::of(&self.cycles_active)
    }

    /// Begins a block. Discards the sums of a block that was left in its middle.
    pub(super) fn begin_block(&mut self) {
        (self.cycles, self.stalled_cycles) = (0.0, 0.0);
    }

    /// The engine's stalls since the last call.
    pub(super) fn stalls(&mut self) -> Stalls {
        Stalls::of(|index| {
            let now = self.counts[Signal::STALLS[index]];
            (now - mem::replace(&mut self.stalled[index], now)) as f32
        })
    }

    /// Divides the cycles `above` their slots of a block's instructions between penalties and the
    /// block. Returns the block's cost if they were its last instructions.
    pub(super) fn add(
        &mut self,
        block: &Block,
        is_end: bool,
        above: f32,
        mut stalls: Stalls,
    ) -> Option<Cost> {
        let penalties = mem::take(&mut self.penalties);
        let exposed = self.expose(block, penalties, &mut stalls);
        // A serializing instruction's own cycles are among its slots.
        stalls.take(&[Signal::StallSerialize], f32::INFINITY);
        let known = self.known[block.place()].of(block);
        known.add_cause(&stalls);
        self.cycles += above - exposed;
        self.stalled_cycles += stalls.sum();
        is_end.then(|| {
            self.blocks[usize::from(known.samples == 0.0)] += 1;
            known.add(self.cycles, self.stalled_cycles);
            Cost::new(known.cycles, known.stalled, known.cause)
        })
    }

    /// Removes the exposed cycles of penalties from a block's stalls, and learns their shares.
    /// Returns these cycles.
    ///
    /// A penalty exposes no more than its own cycles: what is longer waits for something else, an
    /// access of an earlier block for example, and stays with the block. Otherwise a block that
    /// once waited behind another's access to memory would be charged a multiple of each of its
    /// penalties until its next sample.
    fn expose(&mut self, block: &Block, penalties: Penalties, stalls: &mut Stalls) -> f32 {
        let mut exposed = 0.0;
        if penalties.data_cycles != 0 {
            const DATA: [Signal; 5] = [
                Signal::StallL2Hit,
                Signal::StallL3Hit,
                Signal::StallMemory,
                Signal::StallDtlb,
                Signal::StallStore,
            ];
            let causes = &DATA[..DATA.len() - usize::from(!penalties.by_stores)];
            let of = penalties.data_cycles as f32;
            let cycles = stalls.take(causes, of);
            self.data.add(cycles, of);
            let known = self.known[block.place()].of(block);
            let share = known.add_data(cycles, of, self.data.get());
            self.exposures[block.place()] = (share * PARTS as f32) as u16 + 1;
            exposed += cycles;
        }
        let code: &[Signal] = &[Signal::StallL1i, Signal::StallItlb];
        let front_end: &[Signal] = &[Signal::StallFrontEnd];
        for (of, causes, share) in [
            (penalties.code_cycles, code, &mut self.code),
            (penalties.resteer_cycles, front_end, &mut self.resteers),
            (penalties.decode_cycles, front_end, &mut self.decoders),
        ] {
            let cycles = stalls.take(causes, of as f32);
            share.add(cycles, of as f32);
            exposed += cycles;
        }
        if penalties.behind_branch {
            let cycles = stalls.take(&[Signal::StallMispredict], f32::INFINITY);
            self.branches.add(cycles, 1.0);
            exposed += cycles;
        }
        exposed
    }

    /// The exposed share of the penalties of a block's data, in parts.
    pub(super) fn exposure(&self, block: &Block) -> u32 {
        match self.exposures[block.place()] {
            0 => self.data.parts(),
            known => u32::from(known) - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stalls(cycles: &[(Signal, f32)]) -> Stalls {
        Stalls::of(|index| {
            let of_it = cycles.iter().filter(|(cause, _)| *cause == Signal::STALLS[index]);
            of_it.map(|(_, cycles)| cycles).sum()
        })
    }

    fn two_instructions() -> Block {
        let insn = crate::Insn { uops: 1, ..crate::Insn::default() };
        Block::new(crate::Privilege::User, 5, (0, 0), crate::Branch::default(), &[insn; 2])
    }

    #[test]
    fn the_cause_with_most_cycles_is_found() {
        let mut known = Known::NOTHING;
        let cause = |known: &Known| Signal::STALLS[usize::from(known.cause)];
        for _ in 0..10 {
            known.add_cause(&stalls(&[(Signal::StallFp, 2.0), (Signal::StallL1Hit, 1.0)]));
            known.add_cause(&stalls(&[(Signal::StallL1Hit, 1.5)]));
        }
        assert_eq!(cause(&known), Signal::StallFp);
    }

    #[test]
    fn penalties_get_their_part_and_the_block_the_rest() {
        let mut learner = Learner::new(&Geometry::ICELAKE_SERVER);
        let block = two_instructions();
        let before = learner.branches.get();
        learner.penalties =
            Penalties { data_cycles: 250, behind_branch: true, ..Penalties::default() };
        let all =
            [(Signal::StallMemory, 200.0), (Signal::StallMispredict, 3.0), (Signal::StallFp, 4.0)];
        // The block retires in two parts: no mean before the second.
        assert!(learner.add(&block, false, 207.0, stalls(&all)).is_none());
        let cost = learner.add(&block, true, 3.0, stalls(&[(Signal::StallFp, 1.0)])).unwrap();
        // Two of the last 3 cycles retire something.
        assert_eq!(cost.parts(), 7 * i64::from(PARTS));
        assert_eq!(cost.stalled_parts(), 5 * i64::from(PARTS));
        assert_eq!(Signal::STALLS[cost.cause()], Signal::StallFp);
        assert!(learner.branches.get() < before);
        // Of 250 cycles 200 were exposed; the prior of 50 has the share of all blocks: about 0.8
        // of 300.
        let share = f64::from(learner.exposure(&block)) / f64::from(PARTS);
        assert!((0.70..0.80).contains(&share), "{share}");
    }

    #[test]
    fn a_penalty_exposes_no_more_than_its_cycles() {
        let mut learner = Learner::new(&Geometry::ICELAKE_SERVER);
        let block = two_instructions();
        for _ in 0..100 {
            learner.begin_block();
            // The block's access takes 14 cycles, and waits for another block's in memory.
            learner.penalties = Penalties { data_cycles: 14, ..Penalties::default() };
            let waits = stalls(&[(Signal::StallL2Hit, 5.0), (Signal::StallMemory, 400.0)]);
            let cost = learner.add(&block, true, 405.0, waits).unwrap();
            assert_eq!(cost.parts(), (405 - 14) * i64::from(PARTS));
        }
        assert!(learner.exposure(&block) <= PARTS);
    }

    #[test]
    fn a_share_forgets() {
        let mut share = Share::new(0.5, 10.0, 100.0);
        (0..100).for_each(|_| share.add(0.0, 50.0));
        assert!(share.get() < 0.001);
        (0..100).for_each(|_| share.add(50.0, 50.0));
        assert!(share.get() > 0.999);
    }
}
