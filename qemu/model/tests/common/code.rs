//! Code in memory, for wrong paths, in an encoding of these tests.

use std::{cell::RefCell, collections::BTreeMap};

use tally_model::{BranchKind, CODE_LINE_BYTES, CodeAt, CodeMemory};

/// Memory full of code that only wrong paths run: lines that cannot be read, branches of every
/// kind, instructions of every length.
pub const NOISE: CodeMemory = CodeMemory { line: noise, decode };

/// Memory with the code that a test has [`put`] there.
pub const WRITTEN: CodeMemory = CodeMemory { line: written, decode };

const BYTES: u64 = CODE_LINE_BYTES as u64;
/// Kinds of instructions, by the first byte's lower half. Higher values are no instructions.
const KINDS: [BranchKind; 7] = BranchKind::ALL;

thread_local! {
    /// Lines by their physical addresses.
    static LINES: RefCell<BTreeMap<u64, [u8; CODE_LINE_BYTES]>> = RefCell::default();
}

/// Removes all code that was put.
pub fn clear() {
    LINES.with_borrow_mut(BTreeMap::clear);
}

/// Puts an instruction of at least 4 bytes (`length`) at `pc`, which may lead to `target`. The rest
/// of the line contains instructions of 4 bytes that are no branches.
pub fn put(pc: u64, length: u8, kind: BranchKind, target: u64) {
    let kind = KINDS.iter().position(|other| *other == kind).unwrap_or(KINDS.len());
    write(pc, &[length << 4 | kind as u8]);
    write(pc + 1, &(target.wrapping_sub(pc) as i32).to_le_bytes()[..3]);
}

/// Puts bytes that are no instruction.
pub fn put_end(pc: u64) {
    write(pc, &[0x4f]);
}

/// Makes a line unreadable.
pub fn hide(pc: u64) {
    LINES.with_borrow_mut(|lines| lines.remove(&(super::physical(pc) / BYTES)));
}

fn write(pc: u64, bytes: &[u8]) {
    LINES.with_borrow_mut(|lines| {
        for (pc, byte) in (pc..).zip(bytes) {
            let line = super::physical(pc) / BYTES;
            let line = lines.entry(line).or_insert([0x40; CODE_LINE_BYTES]);
            line[(pc % BYTES) as usize] = *byte;
        }
    });
}

fn written(line: u64) -> Option<[u8; CODE_LINE_BYTES]> {
    LINES.with_borrow(|lines| lines.get(&line).copied())
}

fn noise(line: u64) -> Option<[u8; CODE_LINE_BYTES]> {
    let mut state = line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let bytes = std::array::from_fn(|_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    });
    (!state.is_multiple_of(16)).then_some(bytes)
}

/// Decodes: the upper half of the first byte is the length; the next three bytes are the
/// displacement, which is kept small in noise.
fn decode(bytes: &[u8], pc: u64) -> CodeAt {
    let Some([first, displacement @ ..]) = bytes.first_chunk::<4>() else {
        return CodeAt::Incomplete;
    };
    let length = (first >> 4).max(1);
    let Some(kind) = KINDS.get(usize::from(first & 15)) else { return CodeAt::End };
    if bytes.len() < usize::from(length) {
        return CodeAt::Incomplete;
    }
    let [low, middle, high] = *displacement;
    let displacement = i32::from_le_bytes([0, low, middle, high]) >> 8;
    CodeAt::Insn { length, kind: *kind, target: pc.wrapping_add(displacement as u64) }
}
