//! Decoder: from an instruction's bytes to the model's description of it, once for each
//! translation.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register, UsedMemory,
};
use tally_model::{BranchKind, Insn, Signal, StringKind, cost};

use crate::{
    dataflow::operation,
    floating::{divider, floating},
    unit,
};

/// An instruction that the plugin intercepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Rdmsr,
    Wrmsr,
    Rdpmc,
    /// An RDPMC whose bytes were replaced by a CPUID's.
    RdpmcAsCpuid,
    Cpuid,
    /// A write of CR3.
    LoadSpace,
    /// A write of CR0 or CR4, or INVPCID: can invalidate translations.
    FlushAll,
    /// INVLPG.
    FlushPage,
    /// LIDT.
    LoadIdt,
    /// RDTSC or RDTSCP, once every instruction is decoded.
    Timestamp,
    /// OUT DX, AL.
    PortWrite,
}

/// The bytes of OUT DX, AL.
const OUT_DX_AL: [u8; 1] = [0xee];

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoded {
    pub(crate) insn: Insn,
    pub(crate) branch: BranchKind,
    pub(crate) special: Option<Special>,
    /// Whether the instruction has a lock, explicit or implied.
    pub(crate) locked: bool,
    /// Whether QEMU may split one load or store of the instruction into several accesses.
    pub(crate) in_parts: bool,
    /// Size of the instruction's largest access in bytes; 0 if unknown.
    pub(crate) access_bytes: u8,
    pub(crate) raw: Instruction,
}

/// Decodes the instruction with these bytes at `pc`.
pub(crate) fn decode(bytes: &[u8], pc: u64, factory: &mut InstructionInfoFactory) -> Decoded {
    let mut decoded = Decoded::plain(raw(bytes, pc), bytes, pc);
    decoded.insn.operation = operation(&decoded.raw, factory);
    decoded.insn.condition = unit::condition(&decoded.raw);
    decoded.insn.fuses_with = unit::fuses_with(&decoded.raw);
    operands(&mut decoded, factory);
    flow(&mut decoded);
    classify(&mut decoded);
    if matches!(decoded.raw.mnemonic(), Mnemonic::Rdtsc | Mnemonic::Rdtscp) {
        decoded.special = Some(Special::Timestamp);
    }
    decoded
}

/// Decodes only what is needed to intercept the instruction. All such instructions have a byte 0FH,
/// except OUT, which is intercepted only before full instrumentation.
pub(crate) fn decode_special(bytes: &[u8], pc: u64) -> Decoded {
    let raw = if bytes.contains(&0x0f) { raw(bytes, pc) } else { Instruction::default() };
    let mut decoded = Decoded::plain(raw, bytes, pc);
    if bytes == OUT_DX_AL {
        decoded.special = Some(Special::PortWrite);
    }
    decoded
}

impl Decoded {
    fn plain(raw: Instruction, bytes: &[u8], pc: u64) -> Decoded {
        Decoded {
            insn: Insn { pc, length: bytes.len() as u8, uops: 1, ..Insn::default() },
            branch: BranchKind::None,
            special: special(&raw),
            locked: raw.has_lock_prefix(),
            in_parts: raw.memory_size().size() > 16,
            access_bytes: 0,
            raw,
        }
    }
}

/// Decodes the bytes. QEMU knows the processor's mode and the instruction's length, the plugin only
/// the latter. The first mode, 64-bit first, that gives this length is the right one or does no
/// harm.
fn raw(bytes: &[u8], pc: u64) -> Instruction {
    [64, 32, 16]
        .into_iter()
        .map(|bits| Decoder::with_ip(bits, bytes, pc, DecoderOptions::NONE).decode())
        .find(|raw| raw.len() == bytes.len() && !raw.is_invalid())
        .unwrap_or_default()
}

fn special(raw: &Instruction) -> Option<Special> {
    match raw.mnemonic() {
        Mnemonic::Rdmsr => Some(Special::Rdmsr),
        Mnemonic::Wrmsr => Some(Special::Wrmsr),
        Mnemonic::Rdpmc => Some(Special::Rdpmc),
        Mnemonic::Cpuid => Some(Special::Cpuid),
        Mnemonic::Invlpg => Some(Special::FlushPage),
        Mnemonic::Invpcid => Some(Special::FlushAll),
        Mnemonic::Lidt => Some(Special::LoadIdt),
        Mnemonic::Mov if raw.op0_kind() == OpKind::Register => match raw.op0_register() {
            Register::CR3 => Some(Special::LoadSpace),
            Register::CR0 | Register::CR4 => Some(Special::FlushAll),
            _ => None,
        },
        _ => None,
    }
}

