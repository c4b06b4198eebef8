//! What QEMU starts over without a word: an instruction in the middle of a block that reaches a device,
//! overwrites the block, or cannot be done beside other CPUs. QEMU gives the block up there and runs
//! that instruction alone, in a block of its own.

use tally_model::Block;

use crate::vcpu::Vcpu;

impl Vcpu {
    /// A memory access of `block` shows that QEMU gave up the pending block at an instruction that
    /// reaches a device, and now runs that instruction alone, without a word.
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

    /// A block of one instruction, which no branch is, starts. Where it lies in the pending block, and
    /// that cannot have gone on there by itself, that was given up there.
    #[cold]
    pub(crate) fn maybe_restarted(&mut self, block: &Block) {
        // SAFETY: as in `Vcpu::finish`.
        let Some(pending) = (unsafe { self.pending.as_ref() }) else { return };
        let Some(index) = pending.insns().iter().position(|insn| insn.pc == block.pc) else {
            return;
        };
        if !pending.may_go_to(block.pc) {
            self.settle(index);
            self.abandon();
        }
    }
}
