//! The instructions that the plugin intercepts: register accesses, CPUID, and changes of address
//! space.
//!
//! The callback runs before the instruction. QEMU then executes the instruction: its WRMSR ignores
//! the PMU's registers, and the plugin replaces the results of its RDMSR and CPUID
//! ([`crate::fixup`]). QEMU has no RDPMC, so the plugin skips that instruction. The plugin also
//! provokes the faults that the PMU's rules require.

use std::ffi::{c_uint, c_void};

use iced_x86::{Instruction, Register};
use tally_abi::{
    truth::RegionKind,
    vpmu::{LEAF, Op, SIGNATURE, VERSION},
};
use tally_model::Privilege;
use tally_vpmu::{AccessResult, CpuidKind};

use crate::{
    apic,
    decode::Special,
    ffi, fixup, instrumentation, options,
    pending::{BlockExit, Fixup},
    region,
    registers::{GuestRegisters, Reg},
    replaced::replace_rdpmc,
    tag::Tag,
    vcpu::{self, Vcpu},
};

/// An intercepted instruction.
#[derive(Clone, Debug)]
pub(crate) struct Intercept {
    pub(crate) special: Special,
    /// Index of the instruction in its block.
    pub(crate) index: usize,
    /// Address of the block, of the instruction and of the next one, at translation.
    pub(crate) block_pc: u64,
    pub(crate) pc: u64,
    pub(crate) next_pc: u64,
    pub(crate) ring: Privilege,
    pub(crate) raw: Instruction,
}

/// A non-canonical address: continuing there raises a general-protection fault (SDM vol. 1,
/// "Canonical Addressing").
const NOT_CANONICAL: u64 = 1 << 63;
/// MSRs whose write, and whose read, always faults in QEMU: the x2APIC's identifier is read-only
/// and its register 4 reserved, and outside x2APIC mode neither exists.
const MSR_WRITE_FAULTS: u32 = 0x802;
const MSR_READ_FAULTS: u32 = 0x804;
/// CR4.PCE: RDPMC in ring 3.
const CR4_PCE: u64 = 1 << 8;

/// Called before an intercepted instruction.
pub(crate) extern "C" fn on_intercept(vcpu: c_uint, intercept: *mut c_void) {
    // SAFETY: the word is the intercept that `translate` kept for as long as QEMU keeps the
    // translation.
    let intercept = unsafe { &*intercept.cast::<Intercept>() };
    if let Some(pc) = handle(vcpu::current(vcpu), intercept) {
        // SAFETY: the callback is registered with the flag that allows this, and nothing here is
        // left to be dropped: it does not return.
        unsafe { ffi::qemu_plugin_set_pc(pc) }
    }
}

impl Intercept {
    /// The distance between the address at which the block runs and its address at translation; not
    /// zero if it runs under another mapping of its page.
    fn moved(&self, vcpu: &mut Vcpu) -> u64 {
        vcpu.registers.read(Reg::Rip).wrapping_sub(self.block_pc) & !0xfff
    }
}

/// The handling of an intercepted instruction.
enum Disposition {
    /// Execution by QEMU.
    Run,
    /// No execution: the instruction is skipped.
    Skip,
    /// A general-protection fault; RDPMC only.
    Fault,
}

