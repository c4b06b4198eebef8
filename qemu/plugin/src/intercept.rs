//! The instructions that the plugin steps in at: register accesses, CPUID, and changes of address
//! space.
//!
//! The callback runs before the instruction. QEMU then runs it: its WRMSR ignores the PMU's registers,
//! and what its RDMSR and CPUID answer is replaced ([`crate::after`]). RDPMC it does not have, so that
//! is skipped; and what must fault is made to.

use std::ffi::{c_uint, c_void};

use iced_x86::{Instruction, Register};
use tally_abi::vpmu::{LEAF, Op, SIGNATURE, VERSION};
use tally_model::Ring;
use tally_vpmu::{Access, CpuidKind};

use crate::{
    after::{self, After, Stop},
    apic,
    decode::Special,
    ffi, gear, region,
    registers::{Reg, Registers},
    translate,
    vcpu::{self, Vcpu},
};

/// An instruction to step in at.
#[derive(Clone, Debug)]
pub(crate) struct Intercept {
    pub(crate) special: Special,
    /// Its index in its block.
    pub(crate) index: usize,
    /// The block's, its own and the next instruction's address at translation.
    pub(crate) block_pc: u64,
    pub(crate) pc: u64,
    pub(crate) next_pc: u64,
    pub(crate) ring: Ring,
    pub(crate) raw: Instruction,
}

/// An address that is not canonical: to go on there is a general-protection fault (SDM vol. 1,
/// "Canonical Addressing").
const NOT_CANONICAL: u64 = 1 << 63;
/// MSRs to which a write and from which a read always faults in QEMU: the x2APIC's identifier is
/// read-only and its register 4 reserved, and outside x2APIC mode neither is there.
const MSR_WRITE_FAULTS: u32 = 0x802;
const MSR_READ_FAULTS: u32 = 0x804;
/// CR4.PCE: RDPMC in ring 3.
const CR4_PCE: u64 = 1 << 8;

/// The plugin steps in.
pub(crate) extern "C" fn on_intercept(vcpu: c_uint, intercept: *mut c_void) {
    // SAFETY: the word is the intercept that `translate` kept for as long as QEMU keeps the
    // translation.
    let intercept = unsafe { &*intercept.cast::<Intercept>() };
    if let Some(pc) = step_in(vcpu::current(vcpu), intercept) {
        // SAFETY: the callback is registered with the flag that allows this, and nothing here is
        // left to be dropped: it does not return.
        unsafe { ffi::qemu_plugin_set_pc(pc) }
    }
}

impl Intercept {
    /// How far the block runs from where it was at translation: under another mapping of its page.
    fn moved(&self, vcpu: &mut Vcpu) -> u64 {
        vcpu.registers.read(Reg::Rip).wrapping_sub(self.block_pc) & !0xfff
    }
}

/// What becomes of an instruction.
enum Outcome {
    /// QEMU runs it.
    Run,
    /// It is skipped.
    Skip,
    /// It takes a general-protection fault.
    Fault,
}

/// Does the instruction's work; the address to go on at, or none to let QEMU do it.
fn step_in(vcpu: &mut Vcpu, intercept: &Intercept) -> Option<u64> {
    let outcome = match intercept.special {
        Special::Rdmsr => rdmsr(vcpu, intercept),
        Special::Wrmsr => wrmsr(vcpu, intercept),
        Special::Rdpmc | Special::RdpmcAsCpuid => rdpmc(vcpu, intercept),
        Special::Cpuid => cpuid(vcpu, intercept),
        Special::LoadSpace => {
            vcpu.settle(intercept.index + 1);
            let cr3 = find_gpr(&mut vcpu.registers, intercept.raw.op1_register());
            vcpu.switch_space(cr3.unwrap_or(0));
            Outcome::Run
        }
        Special::FlushAll => {
            vcpu.core.flush(true);
            Outcome::Run
        }
        Special::FlushPage => {
            if let Some(address) = effective_address(&mut vcpu.registers, &intercept.raw) {
                vcpu.core.flush_page(address);
            }
            Outcome::Run
        }
        Special::LoadIdt => Outcome::Run,
        Special::PortWrite => {
            gear::note_port(vcpu.registers.read(Reg::Rdx) as u16);
            Outcome::Run
        }
    };
    if matches!(outcome, Outcome::Run) {
        return None;
    }
    vcpu.abandon();
    let moved = intercept.moved(vcpu);
    if matches!(outcome, Outcome::Skip) {
        return Some(intercept.next_pc.wrapping_add(moved));
    }
    // QEMU raises the fault for the address; when it is delivered, the handler's frame is made to
    // name the instruction. RDPMC alone comes here.
    vcpu.fault_at = Some(intercept.pc.wrapping_add(moved));
    if intercept.special != Special::RdpmcAsCpuid {
        return Some(NOT_CANONICAL);
    }
    // Behind the CPUID in its place the flags are up to date, and what that answers is undone.
    let kept = [Reg::Rax, Reg::Rbx, Reg::Rcx, Reg::Rdx];
    let kept = kept.map(|register| Some(vcpu.registers.read(register)));
    vcpu.stop = Some(Stop { settled: intercept.index, pc: NOT_CANONICAL });
    vcpu.note_after(After::Set(kept));
    None
}

