//! The files whose code was in the memory of a sampled program, and their symbols.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use object::{Object, ObjectSegment};
use tally_abi::{ExitStatus, boot::KERNEL_BASE, trace::MapRecord};
use tally_elf::Program;

use super::{
    Recording,
    host_files::{Chosen, HostFiles},
};
use crate::{
    Failure, Result,
    code_files::{self, CodeFile},
    project,
    symbols::{self, Place, Symbols},
    visible::visible,
};

/// Number of no program, which the kernel's file has.
pub(super) const KERNEL_PROGRAM: u32 = u32::MAX;
/// Mark before the names of the kernel's functions.
pub(crate) const KERNEL_MARK: &str = "[k] ";
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

/// A file whose code is in a program's memory, or the kernel's.
pub(crate) struct LoadedFile {
    /// The program, or [`KERNEL_PROGRAM`].
    pub(super) program: u32,
    /// TSC from which on its code was there.
    pub(super) from_tsc: u64,
    /// Path without links.
    pub(crate) path: PathBuf,
    /// Distance between the addresses in memory and those in the file.
    pub(crate) base: u64,
    /// Functions and lines.
    pub(super) symbols: Symbols,
    /// The code.
    pub(crate) code: Vec<CodeSegment>,
    /// The linker's build id; empty without one.
    pub(crate) build_id: Vec<u8>,
}

impl LoadedFile {
    /// Reads a file; `None` if it has no code where the program mapped it.
    fn read(Chosen { path, debug }: &Chosen, at: &Placed) -> Result<Option<LoadedFile>> {
        let bytes = project::read(path)?;
        let refused = |why: &str| {
            let why = format!("cannot read the segments of {}: {}", path.display(), visible(why));
            Failure::new(ExitStatus::NotRunnable, why)
        };
        let file = object::File::parse(&*bytes).map_err(|error| refused(&error.to_string()))?;
        let Some(base) = at.base(&bytes, &file).map_err(|why| refused(&why))? else {
            return Ok(None);
        };
        let symbols = Symbols::with(path, &bytes, base, debug.clone())?;
        let code = executable(&file).map(|segment| {
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
        let (code, build_id) = (code.collect(), code_files::build_id(&file));
        let path = path.canonicalize().map_err(|error| Failure::io("read", path, &error))?;
        let Placed { program, from_tsc, .. } = *at;
        Ok(Some(LoadedFile { program, from_tsc, path, base, symbols, code, build_id }))
    }

    /// The functions of the instruction at an address: the inlined ones, innermost first, and the
    /// one they were inlined into. Those of the kernel have the mark that perf prints before them.
    pub(crate) fn places(&self, address: u64) -> Vec<Place> {
        let mut places = self.symbols.places(address);
        if self.program == KERNEL_PROGRAM {
            places.iter_mut().for_each(|of| of.function.insert_str(0, KERNEL_MARK));
        }
        places
    }

    /// All names of the function at an address, if it has several.
    pub(crate) fn aliases(&self, address: u64) -> &[String] {
        self.symbols.aliases(address)
    }

    /// The separate debug file, which has the symbols.
    pub(crate) fn debug_file(&self) -> Option<&Path> {
        self.symbols.debug_file()
    }

    /// Path and base.
    pub(crate) fn key(&self) -> FileKey<'_> {
        (&self.path, self.base)
    }

    /// Name for code of the file that has no symbol.
    pub(super) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!("[{}]", visible(&name))
    }
}

/// A file in a program's memory, distinguished from others there.
pub(crate) type FileKey<'a> = (&'a Path, u64);

/// Origin of a file in a program's memory.
#[derive(Clone, Copy, Debug)]
enum By<'a> {
    /// The file is the kernel's own.
    Kernel,
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
    /// The distance between the addresses in memory and those in the file; `None` if the file has
    /// no code where the program mapped it.
    fn base(
        &self,
        bytes: &[u8],
        file: &object::File<'_>,
    ) -> std::result::Result<Option<u64>, Cow<'static, str>> {
        let record = match self.by {
            By::Kernel => return Ok(Some(KERNEL_BASE)),
            By::Program if symbols::is_debug_only(file) => return Ok(Some(program_base(file))),
            By::Program => return Program::parse(bytes).map(|file| Some(file.base)),
            By::Interpreter => {
                return Program::parse_interpreter(bytes).map(|file| Some(file.base));
            }
            By::Map(record) => record,
        };
        let segment = executable(file).find(|segment| {
            let (start, bytes) = segment.file_range();
            (start - start % PAGE_BYTES..start.saturating_add(bytes)).contains(&record.offset)
        });
        // A damaged trace or file may have any addresses.
        let base = segment.map(|segment| {
            let of_file = segment.address().wrapping_sub(segment.file_range().0);
            record.address.wrapping_sub(of_file.wrapping_add(record.offset))
        });
        Ok(base)
    }
}

