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
pub(crate) enum ServedBy {
    L1,
    L2,
    Llc,
    Memory,
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
