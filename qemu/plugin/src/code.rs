//! The guest's code in memory, for the model's wrong paths.
//!
//! Only pages from which code was translated are read: other pages can be devices, whose registers
//! a read could change. Nothing that was read is cached, so code that the guest writes is visible
//! at once.

use std::{
    collections::BTreeSet,
    sync::{PoisonError, RwLock},
};

use iced_x86::{Decoder, DecoderError, DecoderOptions};
use tally_model::{CODE_LINE_BYTES, CodeAt, CodeMemory};

use crate::{
    decode::{branch_kind, is_far, serializes},
    guest,
};

/// Bytes of a line and lines of a page, as powers of two.
const LINE_SHIFT: u32 = CODE_LINE_BYTES.ilog2();
const PAGE_LINES_SHIFT: u32 = 12 - LINE_SHIFT;

/// The functions that the model calls.
pub(crate) const MEMORY: CodeMemory = CodeMemory { line: read_line, decode: code_at };

/// The physical pages from which code in 64-bit mode was translated.
static PAGES: RwLock<BTreeSet<u64>> = RwLock::new(BTreeSet::new());

/// Notes that a block of 64-bit code was translated from these physical lines.
pub(crate) fn note_lines(lines: (u64, u64)) {
    let mut pages = PAGES.write().unwrap_or_else(PoisonError::into_inner);
    pages.extend([lines.0, lines.1].map(|line| line >> PAGE_LINES_SHIFT));
}

/// Returns whether a physical line is in a page from which code was translated.
fn is_of_code(line: u64) -> bool {
    let pages = PAGES.read().unwrap_or_else(PoisonError::into_inner);
    pages.contains(&(line >> PAGE_LINES_SHIFT))
}

/// Reads a line of code. To be called from a vCPU's callback.
fn read_line(line: u64) -> Option<[u8; CODE_LINE_BYTES]> {
    is_of_code(line).then(|| guest::read_line(line << LINE_SHIFT))?
}

/// Decodes the first instruction of 64-bit code at `pc`.
fn code_at(bytes: &[u8], pc: u64) -> CodeAt {
    let mut decoder = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE);
    let raw = decoder.decode();
    match decoder.last_error() {
        DecoderError::None => {}
        DecoderError::NoMoreBytes => return CodeAt::Incomplete,
        _ => return CodeAt::End,
    }
    if is_far(&raw) || serializes(&raw) {
        return CodeAt::End;
    }
    let kind = branch_kind(&raw);
    CodeAt::Insn { length: raw.len() as u8, kind, target: raw.near_branch_target() }
}

#[cfg(test)]
mod tests {
    use tally_model::BranchKind;

    use super::*;

    fn insn(length: u8, kind: BranchKind, target: u64) -> CodeAt {
        CodeAt::Insn { length, kind, target }
    }

    #[test]
    fn branches_have_their_targets_at_the_address_of_the_path() {
        for pc in [0x1000, 0xffff_ffff_8000_0ff0] {
            for (bytes, want) in [
                (&[0xeb, 0x10][..], insn(2, BranchKind::Jump, pc + 0x12)),
                (&[0x75, 0xf0], insn(2, BranchKind::Cond, pc - 14)),
                (&[0x0f, 0x84, 0, 1, 0, 0], insn(6, BranchKind::Cond, pc + 0x106)),
                (&[0xe8, 0, 1, 0, 0], insn(5, BranchKind::Call, pc + 0x105)),
                (&[0xff, 0xe0], insn(2, BranchKind::IndirectJump, 0)),
                (&[0xff, 0x10], insn(2, BranchKind::IndirectCall, 0)),
                (&[0xf3, 0xc3], insn(2, BranchKind::Return, 0)),
                (&[0x48, 0x8b, 0x07], insn(3, BranchKind::None, 0)),
            ] {
                let more = [bytes, &[0x90; 20]].concat();
                assert_eq!(code_at(bytes, pc), want, "{bytes:x?}");
                assert_eq!(code_at(&more, pc), want, "{bytes:x?}");
                for part in 0..bytes.len() {
                    assert_eq!(code_at(&bytes[..part], pc), CodeAt::Incomplete, "{bytes:x?}");
                }
            }
        }
    }

    #[test]
    fn a_path_ends_at_what_is_no_code_and_at_what_leaves_or_drains_the_pipeline() {
        for bytes in [
            &[0x06][..],         // Invalid in 64-bit mode.
            &[0x0f, 0x0b],       // UD2.
            &[0x0f, 0xa2],       // CPUID.
            &[0x0f, 0x05],       // SYSCALL.
            &[0x0f, 0x22, 0xd8], // MOV CR3, RAX.
            &[0x48, 0xcf],       // IRETQ.
            &[0xcc],             // INT3.
            &[0xf4],             // HLT.
            &[0xff, 0x2c, 0x24], // A far jump.
        ] {
            let more = [bytes, &[0x90; 15]].concat();
            assert_eq!(code_at(&more, 0x1000), CodeAt::End, "{bytes:x?}");
        }
    }

    #[test]
    fn only_pages_of_code_are_read() {
        assert!(!is_of_code(0x400 << PAGE_LINES_SHIFT));
        note_lines((0x400 << PAGE_LINES_SHIFT | 7, 0x9_0000 << PAGE_LINES_SHIFT));
        for (page, is_code) in [(0x3ff, false), (0x400, true), (0x401, false), (0x9_0000, true)] {
            for line in [0, 7, 63] {
                assert_eq!(is_of_code(page << PAGE_LINES_SHIFT | line), is_code, "{page:#x}");
            }
        }
    }
}
