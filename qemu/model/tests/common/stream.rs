//! Random streams of instructions of every kind.

use tally_model::{BranchKind, Insn, Operation, Privilege, RegisterSet, Signal, Unit};

use super::{Ran, Random};

const UNITS: [Unit; 8] = [
    Unit::None,
    Unit::Integer,
    Unit::Shift,
    Unit::Multiply,
    Unit::Divide,
    Unit::FpAdd,
    Unit::FpDivide,
    Unit::Shuffle,
];

/// A stream of instructions of every kind, from a program of some kilobytes.
pub fn stream(seed: u64, length: usize) -> Vec<Ran> {
    let mut random = Random(seed);
    let mut pc = 0x40_0f00;
    let mut stream = Vec::new();
    for _ in 0..length {
        let ran = instruction(&mut random, pc);
        pc = ran.next_pc;
        stream.push(ran);
    }
    let mut ring = Privilege::User;
    for ran in &mut stream {
        if random.below(500) == 0 {
            ring = if ring == Privilege::User { Privilege::Kernel } else { Privilege::User };
        }
        ran.ring = ring;
    }
    stream
}

/// A random instruction at `pc`.
fn instruction(random: &mut Random, pc: u64) -> Ran {
    let register = |random: &mut Random| RegisterSet::general(random.below(16) as u8);
    let operation = Operation {
        unit: UNITS[random.below(8) as usize],
        address: register(random),
        reads: register(random) | register(random),
        writes: register(random),
    };
    let ran = Ran::new(pc, operation);
    // RegisterSet of the program, so that the same address is the same instruction.
    let address = match random.below(4) {
        0 => 0x7fff_0000 + random.below(64) * 4,
        1 => 0x10_0000 + random.below(1 << 14),
        _ => 0x1000_0000 + random.below(1 << 24),
    };
    match random.below(12) {
        0..3 => ran.load(address),
        3..5 => ran.store(address),
        5 => Ran { insn: Insn { fuses_with: 1 << 5, ..ran.insn }, ..ran },
        6 => {
            let target = 0x40_0f00 + random.below(0x800) * 4;
            let taken = random.below(3) != 0;
            ran.branch(BranchKind::Cond, if taken { target } else { pc + 4 })
        }
        7 if random.below(4) == 0 => {
            ran.branch(BranchKind::IndirectJump, 0x40_0f00 + random.below(16) * 512)
        }
        8 if random.below(20) == 0 => {
            Ran { insn: Insn { serialize_cycles: 40, ..ran.insn }, ..ran }
        }
        9 if random.below(20) == 0 => {
            let mut ran = ran.load(address).store(address);
            ran.insn.add(Signal::Locked);
            ran
        }
        _ => ran,
    }
}
