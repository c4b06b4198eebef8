//! Cache of decoded lines of code, so that a wrong path that is fetched again is not decoded again.
//!
//! Each line is kept with the bytes that were decoded, and compared with the bytes that are read
//! now. So the guest's writes to its code need not be followed.

use crate::{
    block::BranchKind,
    code::{CODE_LINE_BYTES, CodeAt},
};

/// Number of lines that are kept, a power of two.
const LINES: usize = 1 << 10;

/// Mark in [`Line::found`]: nothing has been decoded at this byte.
const UNKNOWN: u8 = 0;
/// Mark: decoding ends at this byte. No instruction has this length and kind.
const END: u8 = u8::MAX;
/// The bits of [`Line::found`] that contain the length.
const LENGTH: u8 = 15;
const KIND_SHIFT: u32 = 4;

/// The kinds of branches, in the order of their numbers.
const KINDS: [BranchKind; 7] = BranchKind::ALL;

/// A line, and the decoded instruction at each of its bytes.
#[derive(Clone, Debug)]
struct Line {
    /// Virtual address in lines, as targets depend on it.
    line: u64,
    bytes: [u8; CODE_LINE_BYTES],
    /// Length and kind of the instruction at each byte, or one of the marks.
    found: [u8; CODE_LINE_BYTES],
    targets: Box<[u64; CODE_LINE_BYTES]>,
}

/// The lines that were decoded last.
#[derive(Clone, Debug)]
pub(super) struct DecodedLines {
    lines: Box<[Line]>,
    /// Index of the line that is being fetched.
    current: usize,
}

impl DecodedLines {
    pub(super) fn new() -> DecodedLines {
        let line = || Line {
            line: u64::MAX,
            bytes: [0; CODE_LINE_BYTES],
            found: [UNKNOWN; CODE_LINE_BYTES],
            targets: Box::new([0; CODE_LINE_BYTES]),
        };
        DecodedLines { lines: (0..LINES).map(|_| line()).collect(), current: 0 }
    }

    /// Makes a virtual line with these bytes the one that is being fetched.
    pub(super) fn enter(&mut self, line: u64, bytes: &[u8; CODE_LINE_BYTES]) {
        self.current = (line ^ line >> LINES.ilog2()) as usize & (LINES - 1);
        let kept = &mut self.lines[self.current];
        if kept.line != line || kept.bytes != *bytes {
            (kept.line, kept.bytes, kept.found) = (line, *bytes, [UNKNOWN; CODE_LINE_BYTES]);
        }
    }

    /// The instruction at a byte of the line that is being fetched. Calls `decode` if the byte was
    /// not decoded before.
    pub(super) fn at(&mut self, byte: usize, decode: impl FnOnce() -> CodeAt) -> CodeAt {
        let line = &mut self.lines[self.current];
        let found = line.found[byte];
        match found {
            UNKNOWN => {}
            END => return CodeAt::End,
            _ => {
                let kind = KINDS[usize::from(found >> KIND_SHIFT) % KINDS.len()];
                let target = if kind == BranchKind::None { 0 } else { line.targets[byte] };
                return CodeAt::Insn { length: found & LENGTH, kind, target };
            }
        }
        let code = decode();
        match code {
            CodeAt::Insn { length: length @ 1..=LENGTH, kind, target } => {
                line.found[byte] = length | (kind as u8) << KIND_SHIFT;
                line.targets[byte] = target;
            }
            CodeAt::End => line.found[byte] = END,
            // The instruction may reach into the next line, which is not kept with this one.
            CodeAt::Insn { .. } | CodeAt::Incomplete => {}
        }
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_decoded_stays_until_the_line_has_other_bytes() {
        let mut lines = DecodedLines::new();
        let bytes = [[1; CODE_LINE_BYTES], [2; CODE_LINE_BYTES]];
        let never = || panic!("it was decoded before");
        for (byte, kind) in KINDS.into_iter().enumerate() {
            let target = if kind == BranchKind::None { 0 } else { u64::MAX - byte as u64 };
            let code = CodeAt::Insn { length: 15, kind, target };
            lines.enter(7, &bytes[0]);
            assert_eq!(lines.at(byte, || code), code);
            lines.enter(8, &bytes[0]);
            assert_eq!(lines.at(byte, || CodeAt::End), CodeAt::End);
            lines.enter(7, &bytes[0]);
            assert_eq!(lines.at(byte, never), code);
            lines.enter(8, &bytes[0]);
            assert_eq!(lines.at(byte, never), CodeAt::End);
        }
        lines.enter(7, &bytes[1]);
        for code in [CodeAt::Incomplete, CodeAt::End] {
            assert_eq!(lines.at(1, || code), code);
        }
        // Another line with the same index.
        lines.enter(7 + ((LINES as u64 + 1) << LINES.ilog2()), &bytes[1]);
        assert_eq!(lines.at(1, || CodeAt::Incomplete), CodeAt::Incomplete);
    }
}
