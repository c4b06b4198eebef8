//! Files that look like position-independent programs, and are the shared libraries of others.

use object::{
    LittleEndian, elf,
    read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader},
};

/// Returns whether an x86-64 ELF file is a shared library that cannot run by itself: it has neither
/// an interpreter nor the mark of a static program, and no entry, or libraries that only an
/// interpreter could load. An interpreter, which is a library too, needs none.
pub fn is_shared_library(bytes: &[u8]) -> bool {
    let Ok(file) = ElfFile64::<LittleEndian>::parse(bytes) else { return false };
    let (header, endian) = (file.elf_header(), LittleEndian);
    let segments = file.elf_program_headers();
    let has_interpreter = segments.iter().any(|it| it.p_type(endian) == elf::PT_INTERP);
    if header.e_type(endian) != elf::ET_DYN || has_interpreter {
        return false;
    }
    let dynamic = segments.iter().filter_map(|it| it.dynamic(endian, bytes).ok().flatten());
    let entries: Vec<_> =
        dynamic.flatten().map(|entry| (entry.d_tag(endian), entry.d_val(endian))).collect();
    let is_program = entries
        .iter()
        .any(|(tag, value)| *tag == elf::DT_FLAGS_1 && value & u64::from(elf::DF_1_PIE) != 0);
    let needs_others = entries.iter().any(|(tag, _)| *tag == elf::DT_NEEDED);
    !is_program && (header.e_entry(endian) == 0 || needs_others)
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use tally_elf::Program;

    use super::*;

    #[test]
    fn a_library_is_none_of_the_kinds_of_programs() {
        let folder = std::env::temp_dir().join(format!("tally-library-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.c"), "void _start(void) { for (;;) ; }").unwrap();
        fs::write(folder.join("b.c"), "int f(int x) { return x + 1; }").unwrap();
        let is_library = |words: &str| {
            let mut call = Command::new("cc");
            call.args(words.split(' ')).args(["-o", "made"]).current_dir(&folder);
            assert!(call.status().unwrap().success(), "{words}");
            is_shared_library(&fs::read(folder.join("made")).unwrap())
        };
        for library in ["-shared -fPIC b.c", "-shared -fPIC -nostdlib b.c"] {
            assert!(is_library(library), "{library}");
        }
        for program in ["-nostdlib -static-pie -fPIE a.c", "-nostdlib -static a.c"] {
            assert!(!is_library(program), "{program}");
        }
        let this = fs::read(std::env::current_exe().unwrap()).unwrap();
        let interpreter = Program::parse(&this).unwrap().interpreter.unwrap();
        assert!(!is_shared_library(&this) && !is_shared_library(&fs::read(interpreter).unwrap()));
        assert!(!is_shared_library(b"#!/bin/sh"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
