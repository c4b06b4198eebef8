//! Programs of a few known instructions, which a script writes under Linux.

/// Address at which a program is loaded; its code is behind the headers.
const BASE: u64 = 0x40_0000;
/// Bytes of the headers.
const HEADERS: u64 = 0x78;

/// Shell command that writes the program to a file: an ELF file of one segment, with `code` at
/// [`BASE`] + [`HEADERS`].
pub fn write(code: &[u8], path: &str) -> String {
    // A string takes every byte so.
    let octal: String = elf(code).iter().map(|byte| format!("\\{byte:03o}")).collect();
    format!("printf '{octal}' > {path}; chmod 755 {path}\n")
}

fn elf(code: &[u8]) -> Vec<u8> {
    let bytes = HEADERS + code.len() as u64;
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(16, 0);
    // An executable for x86-64; its one program header follows this one.
    elf.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    elf.extend([BASE + HEADERS, 64, 0].into_iter().flat_map(u64::to_le_bytes));
    elf.extend([0, 0, 64, 56, 1, 0, 0, 0].into_iter().flat_map(u16::to_le_bytes));
    // Loaded, readable and executable.
    elf.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    elf.extend([0, BASE, BASE, bytes, bytes, 0x1000].into_iter().flat_map(u64::to_le_bytes));
    elf.extend(code);
    elf
}
