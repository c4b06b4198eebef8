//! Branch records: which branches the vCPU took.
//!
//! While the PMU records, each block is announced before it runs, so that it is known where it runs
//! ([`Vcpu::note_place`]). A block's branch is recorded when the next block starts, behind its
//! costs: its prediction and its cycles are the model's. An interrupt or exception is a branch of
//! its own, behind that of the block that it follows.
//!
//! The branch of a block whose translation QEMU frees before the next block starts is missing, from
//! the records as from the counts.

use tally_model::{Block, BranchKind, Privilege, Signal};
use tally_vpmu::{TakenBranch, TakenKind};

use crate::{
    pending,
    precision::{Place, Precision},
    registers::{GuestRegisters, Reg},
    vcpu::Vcpu,
};

/// The type and length of the branch that ends a block that continues at `next_pc`; `None` if it
/// was not taken, or is none.
pub(crate) fn taken(block: &Block, next_pc: u64) -> Option<(TakenKind, u8)> {
    let last = block.insns().last()?;
    let kind = match block.branch.kind {
        BranchKind::None if last.adds >> Signal::BranchFar as u32 & 1 == 1 => TakenKind::Far,
        BranchKind::None => return None,
        // As for the prediction, the offset in the page decides.
        BranchKind::Cond if (next_pc ^ block.branch.fall_through) & 0xfff == 0 => return None,
        kind => TakenKind::Near(kind),
    };
    Some((kind, last.length))
}

/// The privilege of the code at `pc` that the current handler interrupted. The frame on the
/// handler's stack has an error code or not, then the address and the code segment.
fn interrupted_ring(registers: &mut GuestRegisters, pc: u64) -> Privilege {
    let frame = registers.read(Reg::Rsp);
    let mut word = |offset| registers.read_virtual(frame.wrapping_add(offset));
    let has_code = word(8).map(u64::from_le_bytes) == Some(pc);
    let cs = word(if has_code { 16 } else { 8 }).map(u64::from_le_bytes);
    if cs.is_some_and(|cs| cs & 3 == 3) { Privilege::User } else { Privilege::Kernel }
}

impl Vcpu {
    /// Starts or stops recording, as the PMU needs it.
    pub(crate) fn set_recording(&mut self) {
        let on = self.pmu.records_branches();
        if on && !self.precision.is_watching {
            // The switch is an instruction of the running block.
            // SAFETY: as in `Vcpu::finish`.
            if let Some(block) = unsafe { self.pending.as_ref() } {
                let here = self.registers.read(Reg::Rip);
                self.precision.moved = here.wrapping_sub(block.pc) & !0xfff;
                self.precision.next_moved = self.precision.moved;
            }
        }
        self.precision.is_recording = on;
        self.precision.is_watching = on || self.precision.is_stepping;
        if on {
            pending::raise_flag(self.index());
        }
    }

    /// Counts the rest of the pending block, and records its branch if branches are recorded.
    pub(crate) fn finish_recording(&mut self, block: &Block, next_pc: u64) {
        let wrong_before = self.core.mispredictions();
        let count = block.insns().len();
        if self.settled == 0 && !block.ends_in_repeat {
            self.core.retire(block, next_pc);
        } else {
            if self.settled < count {
                self.core.retire_part(block, self.settled..count);
            }
            self.core.resolve(block, next_pc);
        }
        self.record_end(block, next_pc, wrong_before);
    }

    /// Records the branch at the end of the pending block, which is counted, if it was taken:
    /// execution continues at `next_pc`, an address under the mapping at translation unless an
    /// interrupt follows. `wrong_before` is the number of mispredictions before it.
    pub(crate) fn record_end(&mut self, block: &Block, next_pc: u64, wrong_before: u64) {
        if !self.precision.is_recording {
            return;
        }
        let Some((kind, length)) = taken(block, next_pc) else { return };
        let Some(last) = block.insns().last() else { return };
        let Precision { moved, next_moved, next_ring, interrupted, .. } = self.precision;
        let announced = Place { pc: next_pc.wrapping_add(next_moved), ring: next_ring };
        let next = interrupted.unwrap_or(announced);
        let is_wrong = self.core.mispredictions() != wrong_before;
        let branch = TakenBranch {
            from: last.pc.wrapping_add(moved),
            to: next.pc,
            kind,
            rings: [block.ring, next.ring],
            is_wrong,
            length,
        };
        self.pmu.record_branch(&branch, self.core.clock_at_branch(is_wrong));
    }

    /// Notes the place that a handler interrupted, before the pending block ends there.
    pub(crate) fn note_interrupted(&mut self, pc: u64) {
        self.precision.interrupted = self.precision.is_recording.then(|| {
            let ring = interrupted_ring(&mut self.registers, pc);
            Place { pc, ring }
        });
    }

    /// Records the interrupt or exception of that place, whose handler is at `to`; `fault_at` is
    /// the address of the instruction if it is another one.
    pub(crate) fn record_delivery(&mut self, to: u64, fault_at: Option<u64>) {
        let Some(Place { pc, ring }) = self.precision.interrupted.take() else { return };
        let branch = TakenBranch {
            from: fault_at.unwrap_or(pc),
            to,
            kind: TakenKind::Far,
            rings: [ring, Privilege::Kernel],
            is_wrong: false,
            length: 0,
        };
        self.pmu.record_branch(&branch, self.core.clock());
    }
}