/// Handles the instruction. Returns the address at which to continue, or `None` if QEMU executes
/// the instruction.
fn handle(vcpu: &mut Vcpu, intercept: &Intercept) -> Option<u64> {
    let outcome = match intercept.special {
        Special::Rdmsr => rdmsr(vcpu, intercept),
        Special::Wrmsr => wrmsr(vcpu, intercept),
        Special::Rdpmc | Special::RdpmcAsCpuid => rdpmc(vcpu, intercept),
        Special::Cpuid => cpuid(vcpu, intercept),
        Special::LoadSpace => {
            vcpu.settle(intercept.index + 1);
            let cr3 = find_gpr(&mut vcpu.registers, intercept.raw.op1_register());
            vcpu.switch_space(cr3.unwrap_or(0));
            Disposition::Run
        }
        Special::FlushAll => {
            if intercept.raw.op0_register() == Register::CR4 {
                let cr4 = find_gpr(&mut vcpu.registers, intercept.raw.op1_register());
                vcpu.core.set_control(cr4.unwrap_or(0));
            }
            vcpu.core.flush(true);
            Disposition::Run
        }
        Special::FlushPage => flush_page(vcpu, intercept),
        Special::LoadIdt => Disposition::Run,
        Special::Timestamp => timestamp(vcpu),
        Special::PortWrite => {
            instrumentation::note_port_write(vcpu.registers.read(Reg::Rdx) as u16);
            Disposition::Run
        }
    };
    match outcome {
        Disposition::Run => None,
        Disposition::Skip => {
            vcpu.abandon();
            Some(intercept.next_pc.wrapping_add(intercept.moved(vcpu)))
        }
        Disposition::Fault => fault_at_rdpmc(vcpu, intercept),
    }
}

/// Makes QEMU raise a general-protection fault, by continuing at a non-canonical address. At the
/// fault's delivery the plugin corrects the address in the handler's frame. Returns where to
/// continue.
fn fault_at_rdpmc(vcpu: &mut Vcpu, intercept: &Intercept) -> Option<u64> {
    vcpu.abandon();
    vcpu.fault_at = Some(intercept.pc.wrapping_add(intercept.moved(vcpu)));
    if intercept.special != Special::RdpmcAsCpuid {
        return Some(NOT_CANONICAL);
    }
    // After the CPUID in its place the flags are up to date, and CPUID's results are undone.
    let kept = [Reg::Rax, Reg::Rbx, Reg::Rcx, Reg::Rdx];
    let kept = kept.map(|register| Some(vcpu.registers.read(register)));
    vcpu.block_exit = Some(BlockExit { settled: intercept.index, pc: NOT_CANONICAL });
    vcpu.request_fixup(Fixup::Set(kept));
    None
}

fn flush_page(vcpu: &mut Vcpu, intercept: &Intercept) -> Disposition {
    if let Some(address) = effective_address(&mut vcpu.registers, &intercept.raw) {
        vcpu.core.flush_page(address);
    }
    Disposition::Run
}

/// Lets QEMU read the time-stamp counter, and notes it for precise records.
fn timestamp(vcpu: &mut Vcpu) -> Disposition {
    if vcpu.pmu.profile().has_pebs() {
        vcpu.request_fixup(Fixup::NoteTimestamp);
    }
    Disposition::Run
}

fn msr(vcpu: &mut Vcpu) -> u32 {
    vcpu.registers.read(Reg::Rcx) as u32
}

/// A value in EDX:EAX, in the form of [`Fixup::Set`].
fn in_edx_eax(value: u64) -> [Option<u64>; 4] {
    [Some(value & 0xffff_ffff), None, None, Some(value >> 32)]
}

/// Makes QEMU's own instruction fault, by an MSR that always does. The guest's RCX is restored when
/// the fault is delivered.
fn fault_by(vcpu: &mut Vcpu, msr: u32) -> Disposition {
    vcpu.restore = Some((Reg::Rcx, vcpu.registers.read(Reg::Rcx)));
    vcpu.registers.write(Reg::Rcx, msr.into());
    Disposition::Run
}

fn rdmsr(vcpu: &mut Vcpu, intercept: &Intercept) -> Disposition {
    // In ring 3 QEMU itself raises the fault.
    if intercept.ring == Privilege::User {
        return Disposition::Run;
    }
    let number = msr(vcpu);
    if vcpu.read_x2apic(number) {
        return Disposition::Run;
    }
    vcpu.settle(intercept.index);
    match vcpu.pmu.rdmsr(number, vcpu.core.counts()) {
        AccessResult::Foreign => Disposition::Run,
        AccessResult::Fault => fault_by(vcpu, MSR_READ_FAULTS),
        AccessResult::Done(value) => {
            vcpu.request_fixup(Fixup::Set(in_edx_eax(value)));
            vcpu.after_pmu();
            Disposition::Run
        }
    }
}

