//! x86-64 ELF programs: segments, entry point and interpreter, or the reason why a file is not one.
//!
//! Pure: the kernel loads programs with it, and the host uses it to refuse a file before a boot. A
//! refusal describes the file, and the remedy if that is not obvious.
//!
//! Invariant: the bytes of every segment of a [`Program`] lie within the file, and its addresses
//! fit in 64 bits.

#![no_std]

extern crate alloc;

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use elf::{
    abi,
    endian::LittleEndian,
    file::{Class, FileHeader},
    segment::{ProgramHeader, SegmentTable},
};

/// Load address of position-independent programs, fixed for reproducible runs.
pub const PIE_BASE: u64 = 0x5555_5555_4000;
/// Load address of interpreters: above all that `mmap` gives out, far below the stack.
const INTERPRETER_BASE: u64 = 0x7fff_0000_0000;
/// Machine types that a refusal can name.
const MACHINES: [(u16, &str); 5] = [
    (abi::EM_386, "32-bit x86"),
    (abi::EM_ARM, "32-bit Arm"),
    (abi::EM_X86_64, "32-bit pointers on x86-64"),
    (abi::EM_AARCH64, "64-bit Arm"),
    (abi::EM_RISCV, "RISC-V"),
];
/// Size of a page.
const PAGE_BYTES: u64 = 4096;
/// Size of a program header, `Elf64_Phdr`.
const PROGRAM_HEADER_BYTES: u64 = 56;
/// The file ends too early, or its headers contradict each other.
const DAMAGED: &str = "a damaged ELF file: it may be truncated";
/// A segment or the entry point has an address that no program can have.
pub const OUTSIDE: &str = "a segment is outside the user half of the address space";

/// An x86-64 program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program<'a> {
    /// Address that loading adds to the addresses in the file: 0, or the fixed base of
    /// position-independent programs.
    pub base: u64,
    /// Segments to load, in the order of the file.
    pub segments: Vec<Segment<'a>>,
    /// Address of the first instruction.
    pub entry: u64,
    /// Address of the program headers; 0 if no segment has them.
    pub headers: u64,
    /// Size of a program header in bytes.
    pub header_bytes: u16,
    /// Number of program headers.
    pub header_count: u16,
    /// Path of the interpreter, which loads the libraries of a dynamic program; `None` for a static
    /// one.
    pub interpreter: Option<&'a str>,
    /// Whether the program executes code on its stack.
    pub has_executable_stack: bool,
}

/// A segment to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Address of the first byte.
    pub start: u64,
    /// Address after the last byte.
    pub end: u64,
    /// Initial bytes from the file; the rest of the segment is zero.
    pub bytes: &'a [u8],
    /// Whether the segment is writable.
    pub is_writable: bool,
    /// Whether the segment is executable.
    pub is_executable: bool,
}

impl Program<'_> {
    /// Parses the file of a program.
    ///
    /// # Errors
    /// Describes the file if it is not an x86-64 ELF program.
    pub fn parse(file: &[u8]) -> Result<Program<'_>, Cow<'static, str>> {
        parse_at(file, PIE_BASE)
    }

    /// Parses the file of an interpreter, which is loaded elsewhere than programs.
    ///
    /// # Errors
    /// Describes the file if it is not an x86-64 ELF program that needs no interpreter itself.
    pub fn parse_interpreter(file: &[u8]) -> Result<Program<'_>, Cow<'static, str>> {
        let parsed = parse_at(file, INTERPRETER_BASE)?;
        if parsed.interpreter.is_some() || parsed.base == 0 {
            return Err("an interpreter is static and position-independent".into());
        }
        Ok(parsed)
    }
}

