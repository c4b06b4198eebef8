//! The instructions that the plugin steps in at: register accesses, CPUID, and changes of address
//! space.
//!
//! The callback runs before the instruction. Where the plugin does the instruction's work itself, it
//! sets the program counter behind it; where QEMU should, it lets it run.

use std::ffi::{c_uint, c_void};

use iced_x86::{Instruction, Register};
use tally_abi::vpmu::{LEAF, Op, SIGNATURE, VERSION};
use tally_model::Ring;
use tally_vpmu::{Access, CpuidKind, Vendor};

use crate::{
    apic,
    decode::Special,
    ffi, gear, log, region,
    registers::{Reg, Registers},
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

/// What became of an instruction.
enum Outcome {
    /// QEMU shall run it.
    Leave,
    /// It is done.
    Done,
    /// It takes a general-protection fault.
    Fault,
}

/// Does the instruction's work; the address to go on at, or none to let QEMU do it.
fn step_in(vcpu: &mut Vcpu, intercept: &Intercept) -> Option<u64> {
    let outcome = match intercept.special {
        Special::Rdmsr => rdmsr(vcpu, intercept),
        Special::Wrmsr => wrmsr(vcpu, intercept),
        Special::Rdpmc => rdpmc(vcpu, intercept),
        Special::Cpuid => cpuid(vcpu, intercept),
        Special::LoadSpace => {
            vcpu.settle(intercept.index + 1);
            let cr3 = find_gpr(&mut vcpu.registers, intercept.raw.op1_register());
            vcpu.switch_space(cr3.unwrap_or(0));
            Outcome::Leave
        }
        Special::FlushAll => {
            vcpu.core.flush(true);
            Outcome::Leave
        }
        Special::FlushPage => {
            if let Some(address) = effective_address(&mut vcpu.registers, &intercept.raw) {
                vcpu.core.flush_page(address);
            }
            Outcome::Leave
        }
        Special::LoadIdt => Outcome::Leave,
    };
    if matches!(outcome, Outcome::Leave) {
        return None;
    }
    vcpu.abandon();
    // The block may run under another mapping of its page than at translation.
    let moved = vcpu.registers.read(Reg::Rip).wrapping_sub(intercept.block_pc) & !0xfff;
    if matches!(outcome, Outcome::Done) {
        return Some(intercept.next_pc.wrapping_add(moved));
    }
    // QEMU raises the fault for the address; when it is delivered, the handler's frame is made to
    // name the instruction.
    vcpu.fault_at = Some(intercept.pc.wrapping_add(moved));
    Some(NOT_CANONICAL)
}

fn msr(vcpu: &mut Vcpu) -> u32 {
    vcpu.registers.read(Reg::Rcx) as u32
}

fn answer(vcpu: &mut Vcpu, value: u64) {
    vcpu.registers.write(Reg::Rax, value & 0xffff_ffff);
    vcpu.registers.write(Reg::Rdx, value >> 32);
}

fn rdmsr(vcpu: &mut Vcpu, intercept: &Intercept) -> Outcome {
    // In ring 3 QEMU faults by itself.
    if intercept.ring == Ring::User {
        return Outcome::Leave;
    }
    let number = msr(vcpu);
    if number == apic::MSR_LVT_PERFORMANCE {
        let Some(entry) = vcpu.apic.entry() else { return Outcome::Leave };
        return done(vcpu, intercept, Some(entry.into()));
    }
    vcpu.settle(intercept.index);
    match vcpu.pmu.rdmsr(number, vcpu.core.counts()) {
        Access::Foreign => Outcome::Leave,
        Access::Fault => Outcome::Fault,
        Access::Done(value) => done(vcpu, intercept, Some(value)),
    }
}

/// The register access at `intercept` is done. It counts towards what it leaves running: a read
/// does not see itself, a start does and a stop does not.
fn done(vcpu: &mut Vcpu, intercept: &Intercept, value: Option<u64>) -> Outcome {
    if let Some(value) = value {
        answer(vcpu, value);
    }
    vcpu.settle(intercept.index + 1);
    vcpu.after_pmu();
    Outcome::Done
}

fn wrmsr(vcpu: &mut Vcpu, intercept: &Intercept) -> Outcome {
    if intercept.ring == Ring::User {
        return Outcome::Leave;
    }
    let number = msr(vcpu);
    let low = vcpu.registers.read(Reg::Rax) & 0xffff_ffff;
    let value = vcpu.registers.read(Reg::Rdx) << 32 | low;
    match number {
        apic::MSR_APIC_BASE => {
            vcpu.apic.learn_id(&mut vcpu.registers);
            vcpu.apic.base_written(value);
            return Outcome::Leave;
        }
        apic::MSR_LVT_PERFORMANCE => {
            // QEMU keeps it too, and faults where it must.
            if vcpu.apic.entry().is_some() {
                vcpu.apic.entry_written(value);
            }
            return Outcome::Leave;
        }
        _ => {}
    }
    vcpu.settle(intercept.index);
    match vcpu.pmu.wrmsr(number, value, vcpu.core.counts()) {
        Access::Foreign => Outcome::Leave,
        Access::Fault => Outcome::Fault,
        Access::Done(_) => {
            if vcpu.pmu.is_counting() {
                gear::up();
            }
            done(vcpu, intercept, None)
        }
    }
}

fn rdpmc(vcpu: &mut Vcpu, intercept: &Intercept) -> Outcome {
    if intercept.ring == Ring::User && vcpu.registers.read(Reg::Cr4) & CR4_PCE == 0 {
        return Outcome::Leave;
    }
    let index = msr(vcpu);
    vcpu.settle(intercept.index);
    match vcpu.pmu.rdpmc(index, vcpu.core.counts()) {
        Access::Done(value) => done(vcpu, intercept, Some(value)),
        _ => Outcome::Fault,
    }
}

fn cpuid(vcpu: &mut Vcpu, intercept: &Intercept) -> Outcome {
    let leaf = vcpu.registers.read(Reg::Rax) as u32;
    let subleaf = vcpu.registers.read(Reg::Rcx) as u32;
    if leaf == LEAF {
        vcpu.settle(intercept.index);
        mark(vcpu, subleaf);
        return done(vcpu, intercept, None);
    }
    match vcpu.pmu.cpuid_kind(leaf) {
        CpuidKind::Whole => {
            vcpu.settle(intercept.index + 1);
            let answer = vcpu.pmu.cpuid(leaf, subleaf, [0; 4]);
            for (register, value) in CPUID_REGISTERS.into_iter().zip(answer) {
                vcpu.registers.write(register, value.into());
            }
            Outcome::Done
        }
        CpuidKind::Patched => {
            vcpu.cpuid = Some((leaf, subleaf));
            Outcome::Leave
        }
        CpuidKind::Foreign => Outcome::Leave,
    }
}

/// CPUID's answer, in its order.
const CPUID_REGISTERS: [Reg; 4] = [Reg::Rax, Reg::Rbx, Reg::Rcx, Reg::Rdx];

/// The instruction or block after a CPUID: patches what the processor answered.
pub(crate) extern "C" fn on_after_cpuid(vcpu: c_uint, _: *mut c_void) {
    let vcpu = vcpu::current(vcpu);
    let Some((leaf, subleaf)) = vcpu.cpuid.take() else { return };
    let given = CPUID_REGISTERS.map(|register| vcpu.registers.read(register) as u32);
    check_vendor(vcpu, leaf, given[1]);
    let patched = vcpu.pmu.cpuid(leaf, subleaf, given);
    for (register, value) in CPUID_REGISTERS.into_iter().zip(patched) {
        vcpu.registers.write(register, value.into());
    }
}

/// Says so if the processor is not of the profile's vendor, by CPUID's EBX.
fn check_vendor(vcpu: &Vcpu, leaf: u32, ebx: u32) {
    let (name, first) = match vcpu.pmu.profile().vendor {
        Vendor::Intel => ("GenuineIntel", u32::from_le_bytes(*b"Genu")),
        Vendor::Amd => ("AuthenticAMD", u32::from_le_bytes(*b"Auth")),
    };
    if matches!(leaf, 0 | 0x8000_0000) && ebx != first {
        log::once(u64::MAX, || {
            let profile = vcpu.pmu.profile().name;
            format!("the processor is not {profile}'s; use -cpu max,vendor={name}")
        });
    }
}

/// The plugin's own leaf.
fn mark(vcpu: &mut Vcpu, op: u32) {
    let tag = vcpu.registers.read(Reg::Rdx) as u32;
    let answer = match Op::decode(op) {
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
        None => [0; 4],
    };
    for (register, value) in CPUID_REGISTERS.into_iter().zip(answer) {
        vcpu.registers.write(register, value.into());
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
