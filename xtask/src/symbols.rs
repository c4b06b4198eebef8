//! Resolves addresses of the kernel or a program to functions and lines, with the debug information
//! of its file; without that, to functions with its symbols.

mod frames;
mod stack;
#[cfg(test)]
mod tests;
mod unwind;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::Path,
};

use addr2line::Loader;
use object::{Object, ObjectSymbol, SymbolKind};
use serde::{Serialize, Serializer};
use tally_abi::{
    ExitStatus,
    boot::KERNEL_BASE,
    registers::{Frame, Registers},
};

use self::frames::UnwindInfo;
pub use self::{
    stack::Stack,
    unwind::{CallGraph, StackAddress},
};
use crate::{
    Failure, Result,
    project::{self, Project},
    visible::visible,
};

/// Maximum levels of a backtrace of the kernel; a recursion that overflows the stack has
/// thousands.
const MAX_FRAMES: usize = 64;
/// Maximum levels of a program's stack: `PERF_MAX_STACK_DEPTH` of Linux.
const MAX_CALLERS: usize = 127;

/// A function and a line in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The function, with its path.
    pub function: String,
    /// File of the line, relative to the project's folder if it is inside.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.function)?;
        if let Some(file) = &self.file {
            write!(f, " at {file}")?;
        }
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// A level of a backtrace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StackFrame {
    /// The return address, or the address of the instruction that raised the exception.
    #[serde(serialize_with = "hexadecimal")]
    pub address: u64,
    /// Functions at the address: the inlined ones, innermost first, and the one they were inlined
    /// into.
    pub places: Vec<Place>,
}

impl fmt::Display for StackFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.address)?;
        for (i, place) in self.places.iter().enumerate() {
            let between = if i == 0 { " " } else { "\n     inlined into " };
            write!(f, "{between}{place}")?;
        }
        Ok(())
    }
}

