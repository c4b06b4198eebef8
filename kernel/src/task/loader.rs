//! Loads a static x86-64 ELF into a new address space, with its arguments on its stack as the
//! System V ABI for AMD64 has them (section 3.4.1, "Initial Stack and Register State").

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use elf::{
    ElfBytes, abi,
    endian::LittleEndian,
    segment::{ProgramHeader, SegmentTable},
};
use tally_abi::ExitStatus;

use crate::memory::{
    area::{Area, Origin},
    frames::FRAME_BYTES,
    space::{AddressSpace, PageAccess, SpaceError, USER_END},
};

type Elf<'a> = ElfBytes<'a, LittleEndian>;

/// The most bytes of the first thread's stack, whose pages are allocated as it grows: Linux's
/// default.
pub const STACK_BYTES: u64 = 8 << 20;
/// Top of a program's stack; the page above it is never mapped.
const STACK_TOP: u64 = USER_END - FRAME_BYTES;
/// Base address of position-independent programs: the same in every run.
const PIE_BASE: u64 = 0x5555_5555_4000;
// Keys of the auxiliary vector (System V ABI for AMD64, section 3.4.3, and Linux's `auxvec.h`).
const AT_PHDR: u64 = 3;
const AT_PHENT: u64 = 4;
const AT_PHNUM: u64 = 5;
const AT_PAGESZ: u64 = 6;
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
/// Ticks of a second, in which `times` counts.
pub const CLOCK_TICKS: u64 = 100;
/// Names of machines that programs are built for.
const MACHINES: [(u16, &str); 5] = [
    (abi::EM_386, "32-bit x86"),
    (abi::EM_ARM, "32-bit Arm"),
    (abi::EM_X86_64, "32-bit pointers on x86-64"),
    (abi::EM_AARCH64, "64-bit Arm"),
    (abi::EM_RISCV, "RISC-V"),
];
/// The most bytes of a program's arguments and environment.
pub const MAX_ARGUMENT_BYTES: usize = 64 * 1024;

/// Why a program could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// It is not a static x86-64 ELF: what is wrong with it.
    NotStaticElf(Cow<'static, str>),
    /// No memory is left for it.
    OutOfMemory,
}

impl LoadError {
    /// The exit status and the text for the user.
    pub fn explain(self) -> (ExitStatus, Cow<'static, str>) {
        match self {
            LoadError::NotStaticElf(what) => (ExitStatus::NotStaticElf, what),
            LoadError::OutOfMemory => (
                ExitStatus::OutOfMemory,
                "not enough memory to load it: give the machine more with --memory".into(),
            ),
        }
    }
}

/// It is not a static x86-64 ELF.
fn not_static(what: &'static str) -> LoadError {
    LoadError::NotStaticElf(what.into())
}

impl From<SpaceError> for LoadError {
    fn from(error: SpaceError) -> Self {
        match error {
            SpaceError::OutOfMemory => LoadError::OutOfMemory,
            SpaceError::BadAddress | SpaceError::BehindFile => {
                not_static("a segment is outside the user half of the address space")
            }
            SpaceError::Overlap => {
                not_static("two segments share a page: link it with page-aligned segments")
            }
        }
    }
}

/// Where a loaded program begins.
pub struct Start {
    /// Its segments and its stack, by address: whole pages, disjoint.
    pub areas: Vec<(u64, Area)>,
    /// Its first instruction.
    pub rip: u64,
    /// Its stack pointer.
    pub rsp: u64,
}

/// What a program finds on its stack.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    /// Its name and its arguments.
    pub arguments: &'a [&'a str],
    /// Its environment: `NAME=VALUE`.
    pub environment: &'a [&'a str],
    /// `AT_RANDOM`.
    pub random: u128,
}

/// Maps the program `file` into `space`, and as much of its stack as `words` take.
///
/// # Errors
/// The file is not a static x86-64 ELF, or no memory is left.
pub fn load(space: &mut AddressSpace, file: &[u8], words: Words) -> Result<Start, LoadError> {
    let (elf, segments, base) = parse(file)?;
    let mut areas = Vec::new();
    let mut headers = 0;
    for mut segment in segments.iter().filter(|s| s.p_type == abi::PT_LOAD && s.p_memsz > 0) {
        let moved = segment.p_vaddr.checked_add(base);
        segment.p_vaddr =
            moved.ok_or(not_static("a segment is outside the user half of the address space"))?;
        let (start, area) = load_segment(space, file, &segment)?;
        if areas.iter().any(|(other, of): &(u64, Area)| *other < area.end && start < of.end) {
            return Err(SpaceError::Overlap.into());
        }
        areas.push((start, area));
        if segment.p_offset == 0 {
            headers = segment.p_vaddr + elf.ehdr.e_phoff;
        }
    }
    let entry = elf.ehdr.e_entry.checked_add(base).filter(|entry| *entry < USER_END);
    let entry =
        entry.ok_or(not_static("its entry point is outside the user half of the address space"))?;
    add_stack(&mut areas)?;
    let auxiliary = [
        (AT_PHDR, headers),
        (AT_PHENT, elf.ehdr.e_phentsize.into()),
        (AT_PHNUM, elf.ehdr.e_phnum.into()),
        (AT_PAGESZ, FRAME_BYTES),
        (AT_ENTRY, entry),
        (AT_UID, 0),
        (AT_EUID, 0),
        (AT_GID, 0),
        (AT_EGID, 0),
        (AT_HWCAP, features()),
        (AT_CLKTCK, CLOCK_TICKS),
        (AT_SECURE, 0),
    ];
    let rsp = push_words(space, words, &auxiliary)?;
    Ok(Start { areas, rip: entry, rsp })
}

