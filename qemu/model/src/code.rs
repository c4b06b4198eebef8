//! Access to the guest's code, for fetch on wrong paths.
//!
//! The caller reports instructions that run, decoded. Code that does not run is only in the guest's
//! memory, which the model cannot read, in an encoding that the model does not know.

use crate::block::BranchKind;

/// Bytes of a line of code.
pub const CODE_LINE_BYTES: usize = 64;

/// Functions that read and decode code. Neither may change anything that the guest sees.
#[derive(Clone, Copy, Debug)]
pub struct CodeMemory {
    /// Returns the bytes of a line by its physical address in lines; `None` if it cannot be read as
    /// code.
    pub line: fn(line: u64) -> Option<[u8; CODE_LINE_BYTES]>,
    /// Decodes the first instruction of these bytes at the virtual address `pc`. Depends on nothing
    /// else.
    pub decode: fn(bytes: &[u8], pc: u64) -> CodeAt,
}

/// Result of decoding at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeAt {
    /// An instruction.
    Insn {
        /// Length in bytes, at least one.
        length: u8,
        /// Kind of branch.
        kind: BranchKind,
        /// Target of a direct branch; else unused.
        target: u64,
    },
    /// An instruction that is longer than the bytes given.
    Incomplete,
    /// No instruction, or one after which nothing is fetched before it retires.
    End,
}
