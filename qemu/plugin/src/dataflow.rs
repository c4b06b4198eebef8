//! The longest recurrence of a block.
//!
//! Out of order, a loop runs as fast as its longest recurrence: the longest path from a register at
//! the block's start to the same register at its end. Paths through memory are not followed. Moves
//! between registers take no time, nor do the changes of the stack pointer by push, pop, call and
//! return. Latencies are Ice Lake's by uops.info, for all profiles.

use iced_x86::{
    Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedRegister,
};
use tally_model::{Operation, RegisterSet};

use crate::unit;

/// Cycles from an address to data that is in the L1.
const LOAD_CYCLES: u16 = 5;
const REGISTERS: usize = 64;

/// The operands of an instruction, and what they cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Operands {
    pub(crate) operation: Operation,
    cycles: u16,
    loads: bool,
}

/// A block's longest recurrence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recurrence {
    pub(crate) cycles: u16,
    /// A bit for each instruction that loads on a recurrence through its own address: a pointer
    /// chase, whose misses nothing hides.
    pub(crate) chases: u128,
}

impl Operands {
    /// Those of an instruction.
    pub(crate) fn of(raw: &Instruction, factory: &mut InstructionInfoFactory) -> Operands {
        let mut operands = Operands { cycles: latency(raw), ..Operands::default() };
        let operation = &mut operands.operation;
        operation.unit = unit::of(raw);
        let info = factory.info(raw);
        for memory in info.used_memory() {
            operation.address |= register(memory.base()) | register(memory.index());
            let access = memory.access();
            operands.loads |= !matches!(access, OpAccess::Write | OpAccess::CondWrite);
        }
        for used in info.used_registers() {
            add(operation, used);
        }
        if raw.rflags_read() != 0 {
            operation.reads |= RegisterSet::FLAGS;
        }
        if raw.rflags_modified() != 0 {
            operation.writes |= RegisterSet::FLAGS;
        }
        if matches!(
            raw.mnemonic(),
            Mnemonic::Push | Mnemonic::Pop | Mnemonic::Call | Mnemonic::Ret | Mnemonic::Leave
        ) {
            let stack = register(Register::RSP);
            operation.address = operation.address.without(stack);
            operation.reads = operation.reads.without(stack);
            operation.writes = operation.writes.without(stack);
        }
        // A register that is both address and operand is waited for as an operand.
        let values = (0..raw.op_count())
            .filter(|operand| raw.op_kind(*operand) == OpKind::Register)
            .fold(RegisterSet::NONE, |all, operand| all | register(raw.op_register(operand)));
        let only_address = operation.address.without(values);
        operation.reads = operation.reads.without(only_address);
        operands
    }
}

fn add(operation: &mut Operation, used: &UsedRegister) {
    let register = register(used.register());
    // A write of a part of a general register keeps the rest of it.
    let merges = used.register().is_gpr8() || used.register().is_gpr16();
    match used.access() {
        OpAccess::Read | OpAccess::CondRead => operation.reads |= register,
        OpAccess::Write if !merges => operation.writes |= register,
        OpAccess::NoMemAccess | OpAccess::None => {}
        _ => {
            operation.reads |= register;
            operation.writes |= register;
        }
    }
}

fn register(register: Register) -> RegisterSet {
    let full = register.full_register();
    let number = full.number() as u8;
    if register == Register::None {
        RegisterSet::NONE
    } else if full.is_gpr64() {
        RegisterSet::general(number)
    } else if full.is_vector_register() {
        RegisterSet::vector(number)
    } else if full.is_mm() {
        RegisterSet::mmx(number)
    } else if full.is_st() {
        RegisterSet::X87
    } else {
        RegisterSet::NONE
    }
}

/// A path from a register at the block's start.
#[derive(Clone, Copy)]
struct Path {
    cycles: u16,
    loads: u128,
}

/// The longest recurrence of a block of these instructions.
pub(crate) fn recurrence(block: &[Operands]) -> Recurrence {
    let written = block.iter().fold(0, |mask, operands| mask | operands.operation.writes.bits());
    let mut longest = Recurrence::default();
    for start in (0..REGISTERS).filter(|start| written >> start & 1 == 1) {
        if let Some(path) = path_around(block, start) {
            longest.cycles = longest.cycles.max(path.cycles);
            longest.chases |= path.loads;
        }
    }
    longest
}

