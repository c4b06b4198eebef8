//! A machine that takes precise records, for tests.

use std::collections::BTreeMap;

use tally_model::{Access, Block, Branch, DataAccess, Insn, Privilege, ServedBy};

use super::{
    AccessResult,
    access::select,
    tests::{Machine, USER_INSTRUCTIONS},
};
use crate::{
    RetiredOp,
    pebs::{GuestMemory, RetiredInsn},
};

/// Address of the management area, and of the buffer.
pub(super) const AREA: u64 = 0xffff_8000_0000_1000;
pub(super) const BUFFER: u64 = 0xffff_8000_0000_4000;
pub(super) const BASIC: u64 = 32;
/// Bit of the addresses in [`Memory`] that are physical.
pub(super) const PHYSICAL: u64 = 1 << 63;

/// Memory of which only what was written exists.
#[derive(Default)]
pub(super) struct Memory(pub(super) BTreeMap<u64, u64>);

impl GuestMemory for Memory {
    fn read(&mut self, address: u64) -> Option<u64> {
        self.0.get(&address).copied()
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> bool {
        for (at, word) in (address..).step_by(8).zip(bytes.chunks(8)) {
            self.0.insert(at, u64::from_le_bytes(word.try_into().unwrap()));
        }
        true
    }

    fn write_physical(&mut self, address: u64, bytes: &[u8]) -> bool {
        self.write(address | PHYSICAL, bytes)
    }
}

impl Memory {
    /// A debug store whose buffer has room for some bytes, with a threshold in bytes and the reset
    /// values of all counters.
    pub(super) fn with_store(room: u64, threshold: u64, period: u64) -> Memory {
        let fields = [BUFFER, BUFFER, BUFFER + room, BUFFER + threshold];
        let resets = [period.wrapping_neg(); 40];
        let words = (AREA + 0x20..).step_by(8).zip(fields.into_iter().chain(resets));
        Memory(words.collect())
    }

    pub(super) fn index(&self) -> u64 {
        self.0[&(AREA + 0x28)]
    }

    /// The words of the buffer up to the index.
    pub(super) fn words(&self) -> Vec<u64> {
        (BUFFER..self.index()).step_by(8).map(|at| self.0[&at]).collect()
    }

    /// Addresses and counters of the basic records in the buffer.
    pub(super) fn records(&self) -> Vec<(u64, u64)> {
        self.words().chunks(4).map(|record| (record[1], record[2])).collect()
    }
}

/// A machine with a debug store, and its memory.
pub(super) struct Sampled {
    pub(super) machine: Machine,
    pub(super) memory: Memory,
    ran: u64,
}

impl Sampled {
    pub(super) fn new(profile: &str, memory: Memory) -> Sampled {
        let mut sampled = Sampled::without_store(profile, memory);
        assert_eq!(sampled.machine.write(0x600, AREA), AccessResult::Done(0));
        sampled
    }

    /// A machine on which the address of the debug store is not set.
    pub(super) fn without_store(profile: &str, memory: Memory) -> Sampled {
        Sampled { machine: Machine::new(profile, 8), memory, ran: 0 }
    }

    /// Runs instructions one by one, the address of each its number, from 1 on.
    pub(super) fn run(&mut self, instructions: u64) {
        for _ in 0..instructions {
            self.ran += 1;
            self.retire(RetiredInsn { ip: self.ran, ..RetiredInsn::default() });
        }
    }

    pub(super) fn retire(&mut self, insn: RetiredInsn) {
        let Sampled { machine, memory, .. } = self;
        machine.run(Privilege::User, 1);
        machine.pmu.retire_insn(machine.core.counts(), (&insn, &RetiredOp::default()), memory);
    }

    /// Counts an instruction in ring 3 that an interrupt ends before it retires.
    pub(super) fn interrupt(&mut self) {
        self.machine.run(Privilege::User, 1);
        self.machine.pmu.pass_events(self.machine.core.counts());
    }

    /// Loads from an address, by the instruction that retires next.
    pub(super) fn load(&mut self, address: u64) {
        let insns = [Insn { uops: 1, ..Insn::default() }];
        let width = self.machine.core.geometry().width;
        let block = Block::new(Privilege::User, width, (0, 0), Branch::default(), &insns);
        let access = Access { insn: 0, address, bytes: 8, retires: true };
        self.machine.core.access::<false>(&block, access, |address| address);
    }

    /// Starts general counter `index` with a period, for records of some groups.
    pub(super) fn start(&mut self, index: u32, period: u64, more: u64) {
        self.machine.write(0x4c1 + index, period.wrapping_neg() & ((1 << 48) - 1));
        self.machine.write(0x186 + index, USER_INSTRUCTIONS | select::INT | more);
        let AccessResult::Done(enabled) = self.machine.read(0x3f1) else { panic!("no PEBS") };
        self.machine.write(0x3f1, enabled | 1 << index);
    }
}

pub(super) const SLOW_LOAD: DataAccess = DataAccess {
    address: 0x1234,
    is_store: false,
    by: ServedBy::Memory,
    latency_cycles: 200,
    tlb_cycles: 30,
    walks: true,
    is_locked: false,
    physical: 0x1234,
    bytes: 8,
    stores_too: false,
};
