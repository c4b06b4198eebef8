//! The registers that an instruction reads and writes.
//!
//! Changes of the stack pointer by push, pop, call and return do not count as accesses: they take
//! no time.

use iced_x86::{
    Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedRegister,
};
use tally_model::{Operation, RegisterSet};

use crate::unit;

/// The unit and the registers of an instruction.
pub(crate) fn operation(raw: &Instruction, factory: &mut InstructionInfoFactory) -> Operation {
    let mut operation = Operation { unit: unit::of(raw), ..Operation::default() };
    let info = factory.info(raw);
    for memory in info.used_memory() {
        operation.address |= register(memory.base()) | register(memory.index());
    }
    for used in info.used_registers() {
        add(&mut operation, used);
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
    // A register that is both address and operand is an operand: the whole operation waits for it.
    let values = (0..raw.op_count())
        .filter(|operand| raw.op_kind(*operand) == OpKind::Register)
        .fold(RegisterSet::NONE, |all, operand| all | register(raw.op_register(operand)));
    let only_address = operation.address.without(values);
    operation.reads = operation.reads.without(only_address);
    operation
}

fn add(operation: &mut Operation, used: &UsedRegister) {
    let register = register(used.register());
    // A write of a part of a general register keeps the rest of the register.
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

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    fn of(bytes: &[u8]) -> Operation {
        let raw = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
        operation(&raw, &mut InstructionInfoFactory::new())
    }

    #[test]
    fn operands_and_addresses_are_apart() {
        let [rax, rcx, rbx] = [0, 1, 3].map(RegisterSet::general);
        // add rax, [rbx + rcx*8]
        let add = of(&[0x48, 0x03, 0x04, 0xcb]);
        assert_eq!((add.address, add.reads), (rbx | rcx, rax));
        assert_eq!(add.writes, rax | RegisterSet::FLAGS);
        // mov [rbx], rbx
        let store = of(&[0x48, 0x89, 0x1b]);
        assert_eq!((store.address, store.reads, store.writes), (rbx, rbx, RegisterSet::NONE));
        // mov al, [rbx]: the rest of the register stays
        let part = of(&[0x8a, 0x03]);
        assert_eq!((part.reads, part.writes), (rax, rax));
    }

    #[test]
    fn the_stack_pointer_is_free() {
        let rbx = RegisterSet::general(3);
        let (push, pop, ret) = (of(&[0x53]), of(&[0x5b]), of(&[0xc3]));
        assert_eq!((push.address | push.writes, push.reads), (RegisterSet::NONE, rbx));
        assert_eq!((pop.address | pop.reads, pop.writes), (RegisterSet::NONE, rbx));
        assert_eq!(ret.address | ret.reads | ret.writes, RegisterSet::NONE);
    }
}