fn operands(decoded: &mut Decoded, factory: &mut InstructionInfoFactory) {
    let (mut reads, mut writes) = (0, 0);
    let used_memory = factory.info(&decoded.raw).used_memory();
    decoded.access_bytes = largest_access(&decoded.raw, used_memory);
    for memory in used_memory {
        match memory.access() {
            OpAccess::Read | OpAccess::CondRead => reads += 1,
            OpAccess::Write | OpAccess::CondWrite => writes += 1,
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
                reads += 1;
                writes += 1;
            }
            _ => {}
        }
    }
    // A load fuses with its operation, and a store's two halves with each other; a
    // read-modify-write instruction takes two slots.
    decoded.insn.uops = if reads > 0 && writes > 0 { 2 } else { 1 };
    decoded.insn.wide = is_wide_access(used_memory);
    let implied_lock = decoded.raw.mnemonic() == Mnemonic::Xchg && reads > 0;
    decoded.locked |= implied_lock;
    if decoded.locked {
        decoded.insn.add(Signal::Locked);
        decoded.insn.uops = 8;
    }
    if reads > 1 && writes > 1 || decoded.raw.is_save_restore_instruction() {
        decoded.in_parts = true;
    }
    let string = decoded.raw.is_string_instruction();
    if string && (decoded.raw.has_rep_prefix() || decoded.raw.has_repne_prefix()) {
        decoded.insn.string = Some(string_kind(reads, writes));
    }
}

/// The kind of a repeated string instruction with these loads and stores.
fn string_kind(loads: u32, stores: u32) -> StringKind {
    match (loads, stores) {
        (1.., 1..) => StringKind::Move,
        (0, _) => StringKind::Fill,
        (1, 0) => StringKind::Scan,
        (_, 0) => StringKind::Compare,
    }
}

/// Returns whether it is one load or store of 32 bytes, which QEMU makes in two.
fn is_wide_access(used_memory: &[UsedMemory]) -> bool {
    let is_whole = |access| matches!(access, OpAccess::Read | OpAccess::Write);
    matches!(used_memory, [one] if one.memory_size().size() == 32 && is_whole(one.access()))
}

/// The size of the largest access in bytes, of a repeated string instruction its element's; 0 if
/// one is unknown. At least four, as code of another mode may have been decoded as 64-bit code.
fn largest_access(raw: &Instruction, used_memory: &[UsedMemory]) -> u8 {
    let element = raw.memory_size().size();
    let sizes = used_memory.iter().map(|memory| memory.memory_size().size());
    let sizes = sizes.map(|bytes| if bytes == 0 { element } else { bytes });
    let known = sizes.map(|bytes| if bytes == 0 { usize::MAX } else { bytes }).max();
    known.map_or(0, |bytes| u8::try_from(bytes).map_or(0, |bytes| bytes.max(4)))
}

fn flow(decoded: &mut Decoded) {
    let raw = decoded.raw;
    let insn = &mut decoded.insn;
    if is_far(&raw) {
        insn.add(Signal::Branches);
        insn.add(Signal::BranchFar);
        decoded.in_parts = true;
        insn.traps = raw.flow_control() == FlowControl::Interrupt;
        insn.returns_from_interrupt =
            matches!(raw.mnemonic(), Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq);
        return;
    }
    decoded.branch = branch_kind(&raw);
    if decoded.branch != BranchKind::None {
        count_branch(decoded);
    }
}

/// Returns whether an instruction is a far branch or a software interrupt.
pub(crate) fn is_far(raw: &Instruction) -> bool {
    raw.is_jmp_far()
        || raw.is_call_far()
        || raw.is_jmp_far_indirect()
        || raw.is_call_far_indirect()
        || matches!(raw.mnemonic(), Mnemonic::Retf | Mnemonic::Sysret | Mnemonic::Sysretq)
        || matches!(raw.mnemonic(), Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq)
        || matches!(raw.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Sysexit)
        || raw.flow_control() == FlowControl::Interrupt
}

