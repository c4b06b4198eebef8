//! The rules by which a file's unwind information finds a caller: the sections `.eh_frame` and
//! `.debug_frame`, and the code that returns from a signal's handler.
//!
//! For each instruction a section has the start of its function's frame (the canonical frame
//! address, CFA) and the places of the caller's saved registers, as an offset or as an expression
//! (DWARF 5, section 6.4; System V ABI for AMD64, section 4.2.4).

use std::{cell::OnceCell, collections::BTreeMap, ops::Range};

use addr2line::gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, Encoding, EndianSlice, EvaluationResult,
    Expression, FrameDescriptionEntry, LittleEndian, Location, Register, RegisterRule,
    UnwindContext, UnwindExpression, UnwindOffset, UnwindSection, Value, X86_64,
};
use object::{Object, ObjectSection, ObjectSegment};

use super::stack::Stack;

/// Maximum steps of an expression, which may contain loops.
const MAX_STEPS: u32 = 1000;
/// End of the code that returns from a signal's handler: the number of `rt_sigreturn` in the
/// instruction that loads it into EAX or RAX, and `syscall`.
const SIGNAL_RETURN: [u8; 6] = [0x0f, 0, 0, 0, 0x0f, 0x05];
/// The instruction's bytes before the number: `mov $15, %rax` and `mov $15, %eax`.
const LOADS: [&[u8]; 2] = [&[0x48, 0xc7, 0xc0], &[0xb8]];
/// Offset of the interrupted registers from the stack pointer there: Linux's `struct ucontext`,
/// arch/x86/include/uapi/asm/sigcontext.h.
const SAVED_OFFSET: u64 = 40;
/// The interrupted registers in their order there, by DWARF register number.
const SAVED: [u16; 17] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16];

/// Register values by DWARF register number.
pub(super) type Known = BTreeMap<u16, u64>;

/// The caller of a function.
pub(super) struct Caller {
    /// The caller's registers, as far as they are known.
    pub(super) registers: Known,
    /// The return address.
    pub(super) address: u64,
    /// Whether a signal interrupted the caller: the callee is the code that returns from the
    /// handler, and the address is the interrupted instruction's.
    pub(super) is_interrupted: bool,
}

/// The code of the kernel or a program in its file, with its unwind information.
pub(super) struct UnwindInfo {
    sections: Vec<FrameSection>,
    /// Addresses in the file of code that returns from a signal's handler.
    signal_returns: Vec<u64>,
    /// The addresses of code in the file.
    range: Range<u64>,
    /// Distance between loaded addresses and the file's addresses.
    pub(super) base: u64,
}

/// A section with unwind information.
struct FrameSection {
    bytes: Vec<u8>,
    /// The addresses of this section and of `.text`, to which its addresses are relative; `None`
    /// of `.debug_frame`.
    bases: Option<BaseAddresses>,
    /// The functions in the section, once they were asked for.
    functions: OnceCell<Vec<Function>>,
}

/// A function in a section.
struct Function {
    /// Addresses in the file.
    range: Range<u64>,
    /// Offset of its description in the section.
    offset: usize,
}

/// Bytes of a section.
type Slice<'a> = EndianSlice<'a, LittleEndian>;

impl UnwindInfo {
    /// Reads the unwind information of a file that is loaded at `base`, and that of its separate
    /// debug file. A section that cannot be decompressed is left out.
    pub(super) fn read(
        file: &object::File<'_>,
        debug: Option<&object::File<'_>>,
        base: u64,
    ) -> UnwindInfo {
        let code = || file.segments().filter(|segment| segment.permissions().executable());
        let start = code().map(|segment| segment.address()).min().unwrap_or_default();
        let end = code().map(|segment| segment.address().saturating_add(segment.size())).max();
        let mut sections = Vec::new();
        sections.extend(FrameSection::exceptions(file));
        for file in [Some(file), debug].into_iter().flatten() {
            sections.extend(FrameSection::debug(file));
        }
        let signal_returns = code().flat_map(|segment| {
            let (address, bytes) = (segment.address(), segment.data().unwrap_or_default());
            signal_returns(bytes).map(move |offset| address.wrapping_add(offset))
        });
        let signal_returns = signal_returns.collect();
        let range = start..end.unwrap_or_default();
        UnwindInfo { sections, signal_returns, range, base }
    }