/// Adds the area of the first thread's stack.
fn add_stack(areas: &mut Vec<(u64, Area)>) -> Result<(), LoadError> {
    let start = STACK_TOP - STACK_BYTES;
    if areas.iter().any(|(_, area)| area.end > start) {
        return Err(SpaceError::Overlap.into());
    }
    let (access, origin) = (PageAccess::Write, Origin::Stack);
    areas.push((start, Area { end: STACK_TOP, access, origin }));
    Ok(())
}

/// The processor's features as `AT_HWCAP` has them: EDX of CPUID's leaf 1.
fn features() -> u64 {
    core::arch::x86_64::__cpuid(1).edx.into()
}

/// The file as a static x86-64 ELF, its segments, and the address to add to all of its addresses.
fn parse(file: &[u8]) -> Result<(Elf<'_>, SegmentTable<'_, LittleEndian>, u64), LoadError> {
    let damaged = if file.starts_with(&abi::ELFMAGIC) {
        not_static("a damaged ELF file: it may be truncated")
    } else {
        not_static("not an ELF file")
    };
    let elf = Elf::minimal_parse(file).map_err(|_| damaged)?;
    let machine = elf.ehdr.e_machine;
    if machine != abi::EM_X86_64 || elf.ehdr.class != elf::file::Class::ELF64 {
        let known = MACHINES.iter().find(|(number, _)| *number == machine);
        let name = known.map_or("another machine", |(_, name)| name);
        let what = format!("an ELF file for {name}: build it for x86-64, 64-bit");
        return Err(LoadError::NotStaticElf(what.into()));
    }
    let segments = elf.segments().ok_or(not_static("an ELF file without segments to load"))?;
    if let Some(interpreter) = segments.iter().find(|s| s.p_type == abi::PT_INTERP) {
        return Err(dynamic(file, &interpreter));
    }
    let base = match elf.ehdr.e_type {
        abi::ET_EXEC => 0,
        // It relocates itself when it starts.
        abi::ET_DYN => PIE_BASE,
        _ => return Err(not_static("an object file, not an executable: link it")),
    };
    Ok((elf, segments, base))
}

/// The refusal of a program that needs an interpreter, which the segment names.
fn dynamic(file: &[u8], interpreter: &ProgramHeader) -> LoadError {
    let start = usize::try_from(interpreter.p_offset).unwrap_or(usize::MAX);
    let name = file.get(start..).unwrap_or_default().split(|byte| *byte == 0).next();
    let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
    let name = &name[..name.floor_char_boundary(100)];
    let what = format!(
        "dynamically linked, with the interpreter {name}: link it statically (cc -static; Rust: \
         -C target-feature=+crt-static; Go: CGO_ENABLED=0)"
    );
    LoadError::NotStaticElf(what.into())
}

/// Maps the pages of a segment that have bytes of the file, and copies those. Returns its area.
fn load_segment(
    space: &mut AddressSpace,
    file: &[u8],
    segment: &ProgramHeader,
) -> Result<(u64, Area), LoadError> {
    let bytes = usize::try_from(segment.p_offset)
        .ok()
        .and_then(|start| Some((start, start.checked_add(segment.p_filesz as usize)?)))
        .and_then(|(start, end)| file.get(start..end))
        .filter(|bytes| bytes.len() as u64 <= segment.p_memsz)
        .ok_or(not_static("a segment is outside the file: it may be truncated"))?;
    let access = match (segment.p_flags & abi::PF_X != 0, segment.p_flags & abi::PF_W != 0) {
        (true, true) => {
            return Err(not_static("a segment is both writable and executable: separate the two"));
        }
        (true, false) => PageAccess::Execute,
        (false, true) => PageAccess::Write,
        (false, false) => PageAccess::Read,
    };
    let outside = not_static("a segment is outside the user half of the address space");
    let start = segment.p_vaddr - segment.p_vaddr % FRAME_BYTES;
    let end = segment.p_vaddr.checked_add(segment.p_memsz).filter(|end| *end <= USER_END);
    let end = end.ok_or(outside)?.next_multiple_of(FRAME_BYTES);
    let in_file = (segment.p_vaddr + bytes.len() as u64).next_multiple_of(FRAME_BYTES);
    if !bytes.is_empty() {
        space.map_zeroed(start, in_file - start, access)?;
        space.fill(segment.p_vaddr, bytes)?;
    }
    Ok((start, Area { end, access, origin: Origin::Segment }))
}

/// Puts argument count, pointers and strings on the stack. Returns the stack pointer.
fn push_words(
    space: &mut AddressSpace,
    words: Words,
    auxiliary: &[(u64, u64)],
) -> Result<u64, LoadError> {
    let Words { arguments, environment, random } = words;
    let mut strings = String::new();
    let mut offsets = Vec::new();
    for word in arguments.iter().chain(environment) {
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
    // argc, argv, 0, the environment, 0, the auxiliary vector, its end's two.
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
    space.map_zeroed(first, STACK_TOP - first, PageAccess::Write)?;
    space.fill(text, strings.as_bytes())?;
    space.fill(random_at, &random.to_le_bytes())?;
    space.fill(rsp, &bytes)?;
    Ok(rsp)
}
