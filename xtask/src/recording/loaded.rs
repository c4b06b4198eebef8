//! The files whose code was in the memory of a sampled program, and their symbols.

use std::path::{Path, PathBuf};

use object::{Object, ObjectSegment};
use tally_abi::{ExitStatus, trace::MapRecord};
use tally_elf::Program;

use super::Recording;
use crate::{
    Failure, Result,
    code_files::{self, CodeFile},
    output, project,
    symbols::Symbols,
    visible::visible,
};

/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;

/// A part of a file's code, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeSegment {
    /// First address in the running program.
    pub(crate) start: u64,
    /// Length in bytes.
    pub(crate) bytes: u64,
    /// Offset in the file.
    pub(crate) file_offset: u64,
}

/// A file whose code is in a program's memory.
pub(crate) struct LoadedFile {
    /// The program.
    pub(super) program: u32,
    /// TSC from which on its code was there.
    pub(super) from_tsc: u64,
    /// Path without links.
    pub(crate) path: PathBuf,
    /// Distance between the addresses in memory and those in the file.
    pub(crate) base: u64,
    /// Functions and lines.
    pub(crate) symbols: Symbols,
    /// The code.
    pub(crate) code: Vec<CodeSegment>,
    /// The linker's build id; empty without one.
    pub(crate) build_id: Vec<u8>,
}

impl LoadedFile {
    fn read(path: &Path, at: &Placed) -> Result<LoadedFile> {
        let bytes = project::read(path)?;
        let refused = |why: &str| {
            let why = format!("cannot read the segments of {}: {}", path.display(), visible(why));
            Failure::new(ExitStatus::NotRunnable, why)
        };
        let base = at.base(&bytes).map_err(|why| refused(&why))?;
        let symbols = Symbols::loaded(path, base)?;
        let file = object::File::parse(&*bytes).map_err(|error| refused(&error.to_string()))?;
        let executable = file.segments().filter(|segment| segment.permissions().executable());
        let code = executable.map(|segment| {
            // Addresses of the file's segments may have any 64-bit value; a kernel never loads
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
        let (code, build_id) = (code.collect(), code_files::build_id(&bytes));
        let path = path.canonicalize().map_err(|error| Failure::io("read", path, &error))?;
        let Placed { program, from_tsc, .. } = *at;
        Ok(LoadedFile { program, from_tsc, path, base, symbols, code, build_id })
    }

    /// Name for code of the file that has no symbol.
    pub(super) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!("[{}]", visible(&name))
    }
}

/// How a file came into a program's memory.
#[derive(Clone, Copy, Debug)]
enum By<'a> {
    /// The kernel loaded it as the program.
    Program,
    /// The kernel loaded it as the program's interpreter.
    Interpreter,
    /// The program mapped it.
    Map(&'a MapRecord),
}

/// A file in a program's memory, whose symbols are not read yet.
#[derive(Clone, Copy, Debug)]
struct Placed<'a> {
    program: u32,
    from_tsc: u64,
    by: By<'a>,
}

impl Placed<'_> {
    /// The distance between the addresses in memory and those in the file.
    fn base(&self, bytes: &[u8]) -> std::result::Result<u64, String> {
        match self.by {
            By::Program => Program::parse(bytes).map(|file| file.base).map_err(Into::into),
            By::Interpreter => {
                Program::parse_interpreter(bytes).map(|file| file.base).map_err(Into::into)
            }
            By::Map(record) => {
                let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
                let has = |(start, bytes): (u64, u64)| {
                    (start - start % PAGE_BYTES..start.saturating_add(bytes))
                        .contains(&record.offset)
                };
                let mut executable =
                    file.segments().filter(|segment| segment.permissions().executable());
                let segment = executable.find(|segment| has(segment.file_range()));
                let segment = segment.ok_or("it has no code where the program mapped it")?;
                let in_file =
                    segment.address().wrapping_sub(segment.file_range().0) + record.offset;
                Ok(record.address.wrapping_sub(in_file))
            }
        }
    }
}

/// A file of `--symbols`.
struct Given {
    path: PathBuf,
    identity: String,
    is_used: bool,
}

