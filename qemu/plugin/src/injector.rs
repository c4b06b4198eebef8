//! Raises overflow interrupts at chosen instructions, exactly between one instruction and the next.
//!
//! QEMU takes interrupts between blocks. Before the run of a block that has such an instruction in
//! its middle, the plugin writes a jump to itself over that instruction: QEMU ends its block there
//! with the flags up to date and changes nothing else. Before the next block, whichever it is, the
//! plugin restores the instruction's bytes; if the next block is the jump, the plugin raises the
//! interrupt, and QEMU takes it at that address. Another CPU that reaches the jump meanwhile spins
//! in it.

use std::ptr;

use tally_model::Block;

use crate::{
    apic::Source,
    guest::physical,
    injection::Patch,
    log::{self, Once},
    registers::Reg,
    totals::instructions,
    vcpu::Vcpu,
};

/// JMP to itself.
const JUMP_HERE: [u8; 2] = [0xeb, 0xfe];

impl Vcpu {
    /// Injects an overflow interrupt when `instructions_ahead` more instructions than the counted
    /// ones have retired.
    pub(crate) fn inject_after(&mut self, instructions_ahead: u64) {
        let now = instructions(self.core.counts());
        self.injections.add(now + instructions_ahead, Source::Counters);
        self.after_pmu();
    }

    /// Called before `block` runs: raises an interrupt that is due, or makes the block end where
    /// one is due in its middle. Returns the address to restart at, if the block must not run
    /// unchanged.
    pub(crate) fn stop_for_injection(&mut self, block: &Block) -> Option<u64> {
        if self.runs_patched(block) {
            self.after_pmu();
            return None;
        }
        let unpatched = self.unpatch();
        self.finish(block.pc);
        let now = instructions(self.core.counts());
        let left = self.injections.next_in(now);
        let changed = match left {
            Some(0) => {
                let source = self.injections.take_next();
                if !self.raise_interrupt(source) {
                    log::once(Once::MaskedInjection, || {
                        format!(
                            "injected interrupt at instruction {now}: not delivered, as the \
                             performance entry is masked"
                        )
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

    /// Writes a jump over instruction `index` of a block that is about to run; returns whether its
    /// memory could be written.
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
        self.injections.patch =
            Some(Patch { before: index, bytes, from: Some(from), block: ptr::null() });
        is_written
    }

    /// Restores the instruction's bytes; returns whether a jump was in its place.
    fn unpatch(&mut self) -> bool {
        self.leave_patched();
        let Some(patch) = self.injections.patch.take() else { return false };
        for (place, old) in patch.bytes {
            self.registers.write_physical(place, &[old]);
        }
        true
    }

    /// Returns whether the block that is about to run is the one that was just patched.
    fn runs_patched(&mut self, block: &Block) -> bool {
        let here = self.registers.read(Reg::Rip);
        let Some(patch) = &mut self.injections.patch else { return false };
        let runs = patch.from.take() == Some(here);
        if runs {
            patch.block = block;
        }
        runs
    }
}