    /// Returns whether there is unwind information.
    pub(super) fn can_unwind(&self) -> bool {
        !self.sections.is_empty()
    }

    /// The address in the file of code at this address of the running kernel or program.
    pub(super) fn in_file(&self, address: u64) -> Option<u64> {
        address.checked_sub(self.base).filter(|address| self.range.contains(address))
    }

    /// The caller of the function that has the registers `known`. `call` is 1 if the function
    /// called another one, as its address may then be behind its last instruction.
    pub(super) fn caller(&self, known: &Known, call: u64, stack: &Stack) -> Option<Caller> {
        let address = *known.get(&X86_64::RA.0)?;
        let in_call = self.in_file(address.checked_sub(call)?)?;
        let of = |section: &FrameSection| section.caller(known, in_call, stack);
        let by_section = self.sections.iter().find_map(of);
        let is_signal_return = || self.signal_returns.contains(&address.wrapping_sub(self.base));
        by_section.or_else(|| is_signal_return().then(|| interrupted(known, stack)).flatten())
    }
}

/// Offsets in code of what returns from a signal's handler.
fn signal_returns(code: &[u8]) -> impl Iterator<Item = u64> {
    let ends = code.windows(SIGNAL_RETURN.len()).enumerate();
    let ends = ends.filter(|(_, bytes)| *bytes == SIGNAL_RETURN).map(|(offset, _)| offset);
    ends.filter_map(|end| {
        let load = LOADS.iter().find(|load| code[..end].ends_with(load))?;
        Some((end - load.len()) as u64)
    })
}

/// The thread that a signal interrupted, from the registers that the kernel saved on the stack of
/// the handler.
fn interrupted(known: &Known, stack: &Stack) -> Option<Caller> {
    let saved = known.get(&X86_64::RSP.0)?.checked_add(SAVED_OFFSET)?;
    let words =
        (0..).step_by(size_of::<u64>()).map(|offset| stack.word(saved.checked_add(offset)?));
    let words = SAVED.into_iter().zip(words).map(|(register, word)| Some((register, word?)));
    let registers: Known = words.collect::<Option<_>>()?;
    let address = *registers.get(&X86_64::RA.0)?;
    Some(Caller { registers, address, is_interrupted: true })
}

impl FrameSection {
    /// The section `.eh_frame`, if the file has it.
    fn exceptions(file: &object::File<'_>) -> Option<FrameSection> {
        let address =
            |name: &str| file.section_by_name(name).map_or(0, |section| section.address());
        let bases = BaseAddresses::default()
            .set_eh_frame(address(".eh_frame"))
            .set_text(address(".text"))
            .set_got(address(".got"));
        FrameSection::named(file, ".eh_frame", Some(bases))
    }

    /// The section `.debug_frame`, if the file has it.
    fn debug(file: &object::File<'_>) -> Option<FrameSection> {
        FrameSection::named(file, ".debug_frame", None)
    }

    fn named(
        file: &object::File<'_>,
        name: &str,
        bases: Option<BaseAddresses>,
    ) -> Option<FrameSection> {
        let bytes = file.section_by_name(name)?.uncompressed_data().ok()?.into_owned();
        Some(FrameSection { bytes, bases, functions: OnceCell::new() })
    }

    /// The caller of the function at `address` in the file, which has the registers `known`.
    fn caller(&self, known: &Known, address: u64, stack: &Stack) -> Option<Caller> {
        if let Some(bases) = &self.bases {
            let mut section = EhFrame::new(&self.bytes, LittleEndian);
            section.set_address_size(8);
            return self.caller_by(&section, bases, known, address, stack);
        }
        let mut section = DebugFrame::new(&self.bytes, LittleEndian);
        section.set_address_size(8);
        self.caller_by(&section, &BaseAddresses::default(), known, address, stack)
    }

