//! Overflow interrupts at chosen instructions, for tests: between one instruction and the next,
//! exactly.
//!
//! QEMU takes interrupts between blocks. When a block is about to run in whose middle one is due, a
//! jump to itself is put in the place of the instruction that the interrupt is to come before: QEMU
//! ends its block there with the flags up to date and changes nothing else. Before the next block,
//! whichever it is, the instruction's bytes are put back; where it is the jump, the interrupt is
//! raised and taken at that address. Another CPU that gets there meanwhile waits in the jump.

use std::{collections::BTreeSet, ptr};

use tally_model::{Block, GROWTH_PER_SLOT, MAX_INSNS};

use crate::{
    log::{self, Said},
    registers::Reg,
    series::instructions,
    translate::physical,
    vcpu::Vcpu,
};

/// JMP to itself.
const JUMP_HERE: [u8; 2] = [0xeb, 0xfe];
/// So many instructions before an interrupt each block is looked at: the one that is running, which
/// is not counted yet, and the one behind it.
const NEAR: u64 = 2 * MAX_INSNS as u64;

/// What is planned on one vCPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planned {
    /// Counts of the vCPU's instructions.
    at: BTreeSet<u64>,
    patch: Option<Patch>,
}

/// A jump in the place of an instruction.
#[derive(Clone, Copy, Debug)]
struct Patch {
    /// The block's instructions before it.
    before: usize,
    /// Physical addresses and what was there.
    bytes: [(u64, u8); 2],
    /// The block's address, until it runs.
    from: Option<u64>,
    /// The block that ends in the jump, from then on.
    block: *const Block,
}

impl Planned {
    /// What the options ask for on that vCPU.
    pub(crate) fn of(vcpu: u32, interrupts: &[(u32, u64)]) -> Planned {
        let own = interrupts.iter().filter(|(cpu, _)| *cpu == vcpu);
        Planned { at: own.map(|(_, count)| *count).collect(), patch: None }
    }

    /// How many instructions after `now` the next is due, if there is one.
    pub(crate) fn next_in(&self, now: u64) -> Option<u64> {
        self.at.first().map(|at| at.saturating_sub(now))
    }
}

/// Whether each block has to be looked at when an interrupt is due in so many instructions.
pub(crate) fn is_near(left_instructions: u64) -> bool {
    left_instructions <= NEAR
}

/// Slots that pass at least until then.
pub(crate) fn slots_to(left_instructions: u64) -> u64 {
    left_instructions.saturating_sub(NEAR) / GROWTH_PER_SLOT
}

impl Vcpu {
    /// Plans one `behind` instructions after those that are counted.
    pub(crate) fn plan_interrupt(&mut self, behind: u64) {
        let now = instructions(self.core.counts());
        self.planned.at.insert(now + behind);
        self.after_pmu();
    }

    /// Before `block` runs: raises the interrupt that is due, or sees to it that the block ends where
    /// one is due in its middle. The address to start over at, if so.
    pub(crate) fn stop_for_planned(&mut self, block: &Block) -> Option<u64> {
        if self.runs_patched(block) {
            self.after_pmu();
            return None;
        }
        let unpatched = self.unpatch();
        self.finish(block.pc);
        let now = instructions(self.core.counts());
        let left = self.planned.next_in(now);
        let changed = match left {
            Some(0) => {
                self.planned.at.pop_first();
                if !self.raise_interrupt() {
                    log::once(Said::Masked, || {
                        format!("the overflow interrupt planned at instruction {now} is masked")
                    });
                }
                true
            }
            Some(left) if left < block.insns().len() as u64 => self.patch(block, left as usize),
            _ => false,
        };
        if left.is_some() {
            self.after_pmu();
        }
        (unpatched || changed).then(|| self.registers.read(Reg::Rip))
    }

    /// Puts a jump in the place of instruction `index` of a block that is about to run.
    fn patch(&mut self, block: &Block, index: usize) -> bool {
        let moved = self.registers.read(Reg::Rip).wrapping_sub(block.pc) & !0xfff;
        let address = block.insns()[index].pc.wrapping_add(moved);
        let mut bytes = [(0, 0); 2];
        for (offset, (place, old)) in bytes.iter_mut().enumerate() {
            *place = physical(address.wrapping_add(offset as u64));
            *old = self.registers.read_physical(*place).unwrap_or_default() as u8;
        }
        let mut is_written = true;
        for ((place, _), new) in bytes.iter().zip(JUMP_HERE) {
            is_written &= self.registers.write_physical(*place, &[new]);
        }
        let from = self.registers.read(Reg::Rip);
        self.planned.patch =
            Some(Patch { before: index, bytes, from: Some(from), block: ptr::null() });
        is_written
    }

    /// Puts the instruction's bytes back; whether a jump was in its place.
    fn unpatch(&mut self) -> bool {
        let Some(patch) = self.planned.patch.take() else { return false };
        for (place, old) in patch.bytes {
            self.registers.write_physical(place, &[old]);
        }
        self.settle_patched(&patch);
        true
    }

    /// Whether the block that is about to run is the one that was patched just now.
    fn runs_patched(&mut self, block: &Block) -> bool {
        let here = self.registers.read(Reg::Rip);
        let Some(patch) = &mut self.planned.patch else { return false };
        let runs = patch.from.take() == Some(here);
        if runs {
            patch.block = block;
        }
        runs
    }

    /// Ends the pending block before a jump that is not the guest's, if it has one; whether it has.
    pub(crate) fn leave_patched(&mut self) -> bool {
        let patch = self.planned.patch;
        patch.is_some_and(|patch| self.settle_patched(&patch))
    }

    fn settle_patched(&mut self, patch: &Patch) -> bool {
        let is_in = !patch.block.is_null() && self.is_in(patch.block);
        if is_in {
            self.settle(patch.before);
            self.abandon();
        }
        is_in
    }
}
