//! Loads an x86-64 ELF into a new address space, with its arguments on its stack as specified in
//! the System V ABI for AMD64 (section 3.4.1, "Initial Stack and Register State").
//!
//! A dynamic program begins in its interpreter, which maps the libraries by system calls.

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use tally_abi::{
    ExitStatus,
    program::{MAX_ARGUMENT_BYTES, VDSO_BASE},
};
use tally_elf::{OUTSIDE, Program, Segment};

use super::{extended_frame, vdso};
use crate::memory::{
    area::{Area, Origin},
    frames::FRAME_BYTES,
    space::{AddressSpace, PageAccess, SpaceError, USER_END, UserPage, UserRange},
};

/// Maximum bytes of the first thread's stack, whose pages are allocated as it grows: Linux's
/// default.
pub const STACK_BYTES: u64 = 8 << 20;
/// Top of a program's stack; the page above it is never mapped.
const STACK_TOP: u64 = USER_END - FRAME_BYTES;
// Keys of the auxiliary vector (System V ABI for AMD64, section 3.4.3, and Linux's `auxvec.h`).
const AT_PHDR: u64 = 3;
const AT_PHENT: u64 = 4;
const AT_PHNUM: u64 = 5;
const AT_PAGESZ: u64 = 6;
const AT_BASE: u64 = 7;
const AT_ENTRY: u64 = 9;
const AT_UID: u64 = 11;
const AT_EUID: u64 = 12;
const AT_GID: u64 = 13;
const AT_EGID: u64 = 14;
const AT_HWCAP: u64 = 16;
const AT_CLKTCK: u64 = 17;
const AT_SECURE: u64 = 23;
const AT_RANDOM: u64 = 25;
const AT_EXECFN: u64 = 31;
const AT_SYSINFO_EHDR: u64 = 33;
const AT_MINSIGSTKSZ: u64 = 51;
/// Ticks of a second, in which `times` counts.
pub const CLOCK_TICKS: u64 = 100;

/// Reason why a program could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The file is not an x86-64 ELF that can run, for this reason.
    NotRunnable(Cow<'static, str>),
    /// No memory is left for the program.
    OutOfMemory,
}

impl LoadError {
    /// The exit status and the text for the user.
    pub fn explain(self) -> (ExitStatus, Cow<'static, str>) {
        match self {
            LoadError::NotRunnable(what) => (ExitStatus::NotRunnable, what),
            LoadError::OutOfMemory => (
                ExitStatus::OutOfMemory,
                "not enough memory to load it: give the machine more with --memory".into(),
            ),
        }
    }
}

/// Makes the error of a file that is not an x86-64 ELF that can run.
fn not_runnable(what: &'static str) -> LoadError {
    LoadError::NotRunnable(what.into())
}

impl From<SpaceError> for LoadError {
    fn from(error: SpaceError) -> Self {
        match error {
            SpaceError::OutOfMemory => LoadError::OutOfMemory,
            SpaceError::BadAddress | SpaceError::BehindFile => not_runnable(OUTSIDE),
            SpaceError::Overlap => not_runnable("two segments overlap: link it again"),
        }
    }
}

/// Initial state of a loaded program.
pub struct Start {
    /// Segments and stack, by address: whole pages, disjoint.
    pub areas: Vec<(u64, Area)>,
    /// Address of the heap: behind the program's last segment.
    pub heap: u64,
    /// Address of the first instruction.
    pub rip: u64,
    /// Initial stack pointer.
    pub rsp: u64,
}

impl Start {
    /// Logs the addresses of the program `name`.
    pub fn log(&self, name: &str) {
        for (start, area) in &self.areas {
            log::debug!("{name}: area at {start:#x}, up to {:#x}", area.end);
        }
        log::debug!("{name}: entry {:#x}, stack pointer {:#x}", self.rip, self.rsp);
    }
}

/// Contents of a program's initial stack.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    /// The program's name and arguments.
    pub arguments: &'a [&'a str],
    /// Environment: `NAME=VALUE`.
    pub environment: &'a [String],
    /// `AT_RANDOM`.
    pub random: u128,
    /// Whether the stack is executable, if the program asks for that.
    pub may_write_code: bool,
}

