//! Resolution of branches: their predictions, and the cost of wrong ones.

use super::state::Core;
use crate::{
    block::{Block, BranchKind, Privilege},
    signal::Signal,
};

impl Core {
    /// Resolves the branch at a block's end: execution continued at `next_pc`.
    #[inline(always)] // Saving six registers for a call is a fifth of its cost.
    pub fn resolve(&mut self, block: &Block, next_pc: u64) {
        let (ring, branch) = (block.ring, &block.branch);
        if branch.kind != BranchKind::Cond {
            return self.resolve_unconditional(block, next_pc);
        }
        // The block may have run under another mapping of its page than at translation, so only the
        // offset in the page shows whether the branch was taken.
        let taken = (next_pc ^ branch.fall_through) & 0xfff != 0;
        let wrong = self.predictor.conditional(branch.pc, taken) & !self.geometry.perfect.branch;
        self.outcomes[ring as usize][usize::from(wrong) << 1 | usize::from(taken)] += 1;
        if let Some(engine) = &mut self.engine {
            engine.branch(taken, wrong, &mut self.counts[ring as usize]);
        }
        let is_known = !taken || self.predictor.knows(branch.pc) || self.geometry.perfect.fetch;
        if wrong {
            let predicted = if taken { Some(branch.fall_through) } else { block.target() };
            self.mispredicted(block, next_pc, predicted);
        } else if !is_known {
            self.resteered(ring);
        }
    }

    fn resolve_unconditional(&mut self, block: &Block, next_pc: u64) {
        let (ring, branch) = (block.ring, &block.branch);
        let perfect = self.geometry.perfect;
        let predictor = &mut self.predictor;
        let counts = &mut self.counts[ring as usize];
        let (predicted, is_perfect) = match branch.kind {
            BranchKind::None => return,
            // Fetch has the target from the branch itself.
            BranchKind::Jump | BranchKind::Cond => (next_pc, true),
            BranchKind::Call => {
                predictor.call(branch.fall_through);
                (next_pc, true)
            }
            BranchKind::IndirectJump => (predictor.indirect(branch.pc, next_pc), perfect.indirect),
            BranchKind::IndirectCall => {
                predictor.call(branch.fall_through);
                (predictor.indirect(branch.pc, next_pc), perfect.indirect)
            }
            BranchKind::Return => (predictor.ret(), perfect.returns),
        };
        let wrong = (predicted != next_pc) & !is_perfect;
        if branch.kind == BranchKind::IndirectCall {
            counts[Signal::MispredictIndirectCall] += u64::from(wrong);
        }
        counts[Signal::Taken] += 1;
        let is_known = predictor.knows(branch.pc) || perfect.fetch;
        if let Some(engine) = &mut self.engine {
            engine.branch(true, wrong, counts);
        }
        if wrong {
            let kind = match branch.kind {
                BranchKind::Return => Signal::MispredictReturn,
                _ => Signal::MispredictIndirect,
            };
            counts[kind] += 1;
            self.mispredicted(block, next_pc, Some(predicted));
        } else if !is_known {
            self.resteered(ring);
        }
    }

    /// Branches of both rings that were mispredicted.
    pub fn mispredictions(&self) -> u64 {
        self.counts.iter().map(|ring| ring[Signal::Mispredicts]).sum()
    }

    /// Records that the next block's fetch waits until the branch is decoded.
    fn resteered(&mut self, ring: Privilege) {
        self.bump(ring, Signal::Resteers);
        self.is_resteered = true;
    }

    /// Handles a misprediction: the block's branch went to `next_pc`, fetch to `predicted`.
    fn mispredicted(&mut self, block: &Block, next_pc: u64, predicted: Option<u64>) {
        self.bump(block.ring, Signal::Mispredicts);
        if !self.is_out_of_order {
            self.charge_misprediction(block.ring);
        }
        if let (true, Some(predicted)) = (self.geometry.has_wrong_paths, predicted) {
            self.fetch_wrong_path(block, next_pc, predicted);
        }
    }
}
