//! What fetch knows on a wrong path: how it got there, and the bytes that it has of the code.

use super::decoded::DecodedLines;
use crate::{
    block::BranchKind,
    branch::Histories,
    code::{CODE_LINE_BYTES, CodeAt, CodeMemory},
    geometry::Geometry,
};

const BYTES: u64 = CODE_LINE_BYTES as u64;

/// A core's wrong path: one at a time.
#[derive(Clone, Debug)]
pub(super) struct WrongPath {
    /// Where code is read. Without it nothing is known of a path's instructions.
    pub(super) memory: Option<CodeMemory>,
    pub(super) histories: Histories,
    /// The address of the next instruction.
    pub(super) pc: u64,
    /// The virtual line that was fetched last.
    line: Option<u64>,
    /// The bytes of the line before, and of that line.
    bytes: [u8; 2 * CODE_LINE_BYTES],
    decoded: DecodedLines,
    /// The bytes that are fetched in a cycle, from a multiple of them on.
    window_bytes: u64,
}

impl WrongPath {
    /// The state of a core with wrong paths.
    pub(super) fn of(geometry: &Geometry) -> Option<Box<WrongPath>> {
        geometry.has_wrong_paths.then(|| {
            Box::new(WrongPath {
                memory: None,
                histories: Histories::new(geometry),
                pc: 0,
                line: None,
                bytes: [0; 2 * CODE_LINE_BYTES],
                decoded: DecodedLines::new(),
                window_bytes: u64::from(geometry.decode.fetch_bytes.max(1)),
            })
        })
    }

    /// A path begins at `pc`.
    pub(super) fn begin(&mut self, pc: u64) {
        (self.pc, self.line) = (pc, None);
    }

    /// The virtual line of the next instruction's first byte.
    pub(super) fn first_line(&self) -> u64 {
        self.pc / BYTES
    }

    /// The virtual line of its last byte, if that is not the first.
    pub(super) fn second_line(&self) -> u64 {
        self.pc.wrapping_add(BYTES) / BYTES
    }

    /// Returns whether a virtual line was fetched last.
    pub(super) fn is_in(&self, line: u64) -> bool {
        self.line == Some(line)
    }

    /// The number of the bytes among which the next instruction is that are fetched together.
    pub(super) fn window(&self) -> u64 {
        self.pc / self.window_bytes
    }

    /// A line was fetched. Returns whether its code could be read, or need not be.
    pub(super) fn enter(&mut self, line: u64, physical_line: u64) -> bool {
        self.line = Some(line);
        let Some(memory) = self.memory else { return true };
        let Some(bytes) = (memory.line)(physical_line) else { return false };
        self.bytes.copy_within(CODE_LINE_BYTES.., 0);
        self.bytes[CODE_LINE_BYTES..].copy_from_slice(&bytes);
        self.decoded.enter(line, &bytes);
        true
    }

    /// The next instruction. Its first line has been fetched, last or before the last.
    pub(super) fn decode(&mut self) -> CodeAt {
        let Some(memory) = self.memory else { return self.straight_on() };
        let (pc, byte) = (self.pc, (self.pc % BYTES) as usize);
        if self.is_in(self.first_line()) {
            let bytes = &self.bytes[CODE_LINE_BYTES + byte..];
            self.decoded.at(byte, || (memory.decode)(bytes, pc))
        } else {
            (memory.decode)(&self.bytes[byte..], pc)
        }
    }

    /// Nothing is known of the code: all that is fetched in the cycle counts as one instruction.
    fn straight_on(&self) -> CodeAt {
        let length = self.window_bytes - self.pc % self.window_bytes;
        CodeAt::Insn { length: length as u8, kind: BranchKind::None, target: 0 }
    }
}
