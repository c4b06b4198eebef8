//! State of fetch on a wrong path: its branch histories, and the bytes of code that it has read.

use super::decoded::DecodedLines;
use crate::{
    block::BranchKind,
    branch::Histories,
    code::{CODE_LINE_BYTES, CodeAt, CodeMemory},
    geometry::Geometry,
};

const BYTES: u64 = CODE_LINE_BYTES as u64;

/// A core's wrong path. There is one at a time.
#[derive(Clone, Debug)]
pub(super) struct WrongPath {
    /// Functions that read the code. Without them a path's instructions are unknown.
    pub(super) memory: Option<CodeMemory>,
    pub(super) histories: Histories,
    /// The address of the next instruction.
    pub(super) pc: u64,
    /// The virtual line that was fetched last.
    line: Option<u64>,
    /// The bytes of the line fetched before the last, and of the last.
    bytes: [u8; 2 * CODE_LINE_BYTES],
    decoded: DecodedLines,
    /// Bytes fetched in a cycle, from an address that is a multiple of this.
    window_bytes: u64,
}

impl WrongPath {
    /// Makes the state for a core; `None` if wrong paths are off.
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

    /// Begins a path at `pc`.
    pub(super) fn begin(&mut self, pc: u64) {
        (self.pc, self.line) = (pc, None);
    }

    /// The virtual line of the next instruction's first byte.
    pub(super) fn first_line(&self) -> u64 {
        self.pc / BYTES
    }

    /// The virtual line of the last byte of the bytes at `pc`, if they reach into a second one.
    pub(super) fn second_line(&self) -> u64 {
        self.pc.wrapping_add(BYTES) / BYTES
    }

    /// Returns whether `line` is the virtual line that was fetched last.
    pub(super) fn is_in(&self, line: u64) -> bool {
        self.line == Some(line)
    }

    /// The number of the fetch window that contains the next instruction.
    pub(super) fn window(&self) -> u64 {
        self.pc / self.window_bytes
    }

    /// Records a fetched line. Returns whether its code could be read, or no code is read at all.
    pub(super) fn enter(&mut self, line: u64, physical_line: u64) -> bool {
        self.line = Some(line);
        let Some(memory) = self.memory else { return true };
        let Some(bytes) = (memory.line)(physical_line) else { return false };
        self.bytes.copy_within(CODE_LINE_BYTES.., 0);
        self.bytes[CODE_LINE_BYTES..].copy_from_slice(&bytes);
        self.decoded.enter(line, &bytes);
        true
    }

    /// Decodes the next instruction. Its first line has been fetched last or before the last.
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

    /// Without code to read, returns the rest of the fetch window as one instruction.
    fn straight_on(&self) -> CodeAt {
        let length = self.window_bytes - self.pc % self.window_bytes;
        CodeAt::Insn { length: length as u8, kind: BranchKind::None, target: 0 }
    }
}
