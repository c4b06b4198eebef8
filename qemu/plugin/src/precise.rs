//! Precise records (PEBS) and samples of ops (IBS): which instruction gets one, and how a record
//! reaches the guest's memory.
//!
//! Blocks are counted whole. But while a counter that is enabled for PEBS, or that of IBS, is
//! within [`NEAR_SLOTS`] of its overflow, or has overflowed and waits for its next event, the vCPU
//! steps: each instruction is counted by itself and the PMU is checked after it. Whatever was
//! counted since the check before belongs to that instruction:
//!
//! - its own counts, and its accesses': the instructions before an access are counted first;
//! - at a block's last instruction, the outcome of the branch;
//! - at a block's first instruction, what fetch of the block's first line cost, and an interrupt
//!   that was delivered before;
//! - time. The out-of-order pipeline charges the cycles between two retirements to the later one.
//!   The interval pipeline charges an exposed penalty to the access, and what a block costs beyond
//!   its slots to the block's last instruction.
//!
//! A counter of time can pass the whole distance in one block that waits for memory all the time:
//! then the next instruction with an event gets the record, whichever counter it is.

use tally_model::{Block, BranchKind, Signal};
use tally_vpmu::{GuestMemory, RetiredBranch, RetiredInsn, RetiredOp};

use crate::{
    branches::taken,
    pending,
    precision::Precision,
    registers::{GuestRegisters, Reg},
    totals::instructions,
    vcpu::Vcpu,
};

/// Slots before the earliest possible overflow from which on instructions are counted one by one:
/// far more than the longest block has, and than usual waits for memory in a block take.
const NEAR_SLOTS: u64 = 1 << 13;

/// The guest's memory.
struct Linear<'a>(&'a mut GuestRegisters);

impl GuestMemory for Linear<'_> {
    fn read(&mut self, address: u64) -> Option<u64> {
        self.0.read_virtual(address).map(u64::from_le_bytes)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> bool {
        self.0.write_virtual(address, bytes)
    }

    fn write_physical(&mut self, address: u64, bytes: &[u8]) -> bool {
        self.0.write_physical(address, bytes)
    }
}

impl Vcpu {
    /// Starts or stops counting one by one, as the PMU needs it; returns the number of slots after
    /// which to decide again.
    pub(crate) fn slots_to_step(&mut self) -> u64 {
        let Some(left) = self.pmu.slots_to_record(self.core.counts()) else {
            self.step(false);
            return u64::MAX;
        };
        self.step(left <= NEAR_SLOTS);
        left.saturating_sub(NEAR_SLOTS)
    }

    fn step(&mut self, on: bool) {
        if self.precision.is_stepping != on {
            self.core.note_data(on);
            let Precision { timestamp, is_recording, .. } = self.precision;
            let state = if is_recording { self.precision } else { Precision::with(timestamp) };
            let retired_at_cycles = self.cycles();
            self.precision = Precision { is_stepping: on, retired_at_cycles, ..state };
        }
        if on {
            pending::raise_flag(self.index());
        }
    }

    /// Core cycles up to now, in every ring.
    fn cycles(&self) -> u64 {
        let width = u64::from(self.pmu.profile().geometry.width);
        self.core.clock() / width
    }

    /// Called before a block runs while stepping or recording branches: notes where it runs.
    pub(crate) fn note_place(&mut self, block: &Block) {
        let here = self.registers.read(Reg::Rip);
        self.precision.next_moved = here.wrapping_sub(block.pc) & !0xfff;
        self.precision.next_ring = block.ring;
        if self.pending.is_null() {
            self.begin_step();
        }
        pending::raise_flag(self.index());
    }

    /// Begins the block that was announced by [`Self::note_place`].
    pub(crate) fn begin_step(&mut self) {
        self.precision.moved = self.precision.next_moved;
    }

    /// Counts the pending block's instructions before `end`, one by one.
    #[cold]
    pub(crate) fn step_to(&mut self, block: &Block, end: usize) {
        for index in self.settled..end {
            self.core.retire_part(block, index..index + 1);
            self.check_insn(block, index, None);
        }
        self.settled = self.settled.max(end);
    }

    /// Counts the rest of the pending block, one by one; execution continues at `next_pc`.
    pub(crate) fn finish_stepping(&mut self, block: &Block, next_pc: u64) {
        let last = block.insns().len() - 1;
        self.step_to(block, last);
        if self.settled == last {
            self.core.retire_part(block, last..last + 1);
        }
        let wrong_before = self.core.mispredictions();
        self.core.resolve(block, next_pc);
        self.record_end(block, next_pc, wrong_before);
        let is_wrong = self.core.mispredictions() != wrong_before;
        let branch = self.retired_branch(block, next_pc, is_wrong);
        self.check_insn(block, last, branch);
    }

    /// The near branch at the end of a block that continues at `next_pc`, as samples of ops have
    /// it.
    fn retired_branch(&self, block: &Block, next_pc: u64, is_wrong: bool) -> Option<RetiredBranch> {
        let kind = block.branch.kind;
        (kind != BranchKind::None).then(|| RetiredBranch {
            is_taken: taken(block, next_pc).is_some(),
            is_wrong,
            is_return: kind == BranchKind::Return,
            target: next_pc.wrapping_add(self.precision.next_moved),
        })
    }

    /// Lets the PMU handle the retirement of an instruction. An interrupt stays pending until the
    /// next block starts: with `-icount` QEMU takes none in the middle of a block.
    fn check_insn(&mut self, block: &Block, index: usize, branch: Option<RetiredBranch>) {
        let now = instructions(self.core.counts());
        let cycles = self.cycles();
        let since = cycles - self.precision.retired_at_cycles;
        self.precision.retired_at_cycles = cycles;
        let of = &block.insns()[index];
        let ip = of.pc.wrapping_add(self.precision.moved);
        let data = self.core.take_data(index);
        let retire_cycles = u16::try_from(since).unwrap_or(u16::MAX);
        let tsc = self.precision.timestamp.at(now);
        let insn = RetiredInsn { ip, tsc, data, retire_cycles };
        let op = RetiredOp {
            ip,
            has_op: of.uops > 0,
            fuses: block.insns().get(index + 1).is_some_and(|next| next.uops == 0),
            is_microcoded: of.adds >> Signal::Microcoded as u32 & 1 == 1,
            data,
            branch,
            fetched: self.core.take_fetch(self.precision.moved),
            flight_cycles: self.core.flight_cycles(),
        };
        let memory = &mut Linear(&mut self.registers);
        self.pmu.retire_insn(self.core.counts(), (&insn, &op), memory);
    }
}
