//! Accesses to memory, and the levels of the hierarchy that serve them.

use crate::signal::Signal;

/// An access to memory by an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Virtual address.
    pub address: u64,
    /// Size in bytes, a power of two. Only accesses that can cross a line, and the out-of-order
    /// pipeline's store forwarding, need it.
    pub bytes: u64,
    /// Whether it is the instruction's first access of its kind: later parts of the same load or
    /// store move data but retire nothing.
    pub retires: bool,
    /// The instruction's index in its block.
    pub insn: usize,
}

impl Access {
    #[inline]
    pub(crate) fn ends_in_line(self) -> bool {
        (self.address & 63) + self.bytes <= 64
    }

    /// The part of an access that is behind its first line.
    pub(crate) fn behind_line(self) -> Access {
        let address = (self.address | 63).wrapping_add(1);
        let bytes = self.address.wrapping_add(self.bytes).wrapping_sub(address);
        Access { address, bytes, retires: false, ..self }
    }
}

/// A line that a prefetcher requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ahead {
    pub(crate) line: u64,
    /// The level that serves the request.
    pub(crate) by: ServedBy,
    /// Whether the line is inserted into the L1; otherwise into the L2.
    pub(crate) into_l1: bool,
}

/// The level that serves an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServedBy {
    /// The L1 data cache.
    L1,
    /// The L2.
    L2,
    /// The last-level cache.
    Llc,
    /// Memory.
    Memory,
}

/// A load or store of an instruction, as a precise record describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataAccess {
    /// Virtual address.
    pub address: u64,
    /// Whether it is a store.
    pub is_store: bool,
    /// The furthest level that served a part of it.
    pub by: ServedBy,
    /// Cycles of its translation and of that level, without waits for queues.
    pub latency_cycles: u32,
    /// Cycles of its translation among them; 0 if the first-level TLB had it.
    pub tlb_cycles: u32,
    /// Whether it took a page walk.
    pub walks: bool,
    /// Whether the instruction has a lock.
    pub is_locked: bool,
    /// Physical address.
    pub physical: u64,
    /// Bytes of the access.
    pub bytes: u8,
    /// Whether the instruction stores too, at the same address or another, after this load.
    pub stores_too: bool,
}

/// A fetched line of code, as a sample of fetches describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchedLine {
    /// Virtual address at translation: the line's, or that of the block's start in it.
    pub address: u64,
    /// Physical address.
    pub physical: u64,
    /// The level that served it, if the L1 did not.
    pub missed_to: Option<ServedBy>,
    /// Cycles of its translation, 0 if the first-level TLB had it, and whether it took a page walk.
    pub translation: (u32, bool),
    /// Cycles of the translation and of the level.
    pub latency_cycles: u32,
}

/// The access of the instruction that is running, and the last fetch, if they are noted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Noted {
    pub(crate) is_on: bool,
    /// The line of code that was fetched last.
    pub(crate) fetched: Option<FetchedLine>,
    /// The instruction's index in its block, and its access.
    last: Option<(usize, DataAccess)>,
}

impl Noted {
    pub(crate) fn new(is_on: bool) -> Noted {
        Noted { is_on, ..Noted::default() }
    }

    /// Notes an access of an instruction: its first load, or its first store if it has no load.
    /// Further parts of the same access add to it.
    #[cold]
    pub(crate) fn note(&mut self, insn: usize, access: DataAccess) {
        match &mut self.last {
            Some((of, last)) if *of == insn && last.is_store == access.is_store => {
                last.by = last.by.max(access.by);
                last.latency_cycles = last.latency_cycles.max(access.latency_cycles);
                last.tlb_cycles = last.tlb_cycles.max(access.tlb_cycles);
                last.walks |= access.walks;
            }
            Some((of, last)) if *of == insn && !last.is_store => last.stores_too = true,
            last => *last = Some((insn, access)),
        }
    }

    /// Takes the access of an instruction.
    pub(crate) fn take(&mut self, insn: usize) -> Option<DataAccess> {
        self.last.take_if(|(of, _)| *of == insn).map(|(_, access)| access)
    }
}

impl ServedBy {
    /// The signal of cycles without retirement behind data from this level.
    pub(crate) fn stall(self) -> Signal {
        match self {
            ServedBy::L1 => Signal::StallL1Hit,
            ServedBy::L2 => Signal::StallL2Hit,
            ServedBy::Llc => Signal::StallL3Hit,
            ServedBy::Memory => Signal::StallMemory,
        }
    }
}
