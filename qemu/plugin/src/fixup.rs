//! The callbacks after an instruction that QEMU executed: they correct the guest's registers.
//!
//! `qemu_plugin_set_pc` leaves a block without updating QEMU's lazily evaluated flags, so the
//! plugin skips an instruction only if the flags are up to date. QEMU executes all other
//! instructions, and the plugin replaces their results: before the next instruction of the block
//! or, if there is none, before the next block, which tests a flag of its vCPU
//! ([`crate::pending`]).

use std::{
    ffi::{c_uint, c_void},
    ptr,
};

use tally_model::Block;

use crate::{
    apic, ffi,
    log::{self, Once},
    pending::{self, BlockExit, Fixup},
    registers::Reg,
    totals::instructions,
    vcpu::{self, Vcpu},
};

/// CPUID's results, in its order.
const CPUID_REGISTERS: [Reg; 4] = [Reg::Rax, Reg::Rbx, Reg::Rcx, Reg::Rdx];

/// Called before the instruction that follows an intercepted one in the same block.
extern "C" fn on_next_instruction(index: c_uint, _: *mut c_void) {
    let vcpu = vcpu::current(index);
    apply_fixup(vcpu);
    exit_block(vcpu);
}

/// Leaves the block if that was requested.
fn exit_block(vcpu: &mut Vcpu) {
    let Some(BlockExit { settled, pc }) = vcpu.block_exit.take() else { return };
    vcpu.settle(settled);
    vcpu.abandon();
    // SAFETY: the callbacks that call this are registered with the flag that allows it, and nothing
    // is left to be dropped. The flags are up to date: only CPUID requests an exit, and QEMU
    // updates them before CPUID.
    unsafe { ffi::qemu_plugin_set_pc(pc) }
}

/// Applies the pending fixup, if there is one.
fn apply_fixup(vcpu: &mut Vcpu) {
    let Some(fixup) = vcpu.fixup.take() else { return };
    let values = match fixup {
        Fixup::Set(values) => values,
        Fixup::NoteTimestamp => return note_timestamp(vcpu),
        Fixup::ExtendedVersion => {
            let version = vcpu.registers.read(Reg::Rax) & 0xffff_ffff;
            [Some(version | apic::HAS_EXTENDED), None, None, None]
        }
        Fixup::Cpuid(leaf, subleaf) => {
            let given = CPUID_REGISTERS.map(|register| vcpu.registers.read(register) as u32);
            check_vendor(vcpu, leaf, given[1]);
            vcpu.pmu.cpuid(leaf, subleaf, given).map(|value| Some(value.into()))
        }
    };
    set(vcpu, values);
}

fn note_timestamp(vcpu: &mut Vcpu) {
    let [low, high] = [Reg::Rax, Reg::Rdx].map(|register| vcpu.registers.read(register));
    let now = instructions(vcpu.core.counts());
    vcpu.precision.timestamp.note(high << 32 | low & 0xffff_ffff, now);
}

/// Called before a block if its vCPU's flag is set.
extern "C" fn on_flagged_block(index: c_uint, block: *mut c_void) {
    pending::clear_flag(index);
    let vcpu = vcpu::current(index);
    let is_passive = match vcpu.fixup {
        None => vcpu.precision.is_watching,
        Some(fixup) => fixup == Fixup::NoteTimestamp,
    };
    apply_fixup(vcpu);
    if vcpu.fault_at.is_some() {
        exit_block(vcpu);
    }
    // The block that was to be left has ended.
    vcpu.block_exit = None;
    // SAFETY: the word is null or the block that `translate` keeps for as long as QEMU keeps the
    // translation.
    let Some(block) = (unsafe { block.cast::<Block>().as_ref() }) else { return };
    if vcpu.precision.is_watching {
        vcpu.note_place(block);
    }
    if is_passive && vcpu.injections.is_empty() {
        return;
    }
    if let Some(pc) = vcpu.stop_for_injection(block) {
        // SAFETY: the callback is registered with the flag that allows this, nothing here is left
        // to be dropped, and at a block's start the flags are up to date.
        unsafe { ffi::qemu_plugin_set_pc(pc) }
    }
}

/// Sets those of RAX, RBX, RCX and RDX for which there is a value.
pub(crate) fn set(vcpu: &mut Vcpu, values: [Option<u64>; 4]) {
    for (register, value) in CPUID_REGISTERS.into_iter().zip(values) {
        if let Some(value) = value {
            vcpu.registers.write(register, value);
        }
    }
}

/// Logs a processor whose vendor, by CPUID's EBX, is not the profile's.
fn check_vendor(vcpu: &Vcpu, leaf: u32, ebx: u32) {
    let name = vcpu.pmu.profile().vendor.cpuid();
    let first = name.bytes().take(4).rev().fold(0, |word, byte| word << 8 | u32::from(byte));
    if matches!(leaf, 0 | 0x8000_0000) && ebx != first {
        log::once(Once::WrongVendor, || {
            let profile = vcpu.pmu.profile().name;
            format!("CPUID's vendor differs from profile {profile}'s: use -cpu max,vendor={name}")
        });
    }
}

/// Makes a block test its vCPU's flag before it runs; `block` is null if blocks are not counted.
pub(crate) fn before_block(tb: *mut ffi::Tb, block: *const Block) {
    // SAFETY: the handle is the translation callback's.
    unsafe {
        ffi::qemu_plugin_register_vcpu_tb_exec_cond_cb(
            tb,
            on_flagged_block,
            ffi::CB_RW_REGS_PC,
            ffi::COND_NE,
            pending::flag(),
            0,
            block.cast_mut().cast(),
        );
    }
}

/// Makes an instruction apply a pending fixup before it runs.
pub(crate) fn before_instruction(insn: *mut ffi::TbInsn) {
    // SAFETY: the handle is the translation callback's.
    unsafe {
        ffi::qemu_plugin_register_vcpu_insn_exec_cb(
            insn,
            on_next_instruction,
            ffi::CB_RW_REGS_PC,
            ptr::null_mut(),
        );
    }
}