fn msr(vcpu: &mut Vcpu) -> u32 {
    vcpu.registers.read(Reg::Rcx) as u32
}

/// A value in EDX:EAX, as After::Set has it.
fn in_edx_eax(value: u64) -> [Option<u64>; 4] {
    [Some(value & 0xffff_ffff), None, None, Some(value >> 32)]
}

/// Lets QEMU's own instruction fault, by an MSR that always does; the guest's RCX is put back when
/// the fault is delivered.
fn fault_by(vcpu: &mut Vcpu, msr: u32) -> Outcome {
    vcpu.restore = Some((Reg::Rcx, vcpu.registers.read(Reg::Rcx)));
    vcpu.registers.write(Reg::Rcx, msr.into());
    Outcome::Run
}

fn rdmsr(vcpu: &mut Vcpu, intercept: &Intercept) -> Outcome {
    // In ring 3 QEMU faults by itself.
    if intercept.ring == Ring::User {
        return Outcome::Run;
    }
    let number = msr(vcpu);
    if number == apic::MSR_LVT_PERFORMANCE {
        if let Some(entry) = vcpu.apic.entry() {
            vcpu.note_after(After::Set(in_edx_eax(entry.into())));
        }
        return Outcome::Run;
    }
    vcpu.settle(intercept.index);
    match vcpu.pmu.rdmsr(number, vcpu.core.counts()) {
        Access::Foreign => Outcome::Run,
        Access::Fault => fault_by(vcpu, MSR_READ_FAULTS),
        Access::Done(value) => {
            vcpu.note_after(After::Set(in_edx_eax(value)));
            vcpu.after_pmu();
            Outcome::Run
        }
    }
}

// A register access takes effect before it is itself counted: a read does not see itself, a start
// counts its own instruction and a stop does not.
fn wrmsr(vcpu: &mut Vcpu, intercept: &Intercept) -> Outcome {
    if intercept.ring == Ring::User {
        return Outcome::Run;
    }
    let number = msr(vcpu);
    let low = vcpu.registers.read(Reg::Rax) & 0xffff_ffff;
    let value = vcpu.registers.read(Reg::Rdx) << 32 | low;
    match number {
        apic::MSR_APIC_BASE => {
            vcpu.apic.learn_id(&mut vcpu.registers);
            vcpu.apic.base_written(value);
            return Outcome::Run;
        }
        apic::MSR_LVT_PERFORMANCE => {
            // QEMU keeps it too, and faults where it must.
            if vcpu.apic.entry().is_some() {
                vcpu.apic.entry_written(value);
            }
            return Outcome::Run;
        }
        _ => {}
    }
    vcpu.settle(intercept.index);
    match vcpu.pmu.wrmsr(number, value, vcpu.core.counts()) {
        Access::Foreign => Outcome::Run,
        Access::Fault => fault_by(vcpu, MSR_WRITE_FAULTS),
        Access::Done(_) => {
            if vcpu.pmu.is_counting() {
                gear::up();
            }
            vcpu.after_pmu();
            Outcome::Run
        }
    }
}

fn rdpmc(vcpu: &mut Vcpu, intercept: &Intercept) -> Outcome {
    if intercept.ring == Ring::User && vcpu.registers.read(Reg::Cr4) & CR4_PCE == 0 {
        vcpu.settle(intercept.index);
        return match intercept.special {
            Special::RdpmcAsCpuid => Outcome::Fault,
            _ => Outcome::Run,
        };
    }
    let index = msr(vcpu);
    vcpu.settle(intercept.index);
    let Access::Done(value) = vcpu.pmu.rdpmc(index, vcpu.core.counts()) else {
        return Outcome::Fault;
    };
    // Not here: QEMU, when it counts instructions, takes an interrupt at a block's start, or behind
    // an instruction that it knows for input or output.
    vcpu.attend_soon();
    let [rax, _, _, rdx] = in_edx_eax(value);
    if intercept.special == Special::RdpmcAsCpuid {
        let kept = [Reg::Rbx, Reg::Rcx].map(|register| Some(vcpu.registers.read(register)));
        vcpu.note_after(After::Set([rax, kept[0], kept[1], rdx]));
        return Outcome::Run;
    }
    vcpu.settle(intercept.index + 1);
    after::set(vcpu, [rax, None, None, rdx]);
    Outcome::Skip
}