/// Maps the program `file` into `space`, its interpreter, which `find` returns by its path, and the
/// part of its stack that `words` take.
///
/// # Errors
/// The file is not an x86-64 ELF that can run, its interpreter is missing, or no memory is left.
pub fn load(
    space: &mut AddressSpace,
    file: &[u8],
    find: impl FnOnce(&str) -> Option<&'static [u8]>,
    words: Words,
) -> Result<Start, LoadError> {
    let program = Program::parse(file).map_err(LoadError::NotRunnable)?;
    let mut areas = Vec::new();
    let may_write_code = words.may_write_code;
    load_segments(space, &program, &mut areas, may_write_code)?;
    let heap = areas.iter().map(|(_, area)| area.end).max().unwrap_or_default();
    let interpreter = program.interpreter.map(|path| interpreter(find(path), path)).transpose()?;
    if let Some(interpreter) = &interpreter {
        load_segments(space, interpreter, &mut areas, may_write_code)?;
    }
    add_clock(space, &mut areas)?;
    let executes_stack = program.has_executable_stack && may_write_code;
    let of_stack = if executes_stack { PageAccess::All } else { PageAccess::Write };
    add_stack(&mut areas, of_stack)?;
    let auxiliary = [
        (AT_PHDR, program.headers),
        (AT_PHENT, program.header_bytes.into()),
        (AT_PHNUM, program.header_count.into()),
        (AT_PAGESZ, FRAME_BYTES),
        (AT_BASE, interpreter.as_ref().map_or(0, |interpreter| interpreter.base)),
        (AT_ENTRY, program.entry),
        (AT_UID, 0),
        (AT_EUID, 0),
        (AT_GID, 0),
        (AT_EGID, 0),
        (AT_HWCAP, features()),
        (AT_CLKTCK, CLOCK_TICKS),
        (AT_SECURE, 0),
        (AT_SYSINFO_EHDR, VDSO_BASE),
        (AT_MINSIGSTKSZ, extended_frame::min_stack_bytes()),
    ];
    let rsp = push_words(space, of_stack, words, &auxiliary)?;
    Ok(Start { areas, heap, rip: interpreter.map_or(program.entry, |it| it.entry), rsp })
}

