//! Code in the guest's memory, for fetch where no instruction runs: on wrong paths.
//!
//! What runs is reported by the caller, decoded. What does not run only the guest's memory has, and
//! the model knows neither that nor an encoding of instructions.

use crate::block::BranchKind;

/// Bytes of a line of code.
pub const CODE_LINE_BYTES: usize = 64;

/// Where code is read and decoded. Neither function may change anything that the guest sees.
#[derive(Clone, Copy, Debug)]
pub struct CodeMemory {
    /// The bytes of a line, by its physical address in lines; none if it cannot be read as code.
    pub line: fn(line: u64) -> Option<[u8; CODE_LINE_BYTES]>,
    /// What these bytes at the virtual address `pc` begin with. It depends on nothing else.
    pub decode: fn(bytes: &[u8], pc: u64) -> CodeAt,
}

/// What bytes of code begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeAt {
    /// An instruction.
    Insn {
        /// Its bytes, at least one.
        length: u8,
        /// What kind of branch it is.
        kind: BranchKind,
        /// Where it leads, if it is a direct branch; else unused.
        target: u64,
    },
    /// An instruction that has more bytes than there are.
    Incomplete,
    /// No instruction, or one behind which nothing is fetched before it retires.
    End,
}
