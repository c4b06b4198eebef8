//! The command line of QEMU's loader: where QEMU has put the kernel and the ramdisk.

use core::fmt;

/// Physical address at which the host makes QEMU put the kernel's file, followed by the ramdisk's.
/// The loader itself is at 1 MiB.
pub const FIRST_FILE: u64 = 2 << 20;
/// Alignment of the files: the ramdisk's pages are used in place, and share sets of the caches with
/// the same other pages wherever the kernel's file ends.
pub const FILE_ALIGNMENT: u64 = 2 << 20;
/// Upper limit of the files' addresses: QEMU's machines have at least this much memory below 4 GiB,
/// if they have that much at all.
pub const FILES_END: u64 = 0xb000_0000;

/// A file in the machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadedFile {
    /// Physical address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
}

/// The loader's command line: `kernel=START,BYTES ramdisk=START,BYTES`, in decimal; then
/// `rsdp=START` if the host has put ACPI's tables there instead of the firmware's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadedFiles {
    /// The kernel's ELF file.
    pub kernel: LoadedFile,
    /// The ramdisk.
    pub ramdisk: LoadedFile,
    /// Physical address of the pointer to ACPI's tables, if they are not the firmware's.
    pub rsdp: Option<u64>,
}

impl LoadedFiles {
    /// Places files of these lengths, in bytes, after each other; `None` if they do not fit below
    /// [`FILES_END`].
    #[must_use]
    pub fn place(kernel: u64, ramdisk: u64) -> Option<LoadedFiles> {
        let kernel = LoadedFile { start: FIRST_FILE, len: kernel };
        let ramdisk = LoadedFile { start: kernel.end_block()?, len: ramdisk };
        let files = LoadedFiles { kernel, ramdisk, rsdp: None };
        (files.ramdisk.end_block()? <= FILES_END).then_some(files)
    }

    /// The first aligned address after both files.
    #[must_use]
    pub fn end(&self) -> Option<u64> {
        Some(self.kernel.end_block()?.max(self.ramdisk.end_block()?))
    }

    /// Parses the command line; `None` if it is malformed.
    #[must_use]
    pub fn parse(line: &str) -> Option<LoadedFiles> {
        let mut words = line.split_ascii_whitespace();
        let mut file = |key: &str| {
            let value = words.next()?.strip_prefix(key)?.strip_prefix('=')?;
            let (start, len) = value.split_once(',')?;
            Some(LoadedFile { start: start.parse().ok()?, len: len.parse().ok()? })
        };
        let (kernel, ramdisk) = (file("kernel")?, file("ramdisk")?);
        let rsdp = match words.next() {
            Some(word) => Some(word.strip_prefix("rsdp=")?.parse().ok()?),
            None => None,
        };
        words.next().is_none().then_some(LoadedFiles { kernel, ramdisk, rsdp })
    }
}

impl LoadedFile {
    fn end_block(&self) -> Option<u64> {
        self.start.checked_add(self.len)?.checked_next_multiple_of(FILE_ALIGNMENT)
    }
}

impl fmt::Display for LoadedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoadedFiles { kernel, ramdisk, rsdp } = self;
        write!(
            f,
            "kernel={},{} ramdisk={},{}",
            kernel.start, kernel.len, ramdisk.start, ramdisk.len
        )?;
        rsdp.map_or(Ok(()), |rsdp| write!(f, " rsdp={rsdp}"))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn the_loader_reads_what_the_host_writes() {
        let files = LoadedFiles::place(5000, 1).unwrap();
        assert_eq!(files.to_string(), "kernel=2097152,5000 ramdisk=4194304,1");
        assert_eq!(LoadedFiles::parse(&files.to_string()), Some(files));
        let files = LoadedFiles { rsdp: Some(7), ..files };
        assert!(files.to_string().ends_with(",1 rsdp=7"));
        assert_eq!(LoadedFiles::parse(&files.to_string()), Some(files));
        assert_eq!(files.end(), Some(6_291_456));
        for bad in ["", "kernel=1,2", "ramdisk=1,2 kernel=1,2", "kernel=1,2 ramdisk=1,2 x=1,2"] {
            assert_eq!(LoadedFiles::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn files_do_not_overlap_and_fit_or_are_refused() {
        let most = FILES_END - FIRST_FILE;
        assert!(LoadedFiles::place(most - FILE_ALIGNMENT, FILE_ALIGNMENT).is_some());
        assert_eq!(LoadedFiles::place(most, 1), None);
        assert_eq!(LoadedFiles::place(1, u64::MAX - 1), None);
    }
}