/// The branch kind of an instruction that is no far branch.
pub(crate) fn branch_kind(raw: &Instruction) -> BranchKind {
    match raw.flow_control() {
        FlowControl::UnconditionalBranch => BranchKind::Jump,
        FlowControl::IndirectBranch => BranchKind::IndirectJump,
        FlowControl::ConditionalBranch => BranchKind::Cond,
        FlowControl::Call => BranchKind::Call,
        FlowControl::IndirectCall => BranchKind::IndirectCall,
        FlowControl::Return => BranchKind::Return,
        _ => BranchKind::None,
    }
}

/// Counts a near branch by its kind.
fn count_branch(decoded: &mut Decoded) {
    let insn = &mut decoded.insn;
    insn.add(Signal::Branches);
    match decoded.branch {
        BranchKind::Cond => insn.add(Signal::BranchCond),
        _ => insn.add(Signal::BranchUncond),
    }
    match decoded.branch {
        BranchKind::Call => insn.add(Signal::BranchCall),
        BranchKind::IndirectCall => {
            insn.add(Signal::BranchCall);
            insn.add(Signal::BranchIndirect);
        }
        BranchKind::IndirectJump => insn.add(Signal::BranchIndirect),
        BranchKind::Return => insn.add(Signal::BranchReturn),
        _ => {}
    }
    if matches!(decoded.branch, BranchKind::Call | BranchKind::IndirectCall) {
        insn.uops = 2;
    }
}

/// Cycles for which a microcoded instruction has the pipeline to itself, and its micro-operations.
/// Rounded from uops.info's and Agner Fog's tables for Ice Lake.
fn microcode(mnemonic: Mnemonic) -> Option<(u16, u8)> {
    Some(match mnemonic {
        Mnemonic::Wrmsr => (cost::WRMSR_CYCLES, 60),
        Mnemonic::Rdmsr => (cost::RDMSR_CYCLES, 30),
        Mnemonic::Rdpmc => (cost::RDPMC_CYCLES, 30),
        Mnemonic::Cpuid => (90, 25),
        Mnemonic::Syscall => (40, 20),
        Mnemonic::Sysret | Mnemonic::Sysretq => (45, 20),
        Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => (cost::IRET_CYCLES, 60),
        Mnemonic::Rdtsc | Mnemonic::Rdtscp => (20, 20),
        Mnemonic::Pause => (40, 4),
        Mnemonic::Swapgs => (10, 4),
        Mnemonic::Lfence => (5, 2),
        Mnemonic::Mfence => (30, 4),
        Mnemonic::Invlpg => (100, 40),
        Mnemonic::In | Mnemonic::Out => (100, 30),
        Mnemonic::Lgdt | Mnemonic::Lidt | Mnemonic::Ltr | Mnemonic::Invpcid => (150, 40),
        Mnemonic::Xgetbv | Mnemonic::Sti | Mnemonic::Cli => (5, 4),
        _ => return None,
    })
}

/// The cycles and micro-operations of an instruction that has the pipeline to itself.
fn serializing(raw: &Instruction, special: Option<Special>) -> Option<(u16, u8)> {
    let writes_control = matches!(special, Some(Special::LoadSpace | Special::FlushAll));
    microcode(raw.mnemonic()).or(writes_control.then_some((120, 20)))
}

/// Returns whether nothing after an instruction is fetched before it retires.
pub(crate) fn serializes(raw: &Instruction) -> bool {
    let stops = matches!(raw.mnemonic(), Mnemonic::Hlt);
    stops
        || raw.flow_control() == FlowControl::Exception
        || serializing(raw, special(raw)).is_some()
}