    fn caller_by<'a, S: UnwindSection<Slice<'a>>>(
        &self,
        section: &S,
        bases: &BaseAddresses,
        known: &Known,
        address: u64,
        stack: &Stack,
    ) -> Option<Caller>
    where
        S::Offset: UnwindOffset<usize> + From<usize>,
    {
        let functions = self.functions.get_or_init(|| functions(section, bases));
        let behind = functions.partition_point(|function| function.range.start <= address);
        let function = functions[..behind].last().filter(|of| of.range.contains(&address))?;
        let offset = function.offset.into();
        let function = section.fde_from_offset(bases, offset, S::cie_from_offset).ok()?;
        let encoding = function.cie().encoding();
        let frame = Frame { section, encoding, known, stack };
        let registers = frame.registers_of_caller(&function, bases, address)?;
        let address = *registers.get(&X86_64::RA.0)?;
        Some(Caller { registers, address, is_interrupted: function.is_signal_trampoline() })
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

/// A function's frame, with what its rules refer to.
struct Frame<'a, S> {
    section: &'a S,
    encoding: Encoding,
    /// Registers in the function.
    known: &'a Known,
    stack: &'a Stack,
}

impl<'a, 's, S: UnwindSection<Slice<'a>>> Frame<'s, S> {
    /// The caller's registers, by the rules of a function for one of its addresses.
    fn registers_of_caller(
        &self,
        function: &FrameDescriptionEntry<Slice<'a>>,
        bases: &BaseAddresses,
        address: u64,
    ) -> Option<Known> {
        let mut context = UnwindContext::new();
        let row = function.unwind_info_for_address(self.section, bases, &mut context, address);
        let row = row.ok()?;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.known.get(&register.0)?.checked_add_signed(*offset)?
            }
            CfaRule::Expression(expression) => self.evaluate(expression, None)?,
        };
        let mut caller = self.known.clone();
        caller.insert(X86_64::RSP.0, cfa);
        for (Register(register), rule) in row.registers() {
            match self.value(rule, *register, cfa) {
                Some(value) => _ = caller.insert(*register, value),
                None => _ = caller.remove(register),
            }
        }
        Some(caller)
    }

    /// The value in the caller of a register, by its rule.
    fn value(&self, rule: &RegisterRule<usize>, register: u16, cfa: u64) -> Option<u64> {
        match rule {
            RegisterRule::SameValue => self.known.get(&register).copied(),
            RegisterRule::Register(of) => self.known.get(&of.0).copied(),
            RegisterRule::Offset(offset) => self.stack.word(cfa.checked_add_signed(*offset)?),
            RegisterRule::ValOffset(offset) => cfa.checked_add_signed(*offset),
            RegisterRule::Expression(of) => self.stack.word(self.evaluate(of, Some(cfa))?),
            RegisterRule::ValExpression(of) => self.evaluate(of, Some(cfa)),
            RegisterRule::Constant(value) => Some(*value),
            _ => None,
        }
    }

    /// The value of an expression; `None` if it refers to a register or memory that is not known.
    /// `first` is what it finds on its stack: the CFA, for the rule of a register.
    fn evaluate(&self, of: &UnwindExpression<usize>, first: Option<u64>) -> Option<u64> {
        let Expression(bytes) = of.get(self.section).ok()?;
        let mut evaluation = Expression(bytes).evaluation(self.encoding);
        evaluation.set_max_iterations(MAX_STEPS);
        if let Some(first) = first {
            evaluation.set_initial_value(first);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let value = self.stack.value(address, size)?;
                    evaluation.resume_with_memory(Value::Generic(value)).ok()?
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = *self.known.get(&register.0)?;
                    evaluation.resume_with_register(Value::Generic(value)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.as_result() {
            [piece] => match piece.location {
                Location::Address { address } => Some(address),
                _ => None,
            },
            _ => None,
        }
    }
}