/// The base of a program of which only the separate debug file is there.
fn program_base(debug: &object::File<'_>) -> u64 {
    if debug.kind() == object::ObjectKind::Executable { 0 } else { tally_elf::PIE_BASE }
}

/// The segments of a file's code.
fn executable<'a>(file: &'a object::File<'a>) -> impl Iterator<Item = object::Segment<'a, 'a>> {
    file.segments().filter(|segment| segment.permissions().executable())
}

/// Reads the files of all sampled programs and of the kernel: those of `--symbols`, and those that
/// the run names.
///
/// # Errors
/// A file of `--symbols` cannot be read, is no ELF file, or is another build of a file that ran.
pub(super) fn read(of: &Recording, paths: &[PathBuf]) -> Result<Vec<LoadedFile>> {
    let host = HostFiles::of(paths)?;
    let mut reader = FileReader { of, host, files: Vec::new() };
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
    if let Some(kernel) = of.run.kernel.as_ref().and_then(|known| reader.host.choose_kernel(known))
    {
        let at = Placed { program: KERNEL_PROGRAM, from_tsc: 0, by: By::Kernel };
        reader.files.extend(LoadedFile::read(&kernel, &at)?);
    }
    reader.host.note_unused();
    Ok(reader.files)
}

struct FileReader<'a> {
    of: &'a Recording,
    host: HostFiles,
    files: Vec<LoadedFile>,
}

impl FileReader<'_> {
    /// Adds a program's own file, and its interpreter's. `is_only` tells that no other program was
    /// sampled.
    fn add_program(&mut self, program: u32, name: &str, is_only: bool) -> Result<()> {
        let known = own_file(self.of, name);
        let chosen = match known {
            Some(known) => self.host.choose(known)?,
            None => self.host.by_name(name, is_only).map(Chosen::from),
        };
        let at = Placed { program, from_tsc: 0, by: By::Program };
        let mut interpreter = only_interpreter(self.of);
        if let Some(chosen) = &chosen {
            self.files.extend(LoadedFile::read(chosen, &at)?);
            if let Ok(file) = Program::parse(&project::read(&chosen.path)?) {
                let guest = file.interpreter.map(|path| path.trim_start_matches('/'));
                let mut files = self.of.run.code_files.iter();
                interpreter = files.find(|file| Some(&*file.guest) == guest);
            }
        }
        let interpreter = interpreter.map(|known| self.host.choose(known)).transpose()?.flatten();
        if let Some(chosen) = interpreter.filter(is_interpreter) {
            let by = By::Interpreter;
            self.files.extend(LoadedFile::read(&chosen, &Placed { by, ..at })?);
        }
        Ok(())
    }

    /// Adds a library.
    fn add_map(&mut self, record: &MapRecord) -> Result<()> {
        let mut files = self.of.run.code_files.iter();
        let Some(known) = files.find(|file| file.ramdisk_offset == record.file) else {
            return Ok(());
        };
        let Some(chosen) = self.host.choose(known)? else { return Ok(()) };
        // A file with several parts of code, or one that is mapped again, has several records.
        let has = |file: &LoadedFile| {
            let mut code = file.code.iter();
            let is_there =
                |of: &CodeSegment| of.start == record.address && of.file_offset == record.offset;
            file.program == record.program && file.path == chosen.path && code.any(is_there)
        };
        if self.files.iter().any(has) {
            return Ok(());
        }
        let at = Placed { program: record.program, from_tsc: record.tsc, by: By::Map(record) };
        self.files.extend(LoadedFile::read(&chosen, &at)?);
        Ok(())
    }
}

/// The interpreter of a program whose own file, which names it, is not there: the only one that the
/// run had, by its name. No record of the trace has its place in memory, which is always the same.
fn only_interpreter(of: &Recording) -> Option<&CodeFile> {
    let is_it =
        |file: &&CodeFile| ["ld-linux", "ld-musl"].iter().any(|it| file.name().starts_with(it));
    let mut all = of.run.code_files.iter().filter(is_it);
    all.next().filter(|_| all.next().is_none())
}

/// Returns whether a file can be loaded as an interpreter.
fn is_interpreter(chosen: &Chosen) -> bool {
    project::read(&chosen.path).is_ok_and(|bytes| Program::parse_interpreter(&bytes).is_ok())
}