// A register access takes effect before its instruction is counted: a read does not include itself,
// a WRMSR that starts a counter is counted by that counter, and one that stops a counter is not.
fn wrmsr(vcpu: &mut Vcpu, intercept: &Intercept) -> Disposition {
    if intercept.ring == Privilege::User {
        return Disposition::Run;
    }
    let number = msr(vcpu);
    let low = vcpu.registers.read(Reg::Rax) & 0xffff_ffff;
    let value = vcpu.registers.read(Reg::Rdx) << 32 | low;
    match number {
        apic::MSR_APIC_BASE => {
            vcpu.apic.write_base(value);
            return Disposition::Run;
        }
        apic::MSR_LVT_PERFORMANCE => {
            // QEMU stores the value too, and raises its faults.
            if vcpu.apic.entry().is_some() {
                vcpu.apic.write_entry(value);
            }
            return Disposition::Run;
        }
        _ if vcpu.write_extended(number, value) => return Disposition::Run,
        _ => {}
    }
    vcpu.settle(intercept.index);
    match vcpu.pmu.wrmsr(number, value, vcpu.core.counts()) {
        AccessResult::Foreign => Disposition::Run,
        AccessResult::Fault => fault_by(vcpu, MSR_WRITE_FAULTS),
        AccessResult::Done(_) => {
            if vcpu.pmu.is_counting() || vcpu.pmu.records_branches() || vcpu.pmu.is_sampling() {
                instrumentation::enable_full();
            }
            if let Some(on) = vcpu.pmu.prefetchers() {
                vcpu.core.set_prefetchers(on);
            }
            vcpu.core.set_slow_loads(vcpu.pmu.slow_load_cycles());
            vcpu.after_pmu();
            Disposition::Run
        }
    }
}

fn rdpmc(vcpu: &mut Vcpu, intercept: &Intercept) -> Disposition {
    if intercept.ring == Privilege::User && vcpu.registers.read(Reg::Cr4) & CR4_PCE == 0 {
        vcpu.settle(intercept.index);
        return match intercept.special {
            Special::RdpmcAsCpuid => Disposition::Fault,
            _ => Disposition::Run,
        };
    }
    let index = msr(vcpu);
    vcpu.settle(intercept.index);
    let AccessResult::Done(value) = vcpu.pmu.rdpmc(index, vcpu.core.counts()) else {
        return Disposition::Fault;
    };
    // The deadline is not handled here: with `-icount` QEMU takes an interrupt at a block's start,
    // or after an instruction that does input or output.
    vcpu.expire_deadline();
    let [rax, _, _, rdx] = in_edx_eax(value);
    if intercept.special == Special::RdpmcAsCpuid {
        let kept = [Reg::Rbx, Reg::Rcx].map(|register| Some(vcpu.registers.read(register)));
        vcpu.request_fixup(Fixup::Set([rax, kept[0], kept[1], rdx]));
        return Disposition::Run;
    }
    vcpu.settle(intercept.index + 1);
    fixup::set(vcpu, [rax, None, None, rdx]);
    Disposition::Skip
}

/// Called before a block in which QEMU's flags would not be up to date at an RDPMC, so that the
/// block cannot be left there. Replaces the RDPMC by a CPUID, which has the same length and which
/// QEMU can execute, and restarts the block. At the block's start the flags are up to date.
pub(crate) extern "C" fn on_unsafe_block(vcpu: c_uint, intercept: *mut c_void) {
    // SAFETY: as in `on_intercept`.
    let intercept = unsafe { &*intercept.cast::<Intercept>() };
    let registers = &mut vcpu::current(vcpu).registers;
    let start = registers.read(Reg::Rip);
    let moved = start.wrapping_sub(intercept.block_pc) & !0xfff;
    if replace_rdpmc(registers, intercept.pc.wrapping_add(moved)) {
        // SAFETY: as in `on_intercept`.
        unsafe { ffi::qemu_plugin_set_pc(start) }
    }
}

