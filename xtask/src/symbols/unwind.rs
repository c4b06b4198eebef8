//! Unwinds a stack of the kernel or of a program: from a thread's registers and a copy of its stack
//! to the return addresses.
//!
//! The kernel has no frame pointers, which would cost the overflow path some 25 instructions per
//! switch, and most programs have none. For each instruction, the section `.debug_frame`, or a
//! program's `.eh_frame`, has the start of its function's frame and the places of the caller's
//! saved registers (DWARF 5, section 6.4; System V ABI for AMD64, section 4.2.4). The kernel sends
//! the stack, and the host unwinds it.

use std::{cell::OnceCell, collections::BTreeMap, ops::Range};

use addr2line::gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EndianSlice, LittleEndian, Register,
    RegisterRule, UnwindContext, UnwindOffset, UnwindSection, X86_64,
};
use tally_abi::registers::Frame;

/// Method of finding the callers of a program's function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CallGraph {
    /// By the file's unwind information, as the compiler writes it.
    #[default]
    Dwarf,
    /// By the chain of frame pointers of a program that was compiled with them.
    Fp,
}

/// A file's unwind information for its functions.
pub(super) enum FrameSection {
    /// The section `.debug_frame`.
    Debug(Vec<u8>),
    /// The section `.eh_frame`, and the addresses of this section and of `.text`, to which its
    /// addresses are relative.
    Eh(Vec<u8>, BaseAddresses),
}

/// The code of the kernel or a program in its file, with its unwind information.
pub(super) struct UnwindInfo {
    /// Unwind information.
    pub(super) frames: FrameSection,
    /// The addresses of code in the file.
    pub(super) range: Range<u64>,
    /// Distance between loaded addresses and the file's addresses.
    pub(super) base: u64,
    /// The functions in `frames`, once they were asked for.
    functions: OnceCell<Vec<Function>>,
}

/// A function in a file's unwind information.
struct Function {
    /// Addresses in the file.
    range: Range<u64>,
    /// Offset of its description in the section.
    offset: usize,
}

/// Bytes of a section.
type Slice<'a> = EndianSlice<'a, LittleEndian>;

impl UnwindInfo {
    /// The unwind information of the code at `range`.
    pub(super) fn new(frames: FrameSection, range: Range<u64>, base: u64) -> UnwindInfo {
        UnwindInfo { frames, range, base, functions: OnceCell::new() }
    }

    /// The offset in `section` of the function at an address in the file.
    fn function<'a, S>(&self, section: &S, bases: &BaseAddresses, address: u64) -> Option<usize>
    where
        S: UnwindSection<Slice<'a>>,
    {
        let functions = self.functions.get_or_init(|| functions(section, bases));
        let behind = functions.partition_point(|function| function.range.start <= address);
        let function = functions[..behind].last()?;
        function.range.contains(&address).then_some(function.offset)
    }

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
    /// Makes an empty copy that begins at an address.
    pub fn at(start: u64) -> Stack {
        Stack { start, bytes: Vec::new() }
    }

    /// The address after the last byte.
    pub fn end(&self) -> u64 {
        self.start.wrapping_add(self.bytes.len() as u64)
    }

    /// Appends the next piece. A piece that does not start at the end of the last one starts a new
    /// copy.
    pub fn push(&mut self, address: u64, bytes: &[u8]) {
        if address != self.end() {
            *self = Stack::at(address);
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

/// The address at which the thread stopped, then the return addresses, innermost first, `most` at
/// most. `code` finds the code with an address.
pub(super) fn addresses<'a>(
    code: &dyn Fn(u64) -> Option<&'a UnwindInfo>,
    registers: &Frame,
    stack: &Stack,
    by: CallGraph,
    most: usize,
) -> Vec<u64> {
    let mut known = numbered(registers);
    let mut addresses = vec![registers.rip];
    while addresses.len() < most {
        let is_call = addresses.len() > 1;
        let caller = match by {
            CallGraph::Fp => caller_by_frame_pointer(&known, stack),
            CallGraph::Dwarf => caller_by_rules(code, &known, is_call, stack),
        };
        // The entry point of the kernel or a program has no caller.
        let caller = caller
            .filter(|(_, address)| address.checked_sub(1).is_some_and(|call| code(call).is_some()));
        let Some((registers, address)) = caller else { break };
        known = registers;
        addresses.push(address);
    }
    addresses
}

/// Register values by DWARF register number.
type Known = BTreeMap<u16, u64>;

/// The caller's registers and the return address, by the unwind information of the file with the
/// callee.
fn caller_by_rules<'a>(
    code: &dyn Fn(u64) -> Option<&'a UnwindInfo>,
    known: &Known,
    is_call: bool,
    stack: &Stack,
) -> Option<(Known, u64)> {
    let address = known.get(&X86_64::RA.0)?.checked_sub(u64::from(is_call))?;
    let of = code(address)?;
    let address = of.in_file(address)?;
    match &of.frames {
        FrameSection::Debug(bytes) => {
            let mut section = DebugFrame::new(bytes, LittleEndian);
            section.set_address_size(8);
            caller(of, (&section, &BaseAddresses::default()), known, address, stack)
        }
        FrameSection::Eh(bytes, bases) => {
            let mut section = EhFrame::new(bytes, LittleEndian);
            section.set_address_size(8);
            caller(of, (&section, bases), known, address, stack)
        }
    }
}

/// The functions of a section up to its end or its first error, by address.
fn functions<'a, S: UnwindSection<Slice<'a>>>(section: &S, bases: &BaseAddresses) -> Vec<Function> {
    let (mut entries, mut functions) = (section.entries(bases), Vec::new());
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(function) = partial.parse(S::cie_from_offset) else { break };
        let start = function.initial_address();
        let range = start..start.saturating_add(function.len());
        functions.push(Function { range, offset: function.offset() });
    }
    functions.sort_by_key(|function| function.range.start);
    functions
}

/// The caller's registers and the return address, from the registers `known` in the callee at
/// `address` in its file.
fn caller<'a, S: UnwindSection<Slice<'a>>>(
    of: &UnwindInfo,
    (section, bases): (&S, &BaseAddresses),
    known: &Known,
    address: u64,
    stack: &Stack,
) -> Option<(Known, u64)>
where
    S::Offset: UnwindOffset<usize> + From<usize>,
{
    let offset = of.function(section, bases, address)?.into();
    let function = section.fde_from_offset(bases, offset, S::cie_from_offset).ok()?;
    let mut context = UnwindContext::new();
    let row = function.unwind_info_for_address(section, bases, &mut context, address).ok()?;
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
    Some((caller, address))
}

/// The caller's registers and the return address, by frame pointers: RBP has the address of the
/// caller's RBP, and the return address follows it. The caller's other registers are unknown, and
/// not needed.
fn caller_by_frame_pointer(known: &Known, stack: &Stack) -> Option<(Known, u64)> {
    const WORD: u64 = size_of::<u64>() as u64;
    let frame = *known.get(&X86_64::RBP.0)?;
    let (saved, address) = (stack.word(frame)?, stack.word(frame.checked_add(WORD)?)?);
    // Frames of callers are at higher addresses: any other value is no frame pointer.
    (saved > frame || saved == 0).then(|| (Known::from([(X86_64::RBP.0, saved)]), address))
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
