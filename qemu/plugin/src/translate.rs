//! The translation callback: decodes a block once and registers the callbacks that it needs.
//!
//! Blocks and intercepts are kept until QEMU flushes its translations, as the translated code calls
//! back with their addresses.

use std::{
    ffi::c_void,
    ptr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use iced_x86::InstructionInfoFactory;
use tally_model::{Block, Branch, BranchKind, Privilege};

use crate::{
    code,
    decode::{Decoded, Special, decode, decode_special},
    exec::{self, AccessTag},
    ffi, fixup,
    guest::physical,
    handlers, instrumentation,
    intercept::{self, Intercept},
    options,
    registers::{GuestRegisters, Reg},
    replaced::{RDPMC, is_replaced},
    vcpu,
};

/// IA32_EFER.LMA: the processor is in IA-32e mode.
const EFER_LMA: u64 = 1 << 10;

/// The state that all vCPUs' translations share.
#[derive(Default)]
struct Translator {
    /// Blocks in boxes, as QEMU keeps their addresses.
    #[expect(clippy::vec_box, reason = "QEMU keeps the addresses")]
    blocks: Vec<Box<Block>>,
    #[expect(clippy::vec_box, reason = "QEMU keeps the addresses")]
    intercepts: Vec<Box<Intercept>>,
    registers: Option<GuestRegisters>,
    factory: Option<InstructionInfoFactory>,
}

// SAFETY: the raw pointers inside belong to QEMU and to the arrays of `GuestRegisters`, which only
// the holder of the mutex uses.
unsafe impl Send for Translator {}

static TRANSLATOR: Mutex<Option<Translator>> = Mutex::new(None);

fn translator() -> MutexGuard<'static, Option<Translator>> {
    TRANSLATOR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Called when QEMU flushes its translations, with every vCPU stopped between two blocks.
pub(crate) extern "C" fn on_flush(_: *mut c_void) {
    vcpu::all().for_each(|vcpu| vcpu.settle_all());
    if let Some(translator) = translator().as_mut() {
        translator.blocks.clear();
        translator.intercepts.clear();
    }
}

/// Called when QEMU translates a block.
pub(crate) extern "C" fn on_translate(tb: *mut ffi::Tb, _: *mut c_void) {
    let mut guard = translator();
    guard.get_or_insert_default().translate(tb);
}

/// An instruction of a block, with QEMU's handle.
struct Translated {
    handle: *mut ffi::TbInsn,
    decoded: Decoded,
}

impl Translator {
    fn translate(&mut self, tb: *mut ffi::Tb) {
        let insns = self.decode_block(tb);
        let Some(first) = insns.first().map(|insn| insn.decoded.insn.pc) else { return };
        let ring = self.ring();
        if !instrumentation::is_full() {
            fixup::before_block(tb, ptr::null());
            self.intercept(tb, &insns, ring);
            return;
        }
        let block = make_block(ring, first, &insns);
        if options::get().is_some_and(|options| options.profile.geometry.has_wrong_paths)
            && self.register(Reg::Efer) & EFER_LMA != 0
        {
            code::note_lines(block.lines);
        }
        let block: *const Block = self.keep(block);
        fixup::before_block(tb, block);
        // Handlers are followed before the intercepts, which can leave the block.
        match ring {
            Privilege::Kernel => {
                insns.iter().for_each(|insn| handlers::follow(insn.handle, insn.decoded.insn.pc));
            }
            Privilege::User => handlers::follow_program(insns[0].handle, first),
        }
        self.intercept(tb, &insns, ring);
        let is_single = insns.len() == 1 && insns[0].decoded.branch == BranchKind::None;
        let on_block = if is_single { exec::on_single } else { exec::on_block };
        // SAFETY: `tb` is this callback's; the block outlives the translation.
        unsafe {
            ffi::qemu_plugin_register_vcpu_tb_exec_cb(
                tb,
                on_block,
                ffi::CB_NO_REGS,
                block.cast_mut().cast(),
            );
        }
        for (index, insn) in insns.iter().enumerate() {
            let tag = AccessTag::new(block, ring, index, &insn.decoded);
            follow_accesses(insn.handle, tag, insn.decoded.insn.string.is_some());
        }
    }

    fn keep(&mut self, block: Block) -> &Block {
        self.blocks.push(Box::new(block));
        &self.blocks[self.blocks.len() - 1]
    }

    fn decode_block(&mut self, tb: *mut ffi::Tb) -> Vec<Translated> {
        let full = instrumentation::is_full();
        let factory = self.factory.get_or_insert_with(InstructionInfoFactory::new);
        // SAFETY: `tb` is the translation callback's.
        let count = unsafe { ffi::qemu_plugin_tb_n_insns(tb) };
        (0..count)
            .map(|index| {
                // SAFETY: below the count.
                let handle = unsafe { ffi::qemu_plugin_tb_get_insn(tb, index) };
                let mut bytes = [0u8; 16];
                // SAFETY: the buffer has 16 bytes.
                let len =
                    unsafe { ffi::qemu_plugin_insn_data(handle, bytes.as_mut_ptr().cast(), 16) };
                // SAFETY: the handle is this callback's.
                let pc = unsafe { ffi::qemu_plugin_insn_vaddr(handle) };
                let is_replaced = is_replaced(&bytes[..len.min(15)], pc);
                let bytes = if is_replaced { &RDPMC } else { &bytes[..len.min(15)] };
                let mut decoded =
                    if full { decode(bytes, pc, factory) } else { decode_special(bytes, pc) };
                if is_replaced {
                    decoded.special = Some(Special::RdpmcAsCpuid);
                }
                Translated { handle, decoded }
            })
            .collect()
    }

    /// The ring of the block: QEMU translates for the current privilege.
    fn ring(&mut self) -> Privilege {
        if self.register(Reg::Cs) & 3 == 3 { Privilege::User } else { Privilege::Kernel }
    }

    /// A register of the vCPU for which QEMU translates.
    fn register(&mut self, register: Reg) -> u64 {
        if self.registers.is_none() {
            self.registers = GuestRegisters::of_current_vcpu();
        }
        self.registers.as_mut().map_or(0, |registers| registers.read(register))
    }

    /// Registers the callbacks of the intercepted instructions.
    fn intercept(&mut self, tb: *mut ffi::Tb, insns: &[Translated], ring: Privilege) {
        let block_pc = insns[0].decoded.insn.pc;
        for (index, insn) in insns.iter().enumerate() {
            let Some(special) = insn.decoded.special else { continue };
            let pc = insn.decoded.insn.pc;
            let next_pc = pc.wrapping_add(insn.decoded.insn.length.into());
            if special == Special::LoadIdt {
                follow_idt(insn.handle);
            }
            if let Some(next) = insns.get(index + 1) {
                fixup::before_instruction(next.handle);
            }
            let raw = insn.decoded.raw;
            let intercept = Intercept { special, index, block_pc, pc, next_pc, ring, raw };
            self.intercepts.push(Box::new(intercept));
            let intercept: *const Intercept = &*self.intercepts[self.intercepts.len() - 1];
            if special == Special::Rdpmc && insns[..index].iter().any(changes_flags) {
                // SAFETY: `tb` is this callback's; the intercept outlives the translation.
                unsafe {
                    ffi::qemu_plugin_register_vcpu_tb_exec_cb(
                        tb,
                        intercept::on_unsafe_block,
                        ffi::CB_RW_REGS_PC,
                        intercept.cast_mut().cast(),
                    );
                }
            }
            // SAFETY: the handle is this callback's; the intercept outlives the translation.
            unsafe {
                ffi::qemu_plugin_register_vcpu_insn_exec_cb(
                    insn.handle,
                    intercept::on_intercept,
                    ffi::CB_RW_REGS_PC,
                    intercept.cast_mut().cast(),
                );
            }
        }
    }
}

/// Returns whether QEMU's flags can be out of date after an instruction.
fn changes_flags(insn: &Translated) -> bool {
    // Without full instrumentation the instruction is not decoded.
    !instrumentation::is_full() || insn.decoded.raw.rflags_modified() != 0
}

fn follow_accesses(insn: *mut ffi::TbInsn, tag: AccessTag, is_string: bool) {
    let callbacks: [ffi::MemCb; 2] = if is_string {
        [exec::on_string_load, exec::on_string_store]
    } else {
        [exec::on_load, exec::on_store]
    };
    for (callback, kind) in callbacks.into_iter().zip([ffi::MEM_R, ffi::MEM_W]) {
        // SAFETY: the handle is the translation callback's; the tag's block outlives the
        // translation.
        unsafe {
            ffi::qemu_plugin_register_vcpu_mem_cb(
                insn,
                callback,
                ffi::CB_NO_REGS,
                kind,
                tag.0 as *mut c_void,
            );
        }
    }
}

fn follow_idt(insn: *mut ffi::TbInsn) {
    // SAFETY: the handle is the translation callback's.
    unsafe {
        ffi::qemu_plugin_register_vcpu_mem_cb(
            insn,
            intercept::on_idt_load,
            ffi::CB_NO_REGS,
            ffi::MEM_R,
            ptr::null_mut(),
        );
    }
}

fn make_block(ring: Privilege, first_pc: u64, insns: &[Translated]) -> Block {
    let last = insns[insns.len() - 1].decoded;
    let end_pc = last.insn.pc.wrapping_add(last.insn.length.into());
    let branch = match last.branch {
        BranchKind::None => Branch::default(),
        kind => Branch { kind, pc: last.insn.pc, fall_through: end_pc },
    };
    let lines = (physical(first_pc) >> 6, physical(end_pc.wrapping_sub(1)) >> 6);
    let insns: Vec<_> = insns.iter().map(|insn| insn.decoded.insn).collect();
    let width = options::get().map_or(1, |options| options.profile.geometry.width);
    let block = Block::new(ring, width, lines, branch, &insns);
    match last.branch {
        BranchKind::Jump | BranchKind::Cond | BranchKind::Call => {
            block.with_target(last.raw.near_branch_target())
        }
        _ => block,
    }
}
