//! The instructions of a function of a program's file.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter, Mnemonic, OpKind};
use object::{Object, ObjectSection};
use tally_abi::ExitStatus;

use crate::{
    Failure, Result, project,
    recording::LoadedFile,
    symbols::{demangled, functions_of},
    visible::visible,
};

/// Bitness of the code.
const BITS: u32 = 64;

/// A function, with addresses of the running program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    /// Symbol of the function.
    symbol: String,
    /// First address.
    pub(super) start: u64,
    /// End address.
    pub(super) end: u64,
}

impl Function {
    /// The demangled name.
    pub(super) fn name(&self) -> String {
        visible(&demangled(&self.symbol)).into_owned()
    }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    pub(super) step: Step,
    /// Text in AT&T syntax, as printed by perf annotate and objdump.
    pub(super) text: String,
}

/// An instruction, and where execution goes from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Address in the running program.
    pub(super) address: u64,
    /// Target of a direct call.
    pub(super) calls: Option<u64>,
    /// Target of a direct jump.
    pub(super) jumps: Option<u64>,
    /// Whether it is a call of a function that a register or memory names.
    pub(super) calls_any: bool,
    /// Whether the instruction behind it can be the next to run.
    pub(super) falls_through: bool,
}

impl Step {
    /// Makes an instruction behind which nothing runs.
    #[cfg(test)]
    pub(super) fn at(address: u64) -> Step {
        Step { address, calls: None, jumps: None, calls_any: false, falls_through: false }
    }

    /// Returns whether only the instruction behind it can be the next to run.
    pub(super) fn goes_on(&self) -> bool {
        self.falls_through && self.jumps.is_none()
    }

    fn of(instruction: &iced_x86::Instruction) -> Step {
        let is_direct = instruction.op0_kind() == OpKind::NearBranch64;
        let is_call = instruction.mnemonic() == Mnemonic::Call;
        let target = |wanted: bool| (is_direct && wanted).then(|| instruction.near_branch_target());
        let flow = instruction.flow_control();
        Step {
            address: instruction.ip(),
            calls: target(is_call),
            jumps: target(!is_call),
            calls_any: is_call && !is_direct,
            falls_through: matches!(flow, FlowControl::Next | FlowControl::ConditionalBranch),
        }
    }
}

/// Bytes of the first instructions of a stub: a mark of an indirect branch's target, and a jump.
const STUB_BYTES: usize = 16;

/// The code of a program's file.
pub(super) struct Code {
    bytes: Vec<u8>,
    /// Addresses of the file's sections, each with the place of its first byte.
    sections: Vec<(Range<u64>, usize)>,
    /// Distance between loaded addresses and the file's addresses.
    base: u64,
    functions: Vec<Function>,
}

