//! Loads a static x86-64 ELF into a new address space, with its arguments on its stack as the
//! System V ABI for AMD64 has them (section 3.4.1, "Initial Stack and Register State").

use alloc::{string::String, vec::Vec};
use core::ops::Range;

use elf::{
    ElfBytes, abi,
    endian::LittleEndian,
    segment::{ProgramHeader, SegmentTable},
};
use tally_abi::ExitStatus;

use crate::memory::{
    frames::FRAME_BYTES,
    space::{AddressSpace, PageAccess, SpaceError, USER_END},
};

type Elf<'a> = ElfBytes<'a, LittleEndian>;

/// Bytes of a program's stack.
pub const STACK_BYTES: u64 = 1 << 20;
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
const AT_SECURE: u64 = 23;
const AT_RANDOM: u64 = 25;
/// The most bytes of a program's arguments.
pub const MAX_ARGUMENT_BYTES: usize = 64 * 1024;

/// Why a program could not be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// It is not a static x86-64 ELF: what is wrong with it.
    NotStaticElf(&'static str),
    /// No memory is left for it.
    OutOfMemory,
}

impl LoadError {
    /// The exit status and the text for the user.
    pub fn explain(self) -> (ExitStatus, &'static str) {
        match self {
            LoadError::NotStaticElf(what) => (ExitStatus::NotStaticElf, what),
            LoadError::OutOfMemory => (ExitStatus::OutOfMemory, "not enough memory to load it"),
        }
    }
}

impl From<SpaceError> for LoadError {
    fn from(error: SpaceError) -> Self {
        match error {
            SpaceError::OutOfMemory => LoadError::OutOfMemory,
            SpaceError::BadAddress => {
                LoadError::NotStaticElf("a segment is outside the user half of the address space")
            }
            SpaceError::Overlap => LoadError::NotStaticElf(
                "two segments share a page: link it with page-aligned segments",
            ),
        }
    }
}

/// Where a loaded program begins.
#[derive(Clone, Debug)]
pub struct Start {
    /// Its segments: whole pages, disjoint.
    pub segments: Vec<Range<u64>>,
    /// Its first instruction.
    pub rip: u64,
    /// Its stack pointer.
    pub rsp: u64,
}

/// Maps the program `file` and its stack into `space`. `random` becomes the program's `AT_RANDOM`.
///
/// # Errors
/// The file is not a static x86-64 ELF, or no memory is left.
pub fn load(
    space: &mut AddressSpace,
    file: &[u8],
    words: &[&str],
    random: u128,
) -> Result<Start, LoadError> {
    use LoadError::NotStaticElf;
    let (elf, segments, base) = parse(file)?;
    let mut loaded = Vec::new();
    let mut headers = 0;
    for mut segment in segments.iter().filter(|s| s.p_type == abi::PT_LOAD && s.p_memsz > 0) {
        let moved = segment.p_vaddr.checked_add(base);
        segment.p_vaddr =
            moved.ok_or(NotStaticElf("a segment is outside the user half of the address space"))?;
        loaded.push(load_segment(space, file, &segment)?);
        if segment.p_offset == 0 {
            headers = segment.p_vaddr + elf.ehdr.e_phoff;
        }
    }
    let entry = elf.ehdr.e_entry.checked_add(base).filter(|entry| *entry < USER_END);
    let entry = entry
        .ok_or(NotStaticElf("its entry point is outside the user half of the address space"))?;
    space.map_zeroed(STACK_TOP - STACK_BYTES, STACK_BYTES, PageAccess::Write)?;
    let auxiliary = [
        (AT_PHDR, headers),
        (AT_PHENT, elf.ehdr.e_phentsize.into()),
        (AT_PHNUM, elf.ehdr.e_phnum.into()),
        (AT_PAGESZ, FRAME_BYTES),
        (AT_ENTRY, entry),
        (AT_SECURE, 0),
    ];
    let rsp = push_arguments(space, words, random, &auxiliary)?;
    Ok(Start { segments: loaded, rip: entry, rsp })
}