fn cpuid(vcpu: &mut Vcpu, intercept: &Intercept) -> Disposition {
    let leaf = vcpu.registers.read(Reg::Rax) as u32;
    let subleaf = vcpu.registers.read(Reg::Rcx) as u32;
    if leaf == LEAF {
        vcpu.settle(intercept.index);
        let answer = perform(vcpu, subleaf, intercept.ring);
        // The operation can change how the rest of the block has to run.
        let pc = intercept.next_pc.wrapping_add(intercept.moved(vcpu));
        vcpu.block_exit = Some(BlockExit { settled: intercept.index + 1, pc });
        vcpu.request_fixup(Fixup::Set(answer.map(|value| Some(value.into()))));
        return Disposition::Run;
    }
    match vcpu.pmu.cpuid_kind(leaf) {
        CpuidKind::Whole | CpuidKind::Patched => vcpu.request_fixup(Fixup::Cpuid(leaf, subleaf)),
        CpuidKind::Foreign => {}
    }
    Disposition::Run
}

/// Performs an operation of the plugin's own leaf for code in `ring`; returns CPUID's answer.
fn perform(vcpu: &mut Vcpu, op: u32, ring: Privilege) -> [u32; 4] {
    let argument = vcpu.registers.read(Reg::Rdx) as u32;
    let Some(op) = Op::decode(op).filter(|op| ring == Privilege::Kernel || !op.needs_ring_0())
    else {
        return [0; 4];
    };
    let done = match op {
        Op::Identify => return [VERSION, SIGNATURE[0], SIGNATURE[1], SIGNATURE[2]],
        Op::Unit => return [vcpu.pmu.unit_counters(), 0, 0, 0],
        Op::Open => open_region(vcpu, RegionKind::Marked, argument),
        Op::OpenSession => open_region(vcpu, RegionKind::Session, argument),
        Op::Close => close_region(vcpu, RegionKind::Marked, argument),
        Op::CloseSession => close_region(vcpu, RegionKind::Session, argument),
        Op::Next => next_region(vcpu, argument),
        Op::Interrupt => {
            // Before the first counter or region no block is counted.
            let counts = !vcpu.pending.is_null();
            if counts {
                vcpu.inject_after(u64::from(argument) + 1);
            }
            counts
        }
        Op::End => {
            vcpu.end_truth();
            true
        }
        Op::Models => {
            let [select, filter] = [Reg::Rdx, Reg::Rbx].map(|reg| vcpu.registers.read(reg));
            let takes_any = options::get().is_some_and(|options| options.takes_unmodelled);
            takes_any || vcpu.pmu.models(select, filter)
        }
    };
    [done.into(), 0, 0, 0]
}

fn open_region(vcpu: &mut Vcpu, kind: RegionKind, number: u32) -> bool {
    let cr3 = vcpu.registers.read(Reg::Cr3);
    vcpu.space = cr3 >> 12 & 0xff_ffff_ffff;
    region::open(Tag { kind, number }, vcpu.space);
    vcpu.update_regions();
    instrumentation::enable_full();
    true
}

/// Closes a marked region and, if it was open, opens the next one.
fn next_region(vcpu: &mut Vcpu, number: u32) -> bool {
    let [from, to] =
        [number, number.wrapping_add(1)].map(|number| Tag { kind: RegionKind::Marked, number });
    let was_open = region::replace(from, to, vcpu.space);
    vcpu.update_regions();
    was_open
}

fn close_region(vcpu: &mut Vcpu, kind: RegionKind, number: u32) -> bool {
    let was_open = region::close(Tag { kind, number }, vcpu.space);
    vcpu.update_regions();
    was_open
}

/// Called when LIDT reads its operand: the 8-byte part is the table's base.
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

fn find_gpr(registers: &mut GuestRegisters, register: Register) -> Option<u64> {
    let full = register.full_register();
    let (_, reg) = GPRS.iter().find(|(name, _)| *name == full)?;
    Some(registers.read(*reg))
}

fn effective_address(registers: &mut GuestRegisters, raw: &Instruction) -> Option<u64> {
    raw.virtual_address(0, 0, |register, _, _| match register {
        Register::None | Register::DS | Register::SS | Register::ES | Register::CS => Some(0),
        _ => find_gpr(registers, register),
    })
}
