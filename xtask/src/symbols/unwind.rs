//! Unwinds the kernel's stack: from a CPU's registers and a copy of its stack to the return
//! addresses.
//!
//! The kernel has no frame pointers, which would cost the overflow path some 25 instructions per
//! switch. For each instruction, the section `.debug_frame` has the start of its function's frame
//! and the places of the caller's saved registers (DWARF 5, section 6.4). The kernel sends its
//! stack, and the host unwinds it.

use std::{collections::BTreeMap, ops::Range};

use addr2line::gimli::{
    BaseAddresses, CfaRule, DebugFrame, LittleEndian, Register, RegisterRule, UnwindContext,
    UnwindSection, X86_64,
};
use tally_abi::registers::{Frame, Registers};

/// The most levels of a backtrace; a recursion that overflows the stack has thousands.
const MAX_FRAMES: usize = 64;

/// The kernel's code in its file, and how to unwind the frames of its functions.
pub(super) struct UnwindInfo {
    /// The section `.debug_frame`.
    pub(super) frames: Vec<u8>,
    /// The addresses of code in the file.
    pub(super) range: Range<u64>,
    /// What loading added to them.
    pub(super) base: u64,
}

impl UnwindInfo {
    /// The address in the file of code at this address of the running kernel or program.
    pub(super) fn in_file(&self, address: u64) -> Option<u64> {
        address.checked_sub(self.base).filter(|address| self.range.contains(address))
    }
}

/// A copy of a stack, or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// The address of the first byte.
    start: u64,
    bytes: Vec<u8>,
}

impl Stack {
    /// Appends the next piece. A piece that does not start at the end of the last one starts a new
    /// copy.
    pub fn push(&mut self, address: u64, bytes: &[u8]) {
        if address != self.start.wrapping_add(self.bytes.len() as u64) {
            *self = Stack { start: address, bytes: Vec::new() };
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The word at an address.
    fn word(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let word = self.bytes.get(offset..)?.first_chunk()?;
        Some(u64::from_le_bytes(*word))
    }
}

/// The address at which the CPU stopped, then the return addresses, innermost first.
pub(super) fn addresses(code: &UnwindInfo, registers: &Registers, stack: &Stack) -> Vec<u64> {
    let mut section = DebugFrame::new(&code.frames, LittleEndian);
    section.set_address_size(8);
    let mut context = UnwindContext::new();
    let mut known = numbered(&registers.frame);
    let mut addresses = vec![registers.frame.rip];
    while addresses.len() < MAX_FRAMES {
        let caller = caller(code, &section, &mut context, &known, addresses.len() > 1, stack);
        let Some((registers, address)) = caller else { break };
        known = registers;
        addresses.push(address);
    }
    addresses
}

/// Register values by DWARF register number.
type Known = BTreeMap<u16, u64>;

/// The caller's registers and the return address, from the registers `known` in the callee.
fn caller(
    code: &UnwindInfo,
    section: &DebugFrame<addr2line::gimli::EndianSlice<'_, LittleEndian>>,
    context: &mut UnwindContext<usize>,
    known: &Known,
    is_call: bool,
    stack: &Stack,
) -> Option<(Known, u64)> {
    let address = known.get(&X86_64::RA.0)? - u64::from(is_call);
    let address = code.in_file(address)?;
    let bases = BaseAddresses::default();
    let row = section
        .unwind_info_for_address(&bases, context, address, DebugFrame::cie_from_offset)
        .ok()?;
    let CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return None };
    let frame = known.get(&register.0)?.checked_add_signed(*offset)?;
    let mut caller = known.clone();
    for (Register(register), rule) in row.registers() {
        let saved = match rule {
            RegisterRule::Offset(offset) => stack.word(frame.checked_add_signed(*offset)?),
            RegisterRule::SameValue => continue,
            _ => None,
        };
        match saved {
            Some(value) => _ = caller.insert(*register, value),
            None => _ = caller.remove(register),
        }
    }
    caller.insert(X86_64::RSP.0, frame);
    let address = *caller.get(&X86_64::RA.0)?;
    // The kernel's entry has no caller.
    code.in_file(address.checked_sub(1)?)?;
    Some((caller, address))
}

fn numbered(r: &Frame) -> Known {
    let general = [
        r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12,
        r.r13, r.r14, r.r15, r.rip,
    ];
    (0..).zip(general).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_stack_make_one_copy() {
        let mut stack = Stack::default();
        stack.push(0x1000, &7_u64.to_le_bytes());
        stack.push(0x1008, &8_u64.to_le_bytes());
        assert_eq!(
            [0xff8, 0x1000, 0x1008, 0x1009].map(|at| stack.word(at)),
            [None, Some(7), Some(8), None]
        );
        stack.push(0x2000, &9_u64.to_le_bytes());
        assert_eq!((stack.word(0x1000), stack.word(0x2000)), (None, Some(9)));
    }
}
