//! Overflow interrupts to be raised at chosen instructions of a vCPU, and the jump that stops QEMU
//! there.

use std::collections::BTreeSet;

use tally_model::{Block, GROWTH_PER_SLOT, MAX_INSNS};

use crate::apic::Source;

/// Distance in instructions from which on every block before an injected interrupt is examined. It
/// covers the block that is running, which is not counted yet, and the next one.
const NEAR_INSTRUCTIONS: u64 = 2 * MAX_INSNS as u64;

/// The injections of one vCPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Injections {
    /// Places of the injections, as counts of the vCPU's retired instructions, and their sources.
    at: BTreeSet<(u64, Source)>,
    pub(crate) patch: Option<Patch>,
}

/// A jump to itself in place of an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patch {
    /// Instructions of the block before the jump.
    pub(crate) before: usize,
    /// Physical addresses, and the original byte at each.
    pub(crate) bytes: [(u64, u8); 2],
    /// Address of the block, until it runs.
    pub(crate) from: Option<u64>,
    /// The block that ends in the jump, once it has run.
    pub(crate) block: *const Block,
}

impl Injections {
    /// The injections that the options request for a vCPU.
    pub(crate) fn of(vcpu: u32, interrupts: &[(u32, u64)]) -> Injections {
        let own = interrupts.iter().filter(|(cpu, _)| *cpu == vcpu);
        Injections { at: own.map(|(_, count)| (*count, Source::Counters)).collect(), patch: None }
    }

    /// Returns whether there is neither an injection nor a jump.
    pub(crate) fn is_empty(&self) -> bool {
        self.at.is_empty() && self.patch.is_none()
    }

    /// Adds an injection at a count of retired instructions.
    pub(crate) fn add(&mut self, at: u64, source: Source) {
        self.at.insert((at, source));
    }

    /// Takes the source of the next injection, and removes it.
    pub(crate) fn take_next(&mut self) -> Source {
        self.at.pop_first().map_or(Source::Counters, |(_, source)| source)
    }

    /// Instructions from the count `now` to the next injection, if there is one.
    pub(crate) fn next_in(&self, now: u64) -> Option<u64> {
        self.at.first().map(|(at, _)| at.saturating_sub(now))
    }

    /// The number of instructions before the jump in block `pending`, if that block ends in one.
    pub(crate) fn patched_at(&self, pending: *const Block) -> Option<usize> {
        let patch = self.patch.as_ref()?;
        let is_in = !patch.block.is_null() && std::ptr::eq(patch.block, pending);
        is_in.then_some(patch.before)
    }
}

/// Returns whether every block must be examined with the next injection at this distance.
pub(crate) fn is_near(left_instructions: u64) -> bool {
    left_instructions <= NEAR_INSTRUCTIONS
}

/// Minimum number of slots that pass before every block must be examined.
pub(crate) fn slots_to(left_instructions: u64) -> u64 {
    left_instructions.saturating_sub(NEAR_INSTRUCTIONS) / GROWTH_PER_SLOT
}