impl Code {
    /// Reads the functions of a file that the symbols of its debug file name, or its own, in the
    /// order of addresses: of a stripped library those that it offers.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn read(of: &LoadedFile) -> Result<Code> {
        let (base, bytes) = (of.base, project::read(&of.path)?);
        let debug = of.debug_file().map(project::read).transpose()?;
        let file = object::File::parse(&**debug.as_ref().unwrap_or(&bytes)).map_err(|error| {
            let why = visible(&error.to_string()).into_owned();
            let why = format!("cannot read the functions of {}: {why}", of.path.display());
            Failure::new(ExitStatus::NotRunnable, why)
        })?;
        let function = |(of, symbol): (Range<u64>, String)| {
            let [start, end] = [of.start, of.end].map(|at| base.wrapping_add(at));
            Function { symbol, start, end }
        };
        let functions = functions_of(&file).into_iter().map(function).collect();
        drop(file);
        Ok(Code { sections: sections(&bytes), bytes, base, functions })
    }

    /// The function at an address.
    pub(super) fn at(&self, address: u64) -> Option<&Function> {
        let behind = self.functions.partition_point(|of| of.start <= address);
        self.functions[..behind].last().filter(|of| address < of.end)
    }

    /// The instructions of a function; empty if the file does not have its bytes.
    pub(super) fn instructions(&self, of: &Function) -> Vec<Instruction> {
        let mut formatter = GasFormatter::new();
        let options = formatter.options_mut();
        options.set_first_operand_char_index(8);
        options.set_uppercase_hex(false);
        options.set_branch_leading_zeros(false);
        let instruction = |instruction: iced_x86::Instruction| {
            let mut text = String::new();
            formatter.format(&instruction, &mut text);
            Instruction { step: Step::of(&instruction), text }
        };
        self.decoder(of).into_iter().map(instruction).collect()
    }

    /// The instructions of a function with their calls; empty if the file does not have its bytes.
    pub(super) fn steps(&self, of: &Function) -> Vec<Step> {
        self.decoder(of).iter().map(|of| Step::of(&of)).collect()
    }

    /// Returns whether the code at an address is a stub, which jumps to a function that memory
    /// names: one of a library, or one that was chosen for the processor when the program began.
    pub(super) fn is_stub(&self, address: u64) -> bool {
        let bytes = self.section(address).unwrap_or_default();
        let bytes = &bytes[..bytes.len().min(STUB_BYTES)];
        let mut code = Decoder::with_ip(BITS, bytes, address, DecoderOptions::NONE);
        let first = code.iter().find(|of| of.mnemonic() != Mnemonic::Endbr64);
        first.is_some_and(|of| of.mnemonic() == Mnemonic::Jmp && of.op0_kind() == OpKind::Memory)
    }

    /// A decoder of a function's bytes, or of none.
    fn decoder(&self, of: &Function) -> Decoder<'_> {
        let bytes = self.section(of.start).unwrap_or_default();
        let bytes = bytes.get(..(of.end - of.start) as usize).unwrap_or_default();
        Decoder::with_ip(BITS, bytes, of.start, DecoderOptions::NONE)
    }

    /// The bytes from an address to the end of its section.
    fn section(&self, address: u64) -> Option<&[u8]> {
        let start = address.wrapping_sub(self.base);
        let (of, place) = self.sections.iter().find(|(of, _)| of.contains(&start))?;
        let at = |address: u64| place + (address - of.start) as usize;
        self.bytes.get(at(start)..at(of.end))
    }
}

/// Addresses of the sections with bytes in a file, each with the place of its first byte.
fn sections(bytes: &[u8]) -> Vec<(Range<u64>, usize)> {
    let file = object::File::parse(bytes).ok();
    let sections = file.iter().flat_map(|file| file.sections());
    let section = |of: object::Section<'_, '_>| {
        let (place, size) = of.file_range()?;
        let is_loaded = of.address() != 0;
        is_loaded.then(|| (of.address()..of.address().saturating_add(size), place as usize))
    };
    sections.filter_map(section).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use object::ObjectSymbol;

    use super::*;

    /// Calls of a function that a register names, of a stub, and of a function.
    const SOURCE: &str = "
        .globl _start
        _start: call *%rax
        call stub
        call plain
        jmp *target(%rip)
        stub: endbr64
        jmp *target(%rip)
        plain: ret
        .data
        target: .quad plain";

    #[test]
    fn calls_name_a_function_or_any() {
        let folder = std::env::temp_dir().join(format!("tally-code-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("calls.s"), SOURCE.to_owned() + "\n").unwrap();
        let words = ["-nostdlib", "-static", "-no-pie", "-o", "calls", "calls.s"];
        let made = Command::new("cc").args(words).current_dir(&folder).status().unwrap();
        let bytes = std::fs::read(folder.join("calls")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(made.success());
        let file = object::File::parse(&*bytes).unwrap();
        let of = |name| file.symbols().find(|of| of.name() == Ok(name)).unwrap().address();
        let [start, stub, plain] = ["_start", "stub", "plain"].map(of);
        let (sections, functions) = (sections(&bytes), Vec::new());
        let code = Code { bytes: bytes.clone(), sections, base: 0, functions };
        let function = Function { symbol: "_start".into(), start, end: stub };
        let steps = code.steps(&function);
        let calls: Vec<_> = steps.iter().map(|step| (step.calls, step.calls_any)).collect();
        let expected = [(None, true), (Some(stub), false), (Some(plain), false), (None, false)];
        assert_eq!(calls, expected);
        assert_eq!([start, stub, plain].map(|at| code.is_stub(at)), [false, true, false]);
    }
}