/// A block in which QEMU's flags would not be up to date at an RDPMC, and which therefore cannot be
/// left there: puts a CPUID in the RDPMC's place, which is as long and which QEMU can run, and starts
/// over. The block's start is a place that can be left.
pub(crate) extern "C" fn on_unsafe_block(vcpu: c_uint, intercept: *mut c_void) {
    // SAFETY: as in `on_intercept`.
    let intercept = unsafe { &*intercept.cast::<Intercept>() };
    let registers = &mut vcpu::current(vcpu).registers;
    let start = registers.read(Reg::Rip);
    let moved = start.wrapping_sub(intercept.block_pc) & !0xfff;
    if translate::replace_rdpmc(registers, intercept.pc.wrapping_add(moved)) {
        // SAFETY: as in `on_intercept`.
        unsafe { ffi::qemu_plugin_set_pc(start) }
    }
}

fn cpuid(vcpu: &mut Vcpu, intercept: &Intercept) -> Outcome {
    let leaf = vcpu.registers.read(Reg::Rax) as u32;
    let subleaf = vcpu.registers.read(Reg::Rcx) as u32;
    if leaf == LEAF {
        vcpu.settle(intercept.index);
        let answer = mark(vcpu, subleaf);
        // What was asked for may change how the rest of the block has to run.
        let pc = intercept.next_pc.wrapping_add(intercept.moved(vcpu));
        vcpu.stop = Some(Stop { settled: intercept.index + 1, pc });
        vcpu.note_after(After::Set(answer.map(|value| Some(value.into()))));
        return Outcome::Run;
    }
    match vcpu.pmu.cpuid_kind(leaf) {
        CpuidKind::Whole | CpuidKind::Patched => vcpu.note_after(After::Cpuid(leaf, subleaf)),
        CpuidKind::Foreign => {}
    }
    Outcome::Run
}

/// The plugin's own leaf: does what it asks for and answers.
fn mark(vcpu: &mut Vcpu, op: u32) -> [u32; 4] {
    let tag = vcpu.registers.read(Reg::Rdx) as u32;
    match Op::decode(op) {
        Some(Op::Identify) => [VERSION, SIGNATURE[0], SIGNATURE[1], SIGNATURE[2]],
        Some(Op::Open) => {
            let cr3 = vcpu.registers.read(Reg::Cr3);
            vcpu.space = cr3 >> 12 & 0xff_ffff_ffff;
            region::open(tag, vcpu.space);
            vcpu.update_regions();
            gear::up();
            [1, 0, 0, 0]
        }
        Some(Op::Close) => {
            let was_open = region::close(tag, vcpu.space);
            vcpu.update_regions();
            [was_open.into(), 0, 0, 0]
        }
        // What is in EDX is the number of instructions here.
        Some(Op::Interrupt) if vcpu.counts_now() => {
            vcpu.plan_interrupt(u64::from(tag) + 1);
            [1, 0, 0, 0]
        }
        Some(Op::End) => {
            vcpu.end_truth();
            [1, 0, 0, 0]
        }
        Some(Op::Interrupt) | None => [0; 4],
    }
}

/// LIDT read its operand: the 8-byte part is the table's base.
pub(crate) extern "C" fn on_idt_load(vcpu: c_uint, info: u32, _: u64, _: *mut c_void) {
    // SAFETY: `info` is this callback's.
    if unsafe { ffi::qemu_plugin_mem_size_shift(info) } == 3 {
        // SAFETY: likewise.
        vcpu::current(vcpu).idt = Some(unsafe { ffi::qemu_plugin_mem_get_value(info) }.low);
    }
}

const GPRS: [(Register, Reg); 16] = [
    (Register::RAX, Reg::Rax),
    (Register::RBX, Reg::Rbx),
    (Register::RCX, Reg::Rcx),
    (Register::RDX, Reg::Rdx),
    (Register::RSI, Reg::Rsi),
    (Register::RDI, Reg::Rdi),
    (Register::RBP, Reg::Rbp),
    (Register::RSP, Reg::Rsp),
    (Register::R8, Reg::R8),
    (Register::R9, Reg::R9),
    (Register::R10, Reg::R10),
    (Register::R11, Reg::R11),
    (Register::R12, Reg::R12),
    (Register::R13, Reg::R13),
    (Register::R14, Reg::R14),
    (Register::R15, Reg::R15),
];

fn find_gpr(registers: &mut Registers, register: Register) -> Option<u64> {
    let full = register.full_register();
    let (_, reg) = GPRS.iter().find(|(name, _)| *name == full)?;
    Some(registers.read(*reg))
}

fn effective_address(registers: &mut Registers, raw: &Instruction) -> Option<u64> {
    raw.virtual_address(0, 0, |register, _, _| match register {
        Register::None | Register::DS | Register::SS | Register::ES | Register::CS => Some(0),
        _ => find_gpr(registers, register),
    })
}