/// The file as a static x86-64 ELF, its segments, and the address to add to all of its addresses.
fn parse(file: &[u8]) -> Result<(Elf<'_>, SegmentTable<'_, LittleEndian>, u64), LoadError> {
    use LoadError::NotStaticElf;
    let elf = Elf::minimal_parse(file)
        .map_err(|_| NotStaticElf("not a little-endian 64-bit ELF file"))?;
    if elf.ehdr.e_machine != abi::EM_X86_64 || elf.ehdr.class != elf::file::Class::ELF64 {
        return Err(NotStaticElf("an ELF file for another machine than x86-64"));
    }
    let segments = elf.segments().ok_or(NotStaticElf("an ELF file without segments to load"))?;
    if segments.iter().any(|s| s.p_type == abi::PT_INTERP) {
        return Err(NotStaticElf("dynamically linked: link it with -static"));
    }
    let base = match elf.ehdr.e_type {
        abi::ET_EXEC => 0,
        // It relocates itself when it starts.
        abi::ET_DYN => PIE_BASE,
        _ => return Err(NotStaticElf("an object file, not an executable: link it")),
    };
    Ok((elf, segments, base))
}

/// Maps a segment and copies its bytes. Returns its pages.
fn load_segment(
    space: &mut AddressSpace,
    file: &[u8],
    segment: &ProgramHeader,
) -> Result<Range<u64>, LoadError> {
    let bytes = usize::try_from(segment.p_offset)
        .ok()
        .and_then(|start| Some((start, start.checked_add(segment.p_filesz as usize)?)))
        .and_then(|(start, end)| file.get(start..end))
        .filter(|bytes| bytes.len() as u64 <= segment.p_memsz)
        .ok_or(LoadError::NotStaticElf("a segment is outside the file"))?;
    let access = match (segment.p_flags & abi::PF_X != 0, segment.p_flags & abi::PF_W != 0) {
        (true, true) => {
            return Err(LoadError::NotStaticElf(
                "a segment is both writable and executable: separate the two",
            ));
        }
        (true, false) => PageAccess::Execute,
        (false, true) => PageAccess::Write,
        (false, false) => PageAccess::Read,
    };
    let outside =
        LoadError::NotStaticElf("a segment is outside the user half of the address space");
    let start = segment.p_vaddr - segment.p_vaddr % FRAME_BYTES;
    let end = segment.p_vaddr.checked_add(segment.p_memsz).filter(|end| *end <= USER_END);
    let end = end.ok_or(outside)?.next_multiple_of(FRAME_BYTES);
    space.map_zeroed(start, end - start, access)?;
    space.fill(segment.p_vaddr, bytes)?;
    Ok(start..end)
}

/// Puts argument count, pointers and strings on the stack. Returns the stack pointer.
fn push_arguments(
    space: &mut AddressSpace,
    words: &[&str],
    random: u128,
    auxiliary: &[(u64, u64)],
) -> Result<u64, LoadError> {
    let mut strings = String::new();
    let mut offsets = Vec::new();
    for word in words {
        offsets.push(strings.len() as u64);
        strings.push_str(word);
        strings.push('\0');
    }
    if strings.len() > MAX_ARGUMENT_BYTES {
        return Err(LoadError::OutOfMemory);
    }
    let text = STACK_TOP - strings.len() as u64;
    let random_at = (text - size_of_val(&random) as u64) & !15;
    // argc, argv, 0, an empty environment's 0, the auxiliary vector, its end's two.
    let mut stack = Vec::from([words.len() as u64]);
    stack.extend(offsets.iter().map(|offset| text + offset));
    stack.extend([0; 2]);
    stack.extend(auxiliary.iter().flat_map(|(key, value)| [*key, *value]));
    stack.extend([AT_RANDOM, random_at]);
    stack.extend([0; 2]);
    let rsp = (random_at - 8 * stack.len() as u64) & !15;
    let bytes: Vec<u8> = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    space.write(text, strings.as_bytes())?;
    space.write(random_at, &random.to_le_bytes())?;
    space.write(rsp, &bytes)?;
    Ok(rsp)
}
