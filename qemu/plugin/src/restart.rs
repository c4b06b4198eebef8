//! Restarts that QEMU does not report to plugins: an instruction in the middle of a block accesses
//! a device, overwrites the block, or needs exclusive execution. QEMU abandons the block there and
//! executes the instruction again, as a block of one instruction.

use tally_model::Block;

use crate::vcpu::Vcpu;

impl Vcpu {
    /// Handles a memory access of `block`, which is not the pending block: QEMU has abandoned the
    /// pending block at an instruction that accesses a device, and now executes that instruction
    /// alone.
    #[cold]
    pub(crate) fn aborted_into(&mut self, block: &Block) {
        // SAFETY: as in `Vcpu::finish`.
        if let Some(pending) = unsafe { self.pending.as_ref() } {
            match pending.index_of(block.pc) {
                Some(index) => {
                    self.settle(index);
                    self.abandon();
                }
                None => self.finish(block.pc),
            }
        }
        self.pending = block;
        self.core.fetch(block);
    }

    /// Handles the start of a block of one instruction that is not a branch. If it lies in the
    /// pending block, and the pending block cannot have continued there, QEMU abandoned the pending
    /// block there.
    #[cold]
    pub(crate) fn maybe_restarted(&mut self, block: &Block) {
        // SAFETY: as in `Vcpu::finish`.
        let Some(pending) = (unsafe { self.pending.as_ref() }) else { return };
        let Some(index) = pending.insns().iter().position(|insn| insn.pc == block.pc) else {
            return;
        };
        if !pending.may_continue_at(block.pc) {
            self.settle(index);
            self.abandon();
        }
    }
}
