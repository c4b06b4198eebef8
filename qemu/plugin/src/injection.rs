//! Overflow interrupts that are to be raised at chosen instructions of a vCPU, and the jump that
//! stops QEMU there.

use std::collections::BTreeSet;

use tally_model::{Block, GROWTH_PER_SLOT, MAX_INSNS};

/// Instructions before an injected interrupt from which on every block is examined: the block that
/// is running, which is not counted yet, and the next one.
const NEAR_INSTRUCTIONS: u64 = 2 * MAX_INSNS as u64;

/// The injections of one vCPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Injections {
    /// Counts of the vCPU's retired instructions.
    at: BTreeSet<u64>,
    pub(crate) patch: Option<Patch>,
}

/// A jump to itself in the place of an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patch {
    /// The block's instructions before it.
    pub(crate) before: usize,
    /// Physical addresses, and the byte that each had.
    pub(crate) bytes: [(u64, u8); 2],
    /// The block's address, until it runs.
    pub(crate) from: Option<u64>,
    /// The block that ends in the jump, from then on.
    pub(crate) block: *const Block,
}

impl Injections {
    /// Those that the options name for a vCPU.
    pub(crate) fn of(vcpu: u32, interrupts: &[(u32, u64)]) -> Injections {
        let own = interrupts.iter().filter(|(cpu, _)| *cpu == vcpu);
        Injections { at: own.map(|(_, count)| *count).collect(), patch: None }
    }

    /// Adds one at a count of retired instructions.
    pub(crate) fn add(&mut self, at: u64) {
        self.at.insert(at);
    }

    /// Removes the next one.
    pub(crate) fn remove_next(&mut self) {
        self.at.pop_first();
    }

    /// Instructions from the count `now` to the next injection, if there is one.
    pub(crate) fn next_in(&self, now: u64) -> Option<u64> {
        self.at.first().map(|at| at.saturating_sub(now))
    }

    /// Instructions of `pending` before the jump, if that block ends in one.
    pub(crate) fn patched_at(&self, pending: *const Block) -> Option<usize> {
        let patch = self.patch.as_ref()?;
        let is_in = !patch.block.is_null() && std::ptr::eq(patch.block, pending);
        is_in.then_some(patch.before)
    }
}

/// Returns whether every block must be examined with an injection this many instructions away.
pub(crate) fn is_near(left_instructions: u64) -> bool {
    left_instructions <= NEAR_INSTRUCTIONS
}

/// The least number of slots that pass before every block must be examined.
pub(crate) fn slots_to(left_instructions: u64) -> u64 {
    left_instructions.saturating_sub(NEAR_INSTRUCTIONS) / GROWTH_PER_SLOT
}
