//! The functions in which samples were taken, by the files of `--symbols`.

use std::path::{Path, PathBuf};

use object::{Object, ObjectSegment, SegmentFlags};
use serde::Serialize;
use tally_abi::{ExitStatus, trace::SampleRecord};
use tally_elf::Program;

use super::Recording;
use crate::{
    Failure, Result, project,
    symbols::{CallGraph, Place, Symbols},
    visible::visible,
};

/// Name for a sample whose address is not known.
const NO_ADDRESS: &str = "[no address]";
/// Name for a sample in ring 0.
const KERNEL: &str = "[kernel]";

/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;

/// A part of a program's code, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeSegment {
    /// First address in the running program.
    pub(crate) start: u64,
    /// Length in bytes.
    pub(crate) bytes: u64,
    /// Offset in the file.
    pub(crate) file_offset: u64,
}

/// The file of a program.
pub(crate) struct ProgramFile {
    /// Name without folder.
    name: String,
    /// Path without links.
    pub(crate) path: PathBuf,
    /// Functions and lines.
    pub(crate) symbols: Symbols,
    /// Code of the program.
    pub(crate) code: Vec<CodeSegment>,
    /// The linker's build id; empty without one.
    pub(crate) build_id: Vec<u8>,
}

impl ProgramFile {
    fn read(path: &Path) -> Result<ProgramFile> {
        let symbols = Symbols::of_program(path)?;
        let bytes = project::read(path)?;
        let refused = |why: String| {
            let why = format!("cannot read the segments of {}: {}", path.display(), visible(&why));
            Failure::new(ExitStatus::NotRunnable, why)
        };
        let base = Program::parse(&bytes).map_err(|why| refused(why.into_owned()))?.base;
        let file = object::File::parse(&*bytes).map_err(|error| refused(error.to_string()))?;
        let is_code = |flags| match flags {
            SegmentFlags::Elf { p_flags } => p_flags & object::elf::PF_X != 0,
            _ => false,
        };
        let code = file.segments().filter(|segment| is_code(segment.flags())).map(|segment| {
            // Addresses of the program's segments may have any 64-bit value; a kernel never loads
            // such segments.
            let start = base.wrapping_add(segment.address());
            let before = start % PAGE_BYTES;
            let bytes = before.saturating_add(segment.size());
            CodeSegment {
                start: start - before,
                bytes: bytes.checked_next_multiple_of(PAGE_BYTES).unwrap_or(bytes),
                file_offset: segment.file_range().0.saturating_sub(before),
            }
        });
        let build_id = file.build_id().ok().flatten().unwrap_or_default().to_vec();
        let path = path.canonicalize().map_err(|error| Failure::io("read", path, &error))?;
        Ok(ProgramFile { name: name(&path), symbols, code: code.collect(), build_id, path })
    }
}

/// A level of a sample's stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Level {
    /// The sample's address, or the return address of a call.
    pub(crate) address: u64,
    /// The functions at the address, from the outermost one to the innermost one inlined into it.
    pub(crate) functions: Vec<String>,
}

/// The files of programs.
#[derive(Default)]
pub(crate) struct Symbolizer {
    files: Vec<ProgramFile>,
    by: CallGraph,
}

impl Symbolizer {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read or is no program.
    pub(crate) fn read(paths: &[PathBuf], by: CallGraph) -> Result<Symbolizer> {
        let files = paths.iter().map(|path| ProgramFile::read(path)).collect::<Result<_>>()?;
        Ok(Symbolizer { files, by })
    }

    /// The file of a program: the one of its name, or the only file if the trace has samples of one
    /// program.
    pub(crate) fn file(&self, of: &Recording, program: &str) -> Option<&ProgramFile> {
        let own = name(Path::new(program));
        if let Some(file) = self.files.iter().find(|file| file.name == own) {
            return Some(file);
        }
        let mut programs = of.records.samples.iter().map(|sample| of.program_of(sample.session).0);
        let first = programs.next()?;
        match &self.files[..] {
            [only] if programs.all(|program| program == first) => Some(only),
            _ => None,
        }
    }

    /// The functions of a sample, from the outermost one to the innermost one inlined into it.
    pub(crate) fn functions(&self, of: &Recording, sample: &SampleRecord) -> Vec<String> {
        if sample.address == 0 {
            return vec![NO_ADDRESS.to_owned()];
        }
        if !sample.user {
            return vec![KERNEL.to_owned()];
        }
        self.functions_at(of, sample, sample.address, 0)
    }

    /// The functions at an address of a sampled program. `before` is 1 for a return address, which
    /// may be behind its function's last instruction.
    fn functions_at(
        &self,
        of: &Recording,
        sample: &SampleRecord,
        address: u64,
        before: u64,
    ) -> Vec<String> {
        let (_, program) = of.program_of(sample.session);
        let places = self.file(of, program).map(|file| file.symbols.places(address - before));
        let mut names: Vec<String> =
            places.unwrap_or_default().into_iter().map(|place| place.function).collect();
        names.reverse();
        if names.is_empty() {
            names.push(format!("{address:#x}"));
        }
        names
    }

    /// The stack of a sample, the outermost caller first and the sample itself last; only the
    /// sample if no stack was copied, or the program's file is not known.
    pub(crate) fn stack(&self, of: &Recording, sample: &SampleRecord) -> Vec<Level> {
        let (_, program) = of.program_of(sample.session);
        let file = self.file(of, program).filter(|_| sample.user);
        let callers = file
            .zip(of.stacks.of_sample(sample))
            .map(|(file, copy)| file.symbols.callers(&copy.registers, &copy.stack, self.by));
        let level = |address| {
            let functions = self.functions_at(of, sample, address, 1);
            Level { address, functions }
        };
        let mut levels: Vec<Level> = callers.into_iter().flatten().rev().map(level).collect();
        levels.push(Level { address: sample.address, functions: self.functions(of, sample) });
        levels
    }

    /// The functions of a sample's stack, from the outermost to the innermost.
    pub(crate) fn stack_functions(&self, of: &Recording, sample: &SampleRecord) -> Vec<String> {
        self.stack(of, sample).into_iter().flat_map(|level| level.functions).collect()
    }

    /// The place of a sample in its innermost function, if it is known.
    pub(crate) fn place(&self, of: &Recording, sample: &SampleRecord) -> Option<Place> {
        let (_, program) = of.program_of(sample.session);
        let file = self.file(of, program).filter(|_| sample.user)?;
        file.symbols.places(sample.address).into_iter().next()
    }

    /// The innermost function of a sample.
    pub(crate) fn function(&self, of: &Recording, sample: &SampleRecord) -> String {
        self.functions(of, sample).pop().unwrap_or_default()
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
