//! Static x86-64 ELF programs: segments and entry point, or the reason why a file is not one.
//!
//! Pure: the kernel loads programs with it, and the host uses it to refuse a file before a boot. A
//! refusal describes the file, and the remedy if that is not obvious.
//!
//! Invariant: the bytes of every segment of a [`Program`] lie within the file, and its addresses
//! fit in 64 bits.

#![no_std]

extern crate alloc;

use alloc::{borrow::Cow, format, string::String, vec::Vec};

use elf::{ElfBytes, abi, endian::LittleEndian, segment::ProgramHeader};

/// Load address of position-independent programs, fixed for reproducible runs.
const PIE_BASE: u64 = 0x5555_5555_4000;
/// Machine types that a refusal can name.
const MACHINES: [(u16, &str); 5] = [
    (abi::EM_386, "32-bit x86"),
    (abi::EM_ARM, "32-bit Arm"),
    (abi::EM_X86_64, "32-bit pointers on x86-64"),
    (abi::EM_AARCH64, "64-bit Arm"),
    (abi::EM_RISCV, "RISC-V"),
];
/// A segment or the entry point has an address that no program can have.
pub const OUTSIDE: &str = "a segment is outside the user half of the address space";

/// A static x86-64 program.
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
    /// Whether the segment is writable; it is then not executable.
    pub is_writable: bool,
    /// Whether the segment is executable.
    pub is_executable: bool,
}

impl Program<'_> {
    /// Parses a file.
    ///
    /// # Errors
    /// Describes the file if it is not a static x86-64 ELF program.
    pub fn parse(file: &[u8]) -> Result<Program<'_>, Cow<'static, str>> {
        if !file.starts_with(&abi::ELFMAGIC) {
            return Err("not an ELF file".into());
        }
        let damaged = "a damaged ELF file: it may be truncated";
        let elf = ElfBytes::<LittleEndian>::minimal_parse(file).map_err(|_| damaged)?;
        let header = &elf.ehdr;
        if header.e_machine != abi::EM_X86_64 || header.class != elf::file::Class::ELF64 {
            return Err(foreign(header.e_machine));
        }
        let base = match header.e_type {
            abi::ET_EXEC => 0,
            // A static position-independent program relocates itself when it starts.
            abi::ET_DYN => PIE_BASE,
            abi::ET_REL => return Err("an object file, not an executable: link it".into()),
            _ => return Err("an ELF file, but no executable".into()),
        };
        let all = elf.segments().ok_or("an ELF file without segments to load")?;
        if let Some(interpreter) = all.iter().find(|s| s.p_type == abi::PT_INTERP) {
            return Err(dynamic(file, &interpreter));
        }
        let (mut segments, mut headers) = (Vec::new(), 0);
        for mut header in all.iter().filter(|s| s.p_type == abi::PT_LOAD && s.p_memsz > 0) {
            header.p_vaddr = header.p_vaddr.checked_add(base).ok_or(OUTSIDE)?;
            segments.push(segment(file, &header)?);
            if header.p_offset == 0 {
                headers = header.p_vaddr.saturating_add(elf.ehdr.e_phoff);
            }
        }
        if segments.is_empty() {
            return Err("an ELF file without segments to load".into());
        }
        let entry = header.e_entry.checked_add(base).ok_or(OUTSIDE)?;
        let (header_bytes, header_count) = (header.e_phentsize, header.e_phnum);
        Ok(Program { base, segments, entry, headers, header_bytes, header_count })
    }
}

fn segment<'a>(file: &'a [u8], header: &ProgramHeader) -> Result<Segment<'a>, &'static str> {
    let range = header.p_offset..header.p_offset.saturating_add(header.p_filesz);
    let bytes = usize::try_from(range.start)
        .ok()
        .zip(usize::try_from(range.end).ok())
        .and_then(|(start, end)| file.get(start..end))
        .filter(|bytes| bytes.len() as u64 <= header.p_memsz)
        .ok_or("a segment is outside the file: it may be truncated")?;
    let (is_writable, is_executable) =
        (header.p_flags & abi::PF_W != 0, header.p_flags & abi::PF_X != 0);
    if is_writable && is_executable {
        return Err("a segment is both writable and executable: separate the two");
    }
    let (start, end) = (header.p_vaddr, header.p_vaddr.checked_add(header.p_memsz));
    Ok(Segment { start, end: end.ok_or(OUTSIDE)?, bytes, is_writable, is_executable })
}

fn foreign(machine: u16) -> Cow<'static, str> {
    let known = MACHINES.iter().find(|(number, _)| *number == machine);
    let name = known.map_or("another machine", |(_, name)| name);
    format!("an ELF file for {name}: build it for x86-64, 64-bit").into()
}

/// Refusal of a program whose segment `interpreter` names a dynamic loader.
fn dynamic(file: &[u8], interpreter: &ProgramHeader) -> Cow<'static, str> {
    let start = usize::try_from(interpreter.p_offset).unwrap_or(usize::MAX);
    let name = file.get(start..).unwrap_or_default().split(|byte| *byte == 0).next();
    let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
    let name = &name[..name.floor_char_boundary(100)];
    format!(
        "dynamically linked, with the interpreter {name}: link it statically (cc -static; Rust: \
         -C target-feature=+crt-static; Go: CGO_ENABLED=0)"
    )
    .into()
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
    fn a_refusal_says_what_the_file_is() {
        let of = |kind, machine, segments: &[_]| refused(&file(kind, machine, segments));
        let exec = |segments: &[_]| of(abi::ET_EXEC, abi::EM_X86_64, segments);
        for (why, part) in [
            (refused(b""), "not an ELF file"),
            (refused(b"#!/bin/sh\n"), "not an ELF file"),
            (of(abi::ET_EXEC, abi::EM_AARCH64, &[CODE]), "64-bit Arm: build it for x86-64"),
            (of(abi::ET_EXEC, 9999, &[CODE]), "another machine"),
            (of(abi::ET_REL, abi::EM_X86_64, &[]), "an object file, not an executable: link it"),
            (of(abi::ET_CORE, abi::EM_X86_64, &[CODE]), "no executable"),
            (exec(&[]), "without segments"),
            (exec(&[(abi::PT_INTERP, 4, 4), CODE]), "with the interpreter \x7fELF"),
            (exec(&[(abi::PT_LOAD, 3, 10)]), "both writable and executable"),
            (exec(&[(abi::PT_LOAD, 4, 1000)]), "outside the file: it may be truncated"),
            (exec(&[(abi::PT_LOAD, 4, u64::MAX - 8)]), "it may be truncated"),
        ] {
            assert!(why.contains(part), "{part}: {why}");
        }
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