/// Parses a file that is loaded at `base` if it is position-independent.
fn parse_at(file: &[u8], base: u64) -> Result<Program<'_>, Cow<'static, str>> {
    let header = for_this_machine(file)?;
    let base = match header.e_type {
        abi::ET_EXEC => 0,
        // A position-independent program or its interpreter relocates it when it starts.
        abi::ET_DYN => base.checked_next_multiple_of(alignment(file, &header)?).ok_or(OUTSIDE)?,
        kind => return Err(not_executable(kind).into()),
    };
    let mut program = Program {
        base,
        segments: Vec::new(),
        entry: header.e_entry.checked_add(base).ok_or(OUTSIDE)?,
        headers: 0,
        header_bytes: header.e_phentsize,
        header_count: header.e_phnum,
        interpreter: None,
        has_executable_stack: false,
    };
    for mut part in program_headers(file, &header)? {
        match part.p_type {
            abi::PT_INTERP => program.interpreter = Some(text(file, &part)?),
            abi::PT_GNU_STACK => program.has_executable_stack = part.p_flags & abi::PF_X != 0,
            abi::PT_LOAD if part.p_memsz > 0 => {
                part.p_vaddr = part.p_vaddr.checked_add(base).ok_or(OUTSIDE)?;
                program.segments.push(segment(file, &part)?);
                if let Some(offset) = header.e_phoff.checked_sub(part.p_offset)
                    && offset < part.p_filesz
                {
                    program.headers = part.p_vaddr.saturating_add(offset);
                }
            }
            _ => (),
        }
    }
    if program.segments.is_empty() {
        return Err("an ELF file without segments to load".into());
    }
    Ok(program)
}

/// Parses the header of an ELF file for 64-bit x86-64. Like Linux, it reads neither the fields that
/// describe the system and the version nor the section headers, which tools may have removed.
fn for_this_machine(file: &[u8]) -> Result<FileHeader<LittleEndian>, Cow<'static, str>> {
    if !file.starts_with(&abi::ELFMAGIC) {
        return Err(no_elf(file));
    }
    let class = match file.get(abi::EI_CLASS).ok_or(DAMAGED)? {
        &abi::ELFCLASS32 => Class::ELF32,
        _ => Class::ELF64,
    };
    let tail = file.get(abi::EI_NIDENT..).ok_or(DAMAGED)?;
    let header = FileHeader::parse_tail((LittleEndian, class, 0, 0), tail).map_err(|_| DAMAGED)?;
    if header.e_machine != abi::EM_X86_64 || class != Class::ELF64 {
        return Err(foreign(header.e_machine));
    }
    Ok(header)
}

/// The program headers.
fn program_headers<'a>(
    file: &'a [u8],
    header: &FileHeader<LittleEndian>,
) -> Result<impl Iterator<Item = ProgramHeader> + use<'a>, &'static str> {
    let bytes = u64::from(header.e_phnum) * PROGRAM_HEADER_BYTES;
    let end = header.e_phoff.checked_add(bytes).ok_or(DAMAGED)?;
    let table = usize::try_from(header.e_phoff).ok().zip(usize::try_from(end).ok());
    let table = table.and_then(|(start, end)| file.get(start..end)).ok_or(DAMAGED)?;
    if bytes > 0 && u64::from(header.e_phentsize) != PROGRAM_HEADER_BYTES {
        return Err(DAMAGED);
    }
    Ok(SegmentTable::new(LittleEndian, Class::ELF64, table).iter())
}

/// The largest alignment of a segment, at least a page: as under Linux, the first address of a
/// position-independent program is a multiple of it.
fn alignment(file: &[u8], header: &FileHeader<LittleEndian>) -> Result<u64, &'static str> {
    let loaded = program_headers(file, header)?.filter(|part| part.p_type == abi::PT_LOAD);
    let aligned = loaded.map(|part| part.p_align).filter(|align| align.is_power_of_two());
    Ok(aligned.max().unwrap_or(0).max(PAGE_BYTES))
}

/// The reason why an ELF file of this kind cannot run.
fn not_executable(kind: u16) -> &'static str {
    match kind {
        abi::ET_REL => "an object file, not an executable: link it",
        _ => "an ELF file, but no executable",
    }
}

/// The bytes of the file that a header names.
fn bytes_of<'a>(file: &'a [u8], header: &ProgramHeader) -> Option<&'a [u8]> {
    let range = header.p_offset..header.p_offset.checked_add(header.p_filesz)?;
    file.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}

/// The path in an interpreter's header, up to its zero byte.
fn text<'a>(file: &'a [u8], header: &ProgramHeader) -> Result<&'a str, &'static str> {
    let bytes = bytes_of(file, header).ok_or(DAMAGED)?;
    let path = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let path = core::str::from_utf8(path).ok().filter(|path| path.starts_with('/'));
    path.ok_or("its interpreter has no path: link it again")
}