fn classify(decoded: &mut Decoded) {
    let raw = decoded.raw;
    let insn = &mut decoded.insn;
    if let Some((cycles, uops)) = serializing(&raw, decoded.special) {
        insn.serialize_cycles = cycles;
        insn.uops = uops;
    }
    if insn.uops > 4 {
        insn.add(Signal::Microcoded);
        if insn.string.is_some() {
            insn.uops = 12;
        }
    }
    match raw.mnemonic() {
        Mnemonic::Nop | Mnemonic::Endbr64 => insn.add(Signal::Nops),
        Mnemonic::Pause => insn.add(Signal::Pauses),
        Mnemonic::Cpuid => insn.add(Signal::Cpuids),
        Mnemonic::Clflush | Mnemonic::Clflushopt => insn.add(Signal::Flushes),
        Mnemonic::Prefetcht0
        | Mnemonic::Prefetcht1
        | Mnemonic::Prefetcht2
        | Mnemonic::Prefetchnta
        | Mnemonic::Prefetchw => insn.add(Signal::Prefetches),
        _ => {}
    }
    divider(insn, &raw);
    floating(insn, &raw);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Decoded {
        decode(bytes, 0x1000, &mut InstructionInfoFactory::new())
    }

    fn has(decoded: &Decoded, signal: Signal) -> bool {
        decoded.insn.adds >> signal as u32 & 1 == 1
    }

    #[test]
    fn branches_have_their_kinds() {
        for (bytes, kind) in [
            (&[0xeb, 0x00][..], BranchKind::Jump),
            (&[0x75, 0x00], BranchKind::Cond),
            (&[0xe8, 0, 0, 0, 0], BranchKind::Call),
            (&[0xff, 0xd0], BranchKind::IndirectCall),
            (&[0xff, 0xe0], BranchKind::IndirectJump),
            (&[0xc3], BranchKind::Return),
            (&[0x0f, 0x05], BranchKind::None),
            (&[0x90], BranchKind::None),
        ] {
            assert_eq!(of(bytes).branch, kind, "{bytes:x?}");
        }
        assert!(has(&of(&[0x0f, 0x05]), Signal::BranchFar));
        assert!(of(&[0xcc]).insn.traps);
        assert!(of(&[0x48, 0xcf]).insn.returns_from_interrupt);
    }

    #[test]
    fn intercepted_instructions_are_found() {
        for (bytes, special) in [
            (&[0x0f, 0x30][..], Some(Special::Wrmsr)),
            (&[0x0f, 0x32], Some(Special::Rdmsr)),
            (&[0x0f, 0x33], Some(Special::Rdpmc)),
            (&[0x0f, 0xa2], Some(Special::Cpuid)),
            (&[0x0f, 0x22, 0xd8], Some(Special::LoadSpace)),
            (&[0x0f, 0x20, 0xd8], None),
        ] {
            assert_eq!(of(bytes).special, special, "{bytes:x?}");
            assert_eq!(decode_special(bytes, 0x1000).special, special, "{bytes:x?}");
        }
        assert_eq!(decode_special(&OUT_DX_AL, 0x1000).special, Some(Special::PortWrite));
        assert_eq!(of(&OUT_DX_AL).special, None, "intercepted only before full instrumentation");
    }

    #[test]
    fn accesses_of_32_bytes_are_wide() {
        assert!(of(&[0xc5, 0xfd, 0x10, 0x00]).insn.wide, "vmovupd ymm, [rax]");
        assert!(!of(&[0xc5, 0xf9, 0x10, 0x00]).insn.wide, "vmovupd xmm, [rax]");
    }

    #[test]
    fn no_access_is_larger_than_it_is_said_to_be() {
        for (bytes, most, what) in [
            (&[0xf3, 0x48, 0xa5][..], 8, "REP MOVSQ"),
            (&[0xf3, 0xa4], 4, "REP MOVSB"),
            (&[0x48, 0x8b, 0x00], 8, "mov rax, [rax]"),
            (&[0x0f, 0xae, 0x00], 0, "FXSAVE"),
        ] {
            assert_eq!(of(bytes).access_bytes, most, "{what}");
        }
    }

    #[test]
    fn only_string_instructions_repeat() {
        for (bytes, kind, what) in [
            (&[0xf3, 0xa4][..], Some(StringKind::Move), "REP MOVSB"),
            (&[0xf3, 0xab], Some(StringKind::Fill), "REP STOSD"),
            (&[0xf2, 0xae], Some(StringKind::Scan), "REPNE SCASB"),
            (&[0xf3, 0x48, 0xad], Some(StringKind::Scan), "REP LODSQ"),
            (&[0xf3, 0xa6], Some(StringKind::Compare), "REPE CMPSB"),
            (&[0xa4], None, "MOVSB"),
            (&[0xf3, 0x90], None, "PAUSE"),
            (&[0xf3, 0xc3], None, "REP RET"),
        ] {
            assert_eq!(of(bytes).insn.string, kind, "{what}");
        }
    }
}
