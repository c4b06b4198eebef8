//! Resolves addresses of the kernel or a program to functions and lines, with the debug information
//! of its file; without that, to functions with its symbols.

mod debug_files;
mod frames;
mod names;
mod stack;
mod stubs;
#[cfg(test)]
mod tests;
mod unwind;

use std::{
    fmt,
    path::{Path, PathBuf},
};

use object::{Object, ObjectSegment};
use serde::{Serialize, Serializer};
use tally_abi::{
    ExitStatus,
    boot::KERNEL_BASE,
    registers::{Frame, Registers},
};

pub(crate) use self::names::{Mark, demangled, functions_of};
use self::{frames::UnwindInfo, names::Names};
pub use self::{
    names::Place,
    stack::Stack,
    unwind::{CallGraph, StackAddress},
};
use crate::{Failure, Result, output, project, visible::visible};

/// Maximum levels of a backtrace of the kernel; a recursion that overflows the stack has
/// thousands.
const MAX_FRAMES: usize = 64;
/// Maximum levels of a program's stack: `PERF_MAX_STACK_DEPTH` of Linux.
const MAX_CALLERS: usize = 127;

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
    /// Functions and lines by the separate debug file, if there is one, and by the file itself.
    names: Vec<Names>,
    code: UnwindInfo,
}

impl Symbols {
    /// Reads the kernel's file.
    ///
    /// # Errors
    /// The file cannot be read, or has no unwind information.
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
    /// `bytes` is its content. Its separate debug file is used if it has one.
    ///
    /// # Errors
    /// The file is no ELF file.
    pub fn loaded(path: &Path, bytes: &[u8], base: u64) -> Result<Symbols> {
        Symbols::with(path, bytes, base, None)
    }

    /// The symbols as [`Symbols::loaded`] reads them, with `debug` as the separate debug file.
    ///
    /// # Errors
    /// The reasons of [`Symbols::loaded`].
    pub fn with(path: &Path, bytes: &[u8], base: u64, debug: Option<PathBuf>) -> Result<Symbols> {
        let file = elf(path, bytes)?;
        let system = Path::new(debug_files::SYSTEM);
        let debug = debug.or_else(|| debug_files::separate(path, &file, system));
        let mut names = Vec::new();
        let code = if let Some(debug) = debug {
            let bytes = project::read(&debug)?;
            let parsed = elf(&debug, &bytes)?;
            names.push(read_names(&debug, &parsed));
            UnwindInfo::read(&file, Some(&parsed), base)
        } else {
            UnwindInfo::read(&file, None, base)
        };
        names.push(read_names(path, &file));
        if names.iter().all(Names::is_empty) {
            output::note_once(format_args!(
                "xtask: {} has no symbols: add --symbols FILE with those of the same build",
                path.display(),
            ));
        }
        Ok(Symbols { names, code })
    }

    /// The file with the symbols, if it is another one.
    pub(crate) fn debug_file(&self) -> Option<&Path> {
        let [debug, _] = &*self.names else { return None };
        Some(&debug.path)
    }

    /// Returns whether the address of the running code is in this file.
    pub fn contains(&self, address: u64) -> bool {
        self.code.in_file(address).is_some()
    }

    /// The functions of the instruction at an address of the running code: the inlined ones,
    /// innermost first, and the one they were inlined into. Empty if the address is not in code.
    pub fn places(&self, address: u64) -> Vec<Place> {
        let Some(in_file) = self.code.in_file(address) else { return Vec::new() };
        let mut by_file = self.names.iter().map(|names| names.places(in_file, self.code.base));
        by_file.find(|places| !places.is_empty()).unwrap_or_default()
    }

    /// All symbols of the function that begins at an address of the running code, if there are
    /// several.
    pub(crate) fn aliases(&self, address: u64) -> &[String] {
        let in_file = self.code.in_file(address);
        let mut by_file = self.names.iter().filter_map(|names| names.aliases.get(&in_file?));
        by_file.next().map_or(&[], Vec::as_slice)
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

/// Returns whether a file has the debug information of another one, and no code.
pub(crate) fn is_debug_only(file: &object::File<'_>) -> bool {
    let mut code = file.segments().filter(|segment| segment.permissions().executable());
    code.all(|segment| segment.data().is_ok_and(<[u8]>::is_empty))
}

/// Checks that a file is one that can have symbols.
///
/// # Errors
/// The file cannot be read, or is no ELF file.
pub(crate) fn check(path: &Path) -> Result<()> {
    elf(path, &project::read(path)?).map(drop)
}

fn elf<'a>(path: &Path, bytes: &'a [u8]) -> Result<object::File<'a>> {
    object::File::parse(bytes).map_err(|error| unreadable(path, ExitStatus::NotRunnable, &error))
}

/// Reads the functions and lines of a file.
fn read_names(path: &Path, file: &object::File<'_>) -> Names {
    let shared = debug_files::shared(path, file, Path::new(debug_files::SYSTEM));
    debug_files::note_missing_parts(path, file);
    Names::read(path, file, shared)
}

fn unreadable(path: &Path, status: ExitStatus, why: &dyn fmt::Display) -> Failure {
    Failure::new(
        status,
        format!("cannot read the symbols in {}: {}", path.display(), visible(&why.to_string())),
    )
}