/// The reason why a file is no ELF file; for a script its interpreter.
fn no_elf(file: &[u8]) -> Cow<'static, str> {
    let Some(line) = file.strip_prefix(b"#!").and_then(|rest| rest.split(|b| *b == b'\n').next())
    else {
        return "not an ELF file".into();
    };
    let line = String::from_utf8_lossy(line);
    let interpreter = &line[..line.floor_char_boundary(100)];
    format!(
        "a script, not an ELF file: run its interpreter, {}, and give it the script with --file",
        interpreter.trim()
    )
    .into()
}

fn segment<'a>(file: &'a [u8], header: &ProgramHeader) -> Result<Segment<'a>, &'static str> {
    let bytes = bytes_of(file, header)
        .filter(|bytes| bytes.len() as u64 <= header.p_memsz)
        .ok_or("a segment is outside the file: it may be truncated")?;
    let (is_writable, is_executable) =
        (header.p_flags & abi::PF_W != 0, header.p_flags & abi::PF_X != 0);
    let (start, end) = (header.p_vaddr, header.p_vaddr.checked_add(header.p_memsz));
    Ok(Segment { start, end: end.ok_or(OUTSIDE)?, bytes, is_writable, is_executable })
}

fn foreign(machine: u16) -> Cow<'static, str> {
    let known = MACHINES.iter().find(|(number, _)| *number == machine);
    let name = known.map_or("another machine", |(_, name)| name);
    format!("an ELF file for {name}: build it for x86-64, 64-bit").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: usize = 64;
    const SEGMENT: usize = 56;

    /// An ELF file of `kind` with the given segments (type, flags, bytes), each from the file's
    /// start.
    fn file(kind: u16, machine: u16, segments: &[(u32, u32, u64)]) -> Vec<u8> {
        let mut bytes = Vec::from(*b"\x7fELF\x02\x01\x01");
        bytes.resize(16, 0);
        bytes.extend(kind.to_le_bytes());
        bytes.extend(machine.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend([0x40_0010_u64, HEADER as u64, 0].map(u64::to_le_bytes).concat());
        bytes.extend(0_u32.to_le_bytes());
        let sizes = [HEADER, SEGMENT, segments.len(), 0, 0, 0];
        bytes.extend(sizes.map(|size| (size as u16).to_le_bytes()).concat());
        for (kind, flags, length) in segments {
            bytes.extend([kind.to_le_bytes(), flags.to_le_bytes()].concat());
            let words = [0, 0x40_0000, 0x40_0000, *length, length + 8, 4096];
            bytes.extend(words.map(u64::to_le_bytes).concat());
        }
        bytes
    }

    fn refused(bytes: &[u8]) -> String {
        Program::parse(bytes).unwrap_err().into_owned()
    }

    const CODE: (u32, u32, u64) = (abi::PT_LOAD, abi::PF_R | abi::PF_X, 100);

    #[test]
    fn a_static_program_has_its_segments_where_it_is_linked() {
        let bytes = file(abi::ET_EXEC, abi::EM_X86_64, &[CODE]);
        let program = Program::parse(&bytes).unwrap();
        let expected = Segment {
            start: 0x40_0000,
            end: 0x40_006c,
            bytes: &bytes[..100],
            is_writable: false,
            is_executable: true,
        };
        assert_eq!(program.segments, [expected]);
        assert_eq!((program.entry, program.headers), (0x40_0010, 0x40_0040));
        assert_eq!((program.header_bytes, program.header_count), (56, 1));
        let moved = file(abi::ET_DYN, abi::EM_X86_64, &[CODE]);
        assert_eq!(Program::parse(&moved).unwrap().entry, PIE_BASE + 0x40_0010);
    }

    #[test]
    fn a_position_independent_program_has_the_alignment_of_its_segments() {
        let mut bytes = file(abi::ET_DYN, abi::EM_X86_64, &[CODE]);
        let mut base = |align: u64| {
            bytes[HEADER + 48..HEADER + 56].copy_from_slice(&align.to_le_bytes());
            Program::parse(&bytes).map(|program| program.base)
        };
        assert_eq!(base(2 << 20), Ok(0x5555_5560_0000));
        for ignored in [0, 1, 4095, 4096, 3 << 20] {
            assert_eq!(base(ignored), Ok(PIE_BASE), "{ignored}");
        }
        assert_eq!(base(1 << 63), Ok(1 << 63));
    }

    #[test]
    fn a_dynamic_program_names_its_interpreter() {
        let mut bytes = file(abi::ET_DYN, abi::EM_X86_64, &[CODE, (abi::PT_INTERP, 4, 8)]);
        let program = Program::parse(&bytes).unwrap_err();
        assert_eq!(program, "its interpreter has no path: link it again");
        // The header's offset in the file, then the path behind all headers.
        let at = bytes.len();
        let offset = HEADER + SEGMENT + 8;
        bytes[offset..offset + 8].copy_from_slice(&(at as u64).to_le_bytes());
        bytes.extend(b"/ld.so\0x");
        let program = Program::parse(&bytes).unwrap();
        assert_eq!((program.interpreter, program.segments.len()), (Some("/ld.so"), 1));
        assert!(Program::parse_interpreter(&bytes).is_err());
        let own = file(abi::ET_DYN, abi::EM_X86_64, &[CODE]);
        let own = Program::parse_interpreter(&own).unwrap();
        assert_eq!((own.base, own.interpreter), (INTERPRETER_BASE, None));
    }

    #[test]
    fn a_refusal_says_what_the_file_is() {
        let of = |kind, machine, segments: &[_]| refused(&file(kind, machine, segments));
        let exec = |segments: &[_]| of(abi::ET_EXEC, abi::EM_X86_64, segments);
        for (why, part) in [
            (refused(b""), "not an ELF file"),
            (
                refused(b"#!/bin/sh -e\necho"),
                "a script, not an ELF file: run its interpreter, /bin/sh -e, ",
            ),
            (of(abi::ET_EXEC, abi::EM_AARCH64, &[CODE]), "64-bit Arm: build it for x86-64"),
            (of(abi::ET_EXEC, 9999, &[CODE]), "another machine"),
            (of(abi::ET_REL, abi::EM_X86_64, &[]), "an object file, not an executable: link it"),
            (of(abi::ET_CORE, abi::EM_X86_64, &[CODE]), "no executable"),
            (exec(&[]), "without segments"),
            (exec(&[(abi::PT_INTERP, 4, 4), CODE]), "its interpreter has no path"),
            (exec(&[(abi::PT_INTERP, 4, 4000), CODE]), "it may be truncated"),
            (exec(&[(abi::PT_LOAD, 4, 1000)]), "outside the file: it may be truncated"),
            (exec(&[(abi::PT_LOAD, 4, u64::MAX - 8)]), "it may be truncated"),
        ] {
            assert!(why.contains(part), "{part}: {why}");
        }
    }

    #[test]
    fn a_program_needs_only_what_linux_reads() {
        let mut bytes = file(abi::ET_EXEC, abi::EM_X86_64, &[CODE]);
        let plain = Program::parse(&bytes).unwrap().entry;
        // Byte order, version, system and its version; section headers that are not in the file.
        bytes[5..9].copy_from_slice(&[0, 7, 0x41, 9]);
        bytes[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
        bytes[58..64].copy_from_slice(&[0, 0, 3, 0, 9, 0]);
        assert_eq!(Program::parse(&bytes).unwrap().entry, plain);
        // The program headers lie elsewhere in the file: in no segment, and in one.
        let (table, at) = (bytes[HEADER..HEADER + SEGMENT].to_vec(), bytes.len() as u64);
        bytes.extend(table);
        bytes[32..40].copy_from_slice(&at.to_le_bytes());
        let headers = |bytes: &[u8]| Program::parse(bytes).unwrap().headers;
        assert_eq!(headers(&bytes), 0);
        let bytes_in_file = at as usize + 32;
        for field in [bytes_in_file, bytes_in_file + 8] {
            bytes[field..field + 8].copy_from_slice(&(at + 8).to_le_bytes());
        }
        assert_eq!(headers(&bytes), 0x40_0000 + at);
        bytes[54] = 64;
        assert!(refused(&bytes).contains("damaged"));
    }

    #[test]
    fn a_segment_may_be_writable_and_executable() {
        let bytes = file(abi::ET_EXEC, abi::EM_X86_64, &[(abi::PT_LOAD, 3, 10)]);
        let program = Program::parse(&bytes).unwrap();
        let Segment { is_writable, is_executable, .. } = program.segments[0];
        assert!(is_writable && is_executable);
    }

    #[test]
    fn every_truncation_is_refused() {
        let whole = file(abi::ET_EXEC, abi::EM_X86_64, &[CODE]);
        for length in 0..whole.len() {
            let why = refused(&whole[..length]);
            assert!(why.contains("truncated") || length < 4 && why == "not an ELF file", "{why}");
        }
        assert!(Program::parse(&whole).is_ok());
    }
}