fn hexadecimal<S: Serializer>(address: &u64, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{address:#x}"))
}

/// The debug information of the file of the kernel or of a program.
pub struct Symbols {
    loader: Loader,
    /// Names of static functions that several source files have.
    repeated: BTreeSet<String>,
    code: UnwindInfo,
}

impl Symbols {
    /// Reads the kernel's file.
    ///
    /// # Errors
    /// The file cannot be read, or has no debug information.
    pub fn read(kernel: &Path) -> Result<Symbols> {
        let bytes = project::read(kernel)?;
        let symbols = Symbols::loaded(kernel, &bytes, KERNEL_BASE)?;
        if !symbols.code.can_unwind() {
            let why = "it has no unwind information";
            return Err(unreadable(kernel, ExitStatus::HostError, &why));
        }
        Ok(symbols)
    }

    /// The symbols, which may be missing, of the file of a program or a library, loaded at `base`.
    /// `bytes` is its content.
    ///
    /// # Errors
    /// The file is no ELF file, or its debug information cannot be read.
    pub fn loaded(path: &Path, bytes: &[u8], base: u64) -> Result<Symbols> {
        let failed = |why: &dyn fmt::Display| unreadable(path, ExitStatus::HostError, why);
        let file = object::File::parse(bytes)
            .map_err(|error| unreadable(path, ExitStatus::NotRunnable, &error))?;
        let loader = Loader::new(path).map_err(|error| failed(&error))?;
        let code = UnwindInfo::read(&file, None, base).map_err(|error| failed(&error))?;
        let repeated = repeated(&file);
        Ok(Symbols { loader, repeated, code })
    }

    /// Returns whether the address of the running code is in this file.
    pub fn contains(&self, address: u64) -> bool {
        self.code.in_file(address).is_some()
    }

    /// The functions of the instruction at an address of the running code: the inlined ones,
    /// innermost first, and the one they were inlined into. Empty if the address is not in code.
    pub fn places(&self, address: u64) -> Vec<Place> {
        let Some(probe) = self.code.in_file(address) else { return Vec::new() };
        let mut places = Vec::new();
        if let Ok(mut frames) = self.loader.find_frames(probe) {
            while let Ok(Some(frame)) = frames.next() {
                let Some(name) = frame.function.as_ref() else { continue };
                let Ok(demangled) = name.demangle() else { continue };
                let (file, line) = frame.location.map_or((None, None), |at| (at.file, at.line));
                let mut function = visible(&demangled).into_owned();
                if let Some(file) = file.filter(|_| self.repeated.contains(&*demangled)) {
                    let file = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
                    function = format!("{function} ({})", visible(&file));
                }
                places.push(Place { function, file: file.map(relative), line });
            }
        }
        if places.is_empty() {
            // Assembly has a symbol and no lines.
            let symbol = self.loader.find_symbol_info(probe);
            places.extend(symbol.map(|symbol| {
                let name = addr2line::demangle_auto(Cow::Borrowed(symbol.name()), None);
                let mut function = visible(&name).into_owned();
                if self.repeated.contains(source_name(symbol.name())) {
                    let address = self.code.base.wrapping_add(symbol.address());
                    function = format!("{function} ({address:#x})");
                }
                Place { function, file: None, line: None }
            }));
        }
        places
    }

    /// The function in which the kernel stopped and its callers, innermost first, as far as the
    /// copy of its stack extends.
    pub fn backtrace(&self, registers: &Registers, stack: &Stack) -> Vec<StackFrame> {
        let code = |address| Some(&self.code).filter(|code| code.in_file(address).is_some());
        let by = CallGraph::Dwarf;
        let addresses = unwind::addresses(&code, &registers.frame, stack, by, MAX_FRAMES);
        let frame = |of: StackAddress| {
            let places = self.places(of.in_instruction());
            StackFrame { address: of.address, places }
        };
        addresses.into_iter().map(frame).collect()
    }
}

/// The address at which a program's thread was sampled, then those of its callers, innermost first,
/// as far as the copy of its stack extends and the callers can be determined. `file` finds the
/// loaded file with an address.
pub fn stack_addresses<'a>(
    file: &dyn Fn(u64) -> Option<&'a Symbols>,
    registers: &Frame,
    stack: &Stack,
    by: CallGraph,
) -> Vec<StackAddress> {
    let code = |address| file(address).map(|symbols| &symbols.code);
    unwind::addresses(&code, registers, stack, by, MAX_CALLERS + 1)
}

/// A symbol's name without the suffix of a copy that the compiler made: `helper.constprop.0`.
fn source_name(symbol: &str) -> &str {
    symbol.split('.').next().unwrap_or_default()
}

/// The names of static functions that several source files have.
fn repeated(file: &object::File<'_>) -> BTreeSet<String> {
    let (mut source, mut sources) = ("", BTreeMap::new());
    let mut repeated = BTreeSet::new();
    // The local symbols of a source file follow the symbol with its name.
    for symbol in file.symbols().filter(|symbol| symbol.is_local()) {
        let Ok(name) = symbol.name() else { continue };
        match symbol.kind() {
            SymbolKind::File => source = name,
            SymbolKind::Text => {
                let name = source_name(name);
                if *sources.entry(name).or_insert(source) != source {
                    repeated.insert(name.to_owned());
                }
            }
            _ => {}
        }
    }
    repeated
}

fn unreadable(path: &Path, status: ExitStatus, why: &dyn fmt::Display) -> Failure {
    Failure::new(
        status,
        format!("cannot read the symbols in {}: {}", path.display(), visible(&why.to_string())),
    )
}

/// A file's path relative to the project's folder, if it is inside. Paths of guests begin with a
/// dot (`xtask/src/build/rustc.sh`).
fn relative(file: &str) -> String {
    let root = Project::here().root;
    let path = Path::new(file);
    let inside = path.strip_prefix(root).or_else(|_| path.strip_prefix("."));
    visible(&inside.unwrap_or(path).display().to_string()).into_owned()
}