/// Reads the files of all sampled programs: those of `--symbols`, and those that the run names.
///
/// # Errors
/// A file of `--symbols` cannot be read, is no ELF file, or is another build of a file that ran.
pub(super) fn read(of: &Recording, paths: &[PathBuf]) -> Result<Vec<LoadedFile>> {
    let given = |path: &PathBuf| {
        let identity = code_files::identity(&project::read(path)?);
        Ok(Given { path: path.clone(), identity, is_used: false })
    };
    let given = paths.iter().map(given).collect::<Result<_>>()?;
    let mut reader = FileReader { of, given, files: Vec::new() };
    let mut programs: Vec<(u32, &str)> =
        of.records.samples.iter().map(|sample| of.program_of(sample.session)).collect();
    programs.sort_unstable();
    programs.dedup();
    for (program, name) in &programs {
        reader.add_program(*program, name, programs.len() == 1)?;
    }
    for record in &of.records.maps {
        if programs.iter().any(|(program, _)| *program == record.program) {
            reader.add_map(record)?;
        }
    }
    for Given { path, .. } in reader.given.iter().filter(|given| !given.is_used) {
        output::note(format_args!(
            "xtask: --symbols {}: no file of the programs that were sampled",
            path.display()
        ));
    }
    Ok(reader.files)
}

struct FileReader<'a> {
    of: &'a Recording,
    given: Vec<Given>,
    files: Vec<LoadedFile>,
}

impl FileReader<'_> {
    /// Adds a program's own file, and its interpreter's. `is_only` tells that no other program was
    /// sampled.
    fn add_program(&mut self, program: u32, name: &str, is_only: bool) -> Result<()> {
        let known = own_file(self.of, name);
        let path = match known {
            Some(known) => self.choose(known)?,
            None => self.by_name(name, is_only),
        };
        let Some(path) = path else { return Ok(()) };
        let at = Placed { program, from_tsc: 0, by: By::Program };
        self.files.push(LoadedFile::read(&path, &at)?);
        let bytes = project::read(&path)?;
        let interpreter = Program::parse(&bytes).ok().and_then(|file| file.interpreter);
        let guest = interpreter.map(|path| path.trim_start_matches('/'));
        let known = self.of.run.code_files.iter().find(|file| Some(&*file.guest) == guest);
        if let Some(path) = known.map(|known| self.choose(known)).transpose()?.flatten() {
            let by = By::Interpreter;
            self.files.push(LoadedFile::read(&path, &Placed { by, ..at })?);
        }
        Ok(())
    }

    /// Adds a library.
    fn add_map(&mut self, record: &MapRecord) -> Result<()> {
        let mut files = self.of.run.code_files.iter();
        let Some(known) = files.find(|file| file.ramdisk_offset == record.file) else {
            return Ok(());
        };
        let Some(path) = self.choose(known)? else { return Ok(()) };
        let at = Placed { program: record.program, from_tsc: record.tsc, by: By::Map(record) };
        let file = LoadedFile::read(&path, &at)?;
        // A file with several parts of code has a record of each.
        let is_same = |of: &LoadedFile| {
            (of.program, of.base, &of.path) == (file.program, file.base, &file.path)
        };
        if !self.files.iter().any(is_same) {
            self.files.push(file);
        }
        Ok(())
    }

    /// The host's file with the symbols of a file that ran, if it is the same build.
    fn choose(&mut self, known: &CodeFile) -> Result<Option<PathBuf>> {
        if let Some(same) = self.given.iter_mut().find(|given| given.identity == known.identity) {
            same.is_used = true;
            return Ok(Some(same.path.clone()));
        }
        let has_name = |given: &&Given| given.path.file_name().is_some_and(|n| n == known.name());
        if let Some(Given { path, identity, .. }) = self.given.iter().find(has_name) {
            let why = format!(
                "--symbols {}: another build than the one that ran: it has {identity}, the one \
                 that ran {}; give the file that ran, or record again",
                path.display(),
                known.identity
            );
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        match std::fs::read(&known.host) {
            Ok(bytes) if code_files::identity(&bytes) == known.identity => {
                Ok(Some(known.host.clone()))
            }
            Ok(_) => {
                output::note(format_args!(
                    "xtask: {} has changed since it ran: its functions have no names; record \
                     again, or give the file that ran with --symbols",
                    visible(&known.host.to_string_lossy())
                ));
                Ok(None)
            }
            Err(_) => Ok(None),
        }
    }

    /// The file of `--symbols` with a program's name, or the only one for the only program: of a
    /// trace that does not say which files ran.
    fn by_name(&mut self, name: &str, is_only: bool) -> Option<PathBuf> {
        let own = Path::new(name).file_name();
        let is_the_only = is_only && self.given.len() == 1;
        let mut given = self.given.iter_mut();
        let found = given.find(|given| is_the_only || given.path.file_name() == own)?;
        found.is_used = true;
        Some(found.path.clone())
    }
}

/// The file of a program of this name, if the run names it.
fn own_file<'a>(of: &'a Recording, name: &str) -> Option<&'a CodeFile> {
    let (path, short) = (name.trim_start_matches('/'), Path::new(name).file_name()?);
    let files = &of.run.code_files;
    let whole = files.iter().find(|file| file.guest == path);
    whole.or_else(|| files.iter().find(|file| short == file.name()))
}