/// The longest path from the register `start` to itself.
fn path_around(block: &[Operands], start: usize) -> Option<Path> {
    let mut paths = [None; REGISTERS];
    paths[start] = Some(Path { cycles: 0, loads: 0 });
    for (index, operands) in block.iter().enumerate() {
        let operation = &operands.operation;
        let by_address = longest(&paths, operation.address).map(|path| {
            let this = if operands.loads && index < 128 { 1 << index } else { 0 };
            Path { cycles: path.cycles + LOAD_CYCLES, loads: path.loads | this }
        });
        let by_value = longest(&paths, operation.reads);
        let into = [by_address, by_value].into_iter().flatten().max_by_key(|path| path.cycles);
        let out = into.map(|path| Path { cycles: path.cycles + operands.cycles, ..path });
        for register in operation.writes.numbers() {
            paths[register] = out;
        }
    }
    paths[start]
}

fn longest(paths: &[Option<Path>; REGISTERS], of: RegisterSet) -> Option<Path> {
    of.numbers().filter_map(|register| paths[register]).max_by_key(|path| path.cycles)
}

/// Cycles from an instruction's operands to its result, without its load.
fn latency(raw: &Instruction) -> u16 {
    use Mnemonic::*;
    match raw.mnemonic() {
        Mov | Movaps | Movups | Movdqa | Movdqu | Movapd | Movupd => 0,
        Lea if raw.memory_index() == Register::None || raw.memory_displacement64() == 0 => 1,
        Imul | Mul | Popcnt | Lzcnt | Tzcnt | Bsf | Bsr | Crc32 | Pdep | Pext => 3,
        Movd | Movq if raw.op0_kind() == OpKind::Register => 2,
        Div | Idiv => 14,
        Addss | Addsd | Addps | Addpd | Subss | Subsd | Subps | Subpd | Mulss | Mulsd | Mulps
        | Mulpd | Minss | Minsd | Maxss | Maxsd | Cvtsi2sd | Cvtsi2ss | Cvttsd2si | Cvttss2si
        | Cvtsd2ss | Cvtss2sd => 4,
        Divss | Divps => 11,
        Divsd | Divpd | Sqrtss | Sqrtps => 13,
        Sqrtsd | Sqrtpd => 18,
        Pmulld => 10,
        Pmullw | Pmuludq | Pmaddwd | Pclmulqdq => 5,
        Aesenc | Aesdec | Xchg => 3,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    fn of(bytes: &[u8]) -> Recurrence {
        let mut factory = InstructionInfoFactory::new();
        let decoder = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE);
        let block: Vec<_> =
            decoder.into_iter().map(|raw| Operands::of(&raw, &mut factory)).collect();
        recurrence(&block)
    }

    #[test]
    fn independent_work_has_no_recurrence_and_chains_add_up() {
        // mov eax, 1
        assert_eq!(of(&[0xb8, 1, 0, 0, 0]).cycles, 0);
        // add rax, rbx; add rax, rbx; imul rax, rbx
        let chain = [0x48, 1, 0xd8, 0x48, 1, 0xd8, 0x48, 0x0f, 0xaf, 0xc3];
        assert_eq!(of(&chain), Recurrence { cycles: 5, chases: 0 });
        // add rax, rcx; add rbx, rcx
        assert_eq!(of(&[0x48, 1, 0xc8, 0x48, 1, 0xcb]).cycles, 1);
        // imul rax, rbx; xor eax, eax
        assert_eq!(of(&[0x48, 0x0f, 0xaf, 0xc3, 0x31, 0xc0]).cycles, 0);
    }

    #[test]
    fn a_pointer_chase_is_found() {
        // mov rax, [rax]
        assert_eq!(of(&[0x48, 0x8b, 0x00]), Recurrence { cycles: 5, chases: 1 });
        // inc rcx; mov rax, [rbx + rcx*8]: the load depends on a recurrence and is not part of it
        let indexed = [0x48, 0xff, 0xc1, 0x48, 0x8b, 0x04, 0xcb];
        assert_eq!(of(&indexed), Recurrence { cycles: 1, chases: 0 });
    }

    #[test]
    fn the_stack_pointer_is_free() {
        // push rbx; pop rbx; ret
        assert_eq!(of(&[0x53, 0x5b, 0xc3]).cycles, 0);
    }
}
