//! What the plugin does behind an instruction that QEMU ran: gives the guest the registers that the
//! PMU answers with.
//!
//! `qemu_plugin_set_pc` leaves a block without bringing QEMU's lazily kept flags up to date, so an
//! instruction is skipped only where they are. All others run, and their results are replaced: before
//! the next instruction of the block or, where there is none, before the next block, which looks at
//! one word of its vCPU to know.

use std::{
    ffi::{c_uint, c_void},
    ptr,
    sync::OnceLock,
};

use tally_model::Block;
use tally_vpmu::Vendor;

use crate::{
    ffi,
    log::{self, Said},
    registers::Reg,
    vcpu::{self, Vcpu},
};

/// CPUID's answer, in its order.
const CPUID_REGISTERS: [Reg; 4] = [Reg::Rax, Reg::Rbx, Reg::Rcx, Reg::Rdx];

/// What is to be done behind the instruction that is about to run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum After {
    /// Patch the processor's answer to this CPUID leaf and subleaf.
    Cpuid(u32, u32),
    /// RAX, RBX, RCX and RDX become these, where there is something.
    Set([Option<u64>; 4]),
}

/// The block is to be left behind an instruction, and begun again there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    /// The block's instructions up to there.
    pub(crate) settled: usize,
    /// The address of the next.
    pub(crate) pc: u64,
}

/// Whether a vCPU has something to do, for the blocks to look at.
#[derive(Clone, Copy)]
struct Flag(ffi::PerVcpu);

// SAFETY: the scoreboard is QEMU's and lives for ever; each vCPU has an element of its own.
unsafe impl Send for Flag {}
// SAFETY: likewise.
unsafe impl Sync for Flag {}

static FLAG: OnceLock<Flag> = OnceLock::new();

fn flag() -> ffi::PerVcpu {
    let Flag(entry) = FLAG.get_or_init(|| {
        // SAFETY: called from installation or later.
        let scoreboard = unsafe { ffi::qemu_plugin_scoreboard_new(8) };
        Flag(ffi::PerVcpu { scoreboard, offset: 0 })
    });
    *entry
}

/// Has vCPU `index` look before its next block.
pub(crate) fn raise_flag(index: u32) {
    // SAFETY: the vCPU exists.
    unsafe { ffi::qemu_plugin_u64_set(flag(), index, 1) };
}

/// Behind an instruction that the plugin stepped in at, in the same block.
extern "C" fn on_next_instruction(index: c_uint, _: *mut c_void) {
    let vcpu = vcpu::current(index);
    do_after(vcpu);
    stop(vcpu);
}

/// Leaves the block where that was asked for.
fn stop(vcpu: &mut Vcpu) {
    let Some(Stop { settled, pc }) = vcpu.stop.take() else { return };
    vcpu.settle(settled);
    vcpu.abandon();
    // SAFETY: the callbacks that come here are registered with the flag that allows this, and nothing
    // is left to be dropped. The flags are up to date: CPUID alone asks for a stop, and QEMU brings
    // them up to date for that.
    unsafe { ffi::qemu_plugin_set_pc(pc) }
}

/// Does what is to be done, whichever of the two places comes first.
fn do_after(vcpu: &mut Vcpu) {
    let Some(after) = vcpu.after.take() else { return };
    let values = match after {
        After::Set(values) => values,
        After::Cpuid(leaf, subleaf) => {
            let given = CPUID_REGISTERS.map(|register| vcpu.registers.read(register) as u32);
            check_vendor(vcpu, leaf, given[1]);
            vcpu.pmu.cpuid(leaf, subleaf, given).map(|value| Some(value.into()))
        }
    };
    set(vcpu, values);
}

/// Before a block whose vCPU has something to do.
extern "C" fn on_flagged_block(index: c_uint, block: *mut c_void) {
    // SAFETY: the vCPU exists.
    unsafe { ffi::qemu_plugin_u64_set(flag(), index, 0) };
    let vcpu = vcpu::current(index);
    do_after(vcpu);
    if vcpu.fault_at.is_some() {
        stop(vcpu);
    }
    // The block that was to be left has ended.
    vcpu.stop = None;
    // SAFETY: the word is none or the block that `translate` kept for as long as QEMU keeps the
    // translation.
    let Some(block) = (unsafe { block.cast::<Block>().as_ref() }) else { return };
    if let Some(pc) = vcpu.stop_for_planned(block) {
        // SAFETY: the callback is registered with the flag that allows this, nothing here is left to
        // be dropped, and at a block's start the flags are up to date.
        unsafe { ffi::qemu_plugin_set_pc(pc) }
    }
}

/// Gives RAX, RBX, RCX and RDX these values, where there is something.
pub(crate) fn set(vcpu: &mut Vcpu, values: [Option<u64>; 4]) {
    for (register, value) in CPUID_REGISTERS.into_iter().zip(values) {
        if let Some(value) = value {
            vcpu.registers.write(register, value);
        }
    }
}

/// Says so if the processor is not of the profile's vendor, by CPUID's EBX.
fn check_vendor(vcpu: &Vcpu, leaf: u32, ebx: u32) {
    let (name, first) = match vcpu.pmu.profile().vendor {
        Vendor::Intel => ("GenuineIntel", u32::from_le_bytes(*b"Genu")),
        Vendor::Amd => ("AuthenticAMD", u32::from_le_bytes(*b"Auth")),
    };
    if matches!(leaf, 0 | 0x8000_0000) && ebx != first {
        log::once(Said::WrongVendor, || {
            let profile = vcpu.pmu.profile().name;
            format!("the processor is not {profile}'s; use -cpu max,vendor={name}")
        });
    }
}

/// Has a block, where it is counted, look whether there is something to do.
pub(crate) fn before_block(tb: *mut ffi::Tb, block: *const Block) {
    // SAFETY: the handle is the translation callback's.
    unsafe {
        ffi::qemu_plugin_register_vcpu_tb_exec_cond_cb(
            tb,
            on_flagged_block,
            ffi::CB_RW_REGS_PC,
            ffi::COND_NE,
            flag(),
            0,
            block.cast_mut().cast(),
        );
    }
}

/// Has an instruction look whether there is something to do.
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