/// Parses the interpreter `file` at `path`.
fn interpreter(file: Option<&'static [u8]>, path: &str) -> Result<Program<'static>, LoadError> {
    let refused =
        |why: &str| LoadError::NotRunnable(format!("its interpreter {path} {why}").into());
    let file = file
        .ok_or_else(|| refused("is not on the machine: give it and the libraries with --file"))?;
    Program::parse_interpreter(file).map_err(|why| refused(&format!("cannot run: {why}")))
}

/// Maps the segments of a program or an interpreter, and adds their areas.
fn load_segments(
    space: &mut AddressSpace,
    program: &Program<'_>,
    areas: &mut Vec<(u64, Area)>,
    may_write_code: bool,
) -> Result<(), LoadError> {
    for segment in &program.segments {
        let access = access_of(segment, may_write_code)?;
        let (start, area) = load_segment(space, segment, access, areas.last_mut())?;
        areas.retain(|(first, area)| *first < area.end);
        if areas.iter().any(|(other, of)| *other < area.end && start < of.end) {
            return Err(SpaceError::Overlap.into());
        }
        areas.push((start, area));
    }
    if program.entry >= USER_END {
        return Err(not_runnable("its entry point is outside the user half of the address space"));
    }
    Ok(())
}

/// Maps the shared object that programs read the clocks with.
fn add_clock(space: &mut AddressSpace, areas: &mut Vec<(u64, Area)>) -> Result<(), LoadError> {
    let segment = vdso::segment();
    if areas.iter().any(|(start, area)| *start < segment.end && VDSO_BASE < area.end) {
        return Err(SpaceError::Overlap.into());
    }
    areas.push(load_segment(space, &segment, PageAccess::Execute, None)?);
    let (address, words) = vdso::parameters();
    space.fill(address, &words)?;
    Ok(())
}

/// The access to a segment's pages.
fn access_of(segment: &Segment<'_>, may_write_code: bool) -> Result<PageAccess, LoadError> {
    Ok(match (segment.is_executable, segment.is_writable) {
        (true, true) if may_write_code => PageAccess::All,
        (true, true) => {
            return Err(not_runnable(
                "a segment is both writable and executable: separate the two, or add --jit",
            ));
        }
        (true, false) => PageAccess::Execute,
        (false, true) => PageAccess::Write,
        (false, false) => PageAccess::Read,
    })
}

/// Adds the area of the first thread's stack.
fn add_stack(areas: &mut Vec<(u64, Area)>, access: PageAccess) -> Result<(), LoadError> {
    let start = STACK_TOP - STACK_BYTES;
    if areas.iter().any(|(_, area)| area.end > start) {
        return Err(SpaceError::Overlap.into());
    }
    areas.push((start, Area { end: STACK_TOP, access, origin: Origin::Stack }));
    Ok(())
}

/// The processor's features for `AT_HWCAP`: EDX of CPUID's leaf 1.
fn features() -> u64 {
    core::arch::x86_64::__cpuid(1).edx.into()
}

/// Maps and fills the pages of a segment that have bytes of the file. Returns the segment's area.
///
/// The last page of the segment `before` may be the first one of this: linkers that do not align
/// segments make such files. Linux maps the page once for each; it has the bytes of both, and the
/// access of the latter.
fn load_segment(
    space: &mut AddressSpace,
    segment: &Segment<'_>,
    access: PageAccess,
    before: Option<&mut (u64, Area)>,
) -> Result<(u64, Area), LoadError> {
    if segment.end > USER_END {
        return Err(not_runnable(OUTSIDE));
    }
    let start = segment.start - segment.start % FRAME_BYTES;
    let end = segment.end.next_multiple_of(FRAME_BYTES);
    let in_file = (segment.start + segment.bytes.len() as u64).next_multiple_of(FRAME_BYTES);
    let first = UserRange::new(start, FRAME_BYTES)?;
    let mut unmapped = start;
    if let Some((_, area)) = before
        && area.end == start + FRAME_BYTES
    {
        area.end = start;
        if space.has_page(UserPage::containing(start)?) {
            space.protect_all(first, access);
            unmapped += FRAME_BYTES;
        }
    }
    if !segment.bytes.is_empty() {
        if in_file > unmapped {
            space.map_zeroed(UserRange::new(unmapped, in_file - unmapped)?, access)?;
        }
        space.fill(segment.start, segment.bytes)?;
    }
    Ok((start, Area { end, access, origin: Origin::Segment }))
}

/// Puts argument count, pointers and strings on the stack. Returns the stack pointer.
fn push_words(
    space: &mut AddressSpace,
    access: PageAccess,
    words: Words,
    auxiliary: &[(u64, u64)],
) -> Result<u64, LoadError> {
    let Words { arguments, environment, random, .. } = words;
    let mut strings = String::new();
    let mut offsets = Vec::new();
    for word in arguments.iter().copied().chain(environment.iter().map(String::as_str)) {
        offsets.push(strings.len() as u64);
        strings.push_str(word);
        strings.push('\0');
    }
    if strings.len() > MAX_ARGUMENT_BYTES {
        return Err(LoadError::OutOfMemory);
    }
    let text = STACK_TOP - strings.len() as u64;
    let random_at = (text - size_of_val(&random) as u64) & !15;
    let mut pointers = offsets.iter().map(|offset| text + offset);
    // argc, argv, 0, the environment, 0, the auxiliary vector, and its end mark of two words.
    let mut stack = Vec::from([arguments.len() as u64]);
    stack.extend(pointers.by_ref().take(arguments.len()));
    stack.push(0);
    stack.extend(pointers);
    stack.push(0);
    stack.extend(auxiliary.iter().flat_map(|(key, value)| [*key, *value]));
    stack.extend([AT_RANDOM, random_at, AT_EXECFN, text, 0, 0]);
    let rsp = (random_at - 8 * stack.len() as u64) & !15;
    let bytes: Vec<u8> = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    let first = rsp - rsp % FRAME_BYTES;
    space.map_zeroed(UserRange::new(first, STACK_TOP - first)?, access)?;
    space.fill(text, strings.as_bytes())?;
    space.fill(random_at, &random.to_le_bytes())?;
    space.fill(rsp, &bytes)?;
    Ok(rsp)
}