/// The file of a program of this name, if the run names it.
fn own_file<'a>(of: &'a Recording, name: &str) -> Option<&'a CodeFile> {
    let (path, short) = (name.trim_start_matches('/'), Path::new(name).file_name()?);
    let files = &of.run.code_files;
    let whole = files.iter().find(|file| file.guest == path);
    whole.or_else(|| files.iter().find(|file| short == file.name()))
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;

    use tally_abi::trace::{MAX_COUNTS, SampleRecord};

    use super::*;
    use crate::{
        trace::run::{Run, TracedSession},
        trace_file::Records,
    };

    /// A sample at an address, in ring 3 or in ring 0.
    pub(in crate::recording) fn made_up_sample(address: u64, user: bool) -> SampleRecord {
        SampleRecord {
            tsc: 9,
            session: 1,
            cpu: 0,
            event: 0,
            address,
            address_space: 3,
            count: 1,
            late: 0,
            cycles: 1,
            instructions: 1,
            group: 0,
            period_multiplier: 1,
            user,
            precise: false,
            thread: 2,
            events: 0,
            counts: [0; MAX_COUNTS],
        }
    }

    /// A trace of the program `name`, which mapped a file at each of the places, an address and an
    /// offset in the file.
    fn recording(name: &str, host: &Path, identity: String, maps: &[(u64, u64)]) -> Recording {
        let file = CodeFile {
            guest: "lib/known.so".into(),
            host: host.to_owned(),
            ramdisk_offset: 7,
            identity,
        };
        let (events, name) = (Vec::new(), name.to_owned());
        let session = TracedSession { session: 1, program: 2, name, address_space: 3, events };
        let run = Run { code_files: vec![file], sessions: vec![session], ..Run::default() };
        let map = |&(address, offset)| MapRecord {
            tsc: 5,
            cpu: 0,
            program: 2,
            address,
            bytes: PAGE_BYTES,
            offset,
            file: 7,
        };
        let (samples, maps) = (vec![made_up_sample(0, true)], maps.iter().map(map).collect());
        let records = Records { samples, maps, ..Records::default() };
        let (stacks, branches) = Default::default();
        Recording { run, records, stacks, branches, start_tsc: 0, tsc_hz: 1 }
    }

    #[test]
    fn a_library_is_loaded_once_and_only_where_its_code_is() {
        let this = std::env::current_exe().unwrap();
        let bytes = fs::read(&this).unwrap();
        let identity = code_files::identity(&bytes);
        let file = object::File::parse(&*bytes).unwrap();
        let segment = executable(&file).next().unwrap();
        let offset = segment.file_range().0 / PAGE_BYTES * PAGE_BYTES;
        let address = 0x7000_0000_0000;
        let places =
            [(address, offset), (address, offset), (address, u64::MAX), (u64::MAX, offset)];
        let files = read(&recording("other", &this, identity.clone(), &places), &[]).unwrap();
        let bases: Vec<u64> = files.iter().map(|file| file.base).collect();
        let in_file = segment.address() / PAGE_BYTES * PAGE_BYTES;
        assert_eq!(bases, [address - in_file, u64::MAX - in_file]);
        // Another build, and a path that is no file: neither is read.
        for (host, identity) in [(&*this, "another".to_owned()), (Path::new("/dev/zero"), identity)]
        {
            let files = read(&recording("other", host, identity, &places), &[]).unwrap();
            assert!(files.is_empty());
        }
    }
    #[test]
    fn a_program_that_has_changed_keeps_the_names_of_its_interpreter() {
        let this = std::env::current_exe().unwrap();
        let bytes = fs::read(&this).unwrap();
        let path = PathBuf::from(Program::parse(&bytes).unwrap().interpreter.unwrap());
        let identity = code_files::identity(&fs::read(&path).unwrap());
        let file = |guest: &str, host: &Path, identity: &str| CodeFile {
            guest: guest.into(),
            host: host.to_owned(),
            ramdisk_offset: guest.len() as u64,
            identity: identity.to_owned(),
        };
        for (of_program, files) in [(&*code_files::identity(&bytes), 2), ("another", 1)] {
            let mut of = recording("prog", &this, String::new(), &[]);
            let guest = path.to_str().unwrap().trim_start_matches('/');
            let interpreter = file(guest, &path, &identity);
            of.run.code_files = vec![file("prog", &this, of_program), interpreter];
            let read = read(&of, &[]).unwrap();
            assert_eq!(read.len(), files, "{of_program}");
            assert_eq!(read.last().unwrap().path, path.canonicalize().unwrap());
        }
    }
}
