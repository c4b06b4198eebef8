//! The files with code that a machine had: with them the addresses in a trace have names, also
//! later, and a file that is another build by then is recognized.

use std::{
    fmt::Write as _,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use object::{Object, ObjectSegment};
use serde::{Deserialize, Serialize};

use crate::{Failure, Result, guest_files::GuestFile, project};

/// First bytes of an ELF file.
const ELF: [u8; 4] = *b"\x7fELF";

/// The files with code that was sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeFiles {
    /// All files of the ramdisk that have code, if programs were sampled.
    pub ramdisk: Vec<CodeFile>,
    /// The kernel's file, if ring 0 was sampled.
    pub kernel: Option<KernelFile>,
}

/// The kernel's file on the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFile {
    /// Path of the file, which has the symbols.
    pub host: PathBuf,
    /// The build: [`identity`] of the file.
    pub identity: String,
}

impl KernelFile {
    /// The kernel whose symbols are in `symbols`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(symbols: &Path) -> Result<KernelFile> {
        let identity = identity(&project::read(symbols)?);
        let host = symbols.canonicalize().map_err(|e| Failure::io("read", symbols, &e))?;
        Ok(KernelFile { host, identity })
    }
}

/// A file of the machine that has code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeFile {
    /// Path on the machine, without a leading `/`.
    pub guest: String,
    /// Path on the host. The file has the symbols, which the machine's file may lack.
    pub host: PathBuf,
    /// Offset in the ramdisk of the machine's file, by which the trace names it.
    pub ramdisk_offset: u64,
    /// The build: [`identity`] of the host's file.
    pub identity: String,
}

impl CodeFile {
    /// The files of a ramdisk that have code, each with its symbols in a file of `hosts`. A file
    /// that cannot be read has changed while the machine ran, and is left out.
    ///
    /// # Errors
    /// The ramdisk cannot be read.
    pub fn all(ramdisk: &Path, hosts: &[GuestFile]) -> Result<Vec<CodeFile>> {
        let failed = |error| Failure::io("read", ramdisk, &error);
        let archive = File::open(ramdisk).map_err(failed)?;
        let mut archive = tar::Archive::new(archive);
        let mut all = Vec::new();
        for entry in archive.entries_with_seek().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            let guest = entry.path().map_err(failed)?.to_string_lossy().into_owned();
            let ramdisk_offset = entry.raw_file_position();
            let mut first = [0; ELF.len()];
            if entry.read_exact(&mut first).is_err() || first != ELF {
                continue;
            }
            let Some(file) = hosts.iter().find(|file| file.guest == guest) else { continue };
            let Ok(bytes) = project::read(&file.host) else { continue };
            let host = file.host.canonicalize().unwrap_or_else(|_| file.host.clone());
            let identity = identity(&bytes);
            all.push(CodeFile { guest, host, ramdisk_offset, identity });
        }
        Ok(all)
    }

    /// The name without folders.
    pub fn name(&self) -> &str {
        self.guest.rsplit('/').next().unwrap_or_default()
    }
}

/// Identity of a build of a file: the linker's build id; of a file without one the CRC-32 of its
/// code. A file with symbols shares both with its stripped copy.
pub fn identity(bytes: &[u8]) -> String {
    let file = object::File::parse(bytes).ok();
    let build_id = file.as_ref().map(build_id).unwrap_or_default();
    if build_id.is_empty() {
        let crc = file.as_ref().map_or(0, crc_of_code);
        return format!("no build id, CRC-32 of the code {crc:08x}");
    }
    build_id.iter().fold("build id ".to_owned(), |mut text, byte| {
        // Writing to a string cannot fail.
        _ = write!(text, "{byte:02x}");
        text
    })
}

/// The linker's build id of a file; empty without one.
pub fn build_id(file: &object::File<'_>) -> Vec<u8> {
    file.build_id().ok().flatten().unwrap_or_default().to_vec()
}

/// The CRC-32 of the bytes of a file's executable segments.
fn crc_of_code(file: &object::File<'_>) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    for segment in file.segments().filter(|segment| segment.permissions().executable()) {
        crc.update(segment.data().unwrap_or_default());
    }
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripped_file_is_the_same_build_and_another_file_is_not() {
        let this = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&this).unwrap();
        let folder = std::env::temp_dir().join(format!("tally-identity-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let strip = |options: &[&str], name: &str| {
            let path = folder.join(name);
            let mut call = std::process::Command::new("objcopy");
            assert!(call.args(options).arg(&this).arg(&path).status().unwrap().success());
            std::fs::read(path).unwrap()
        };
        let stripped = strip(&["--strip-all"], "stripped");
        assert_ne!(stripped.len(), bytes.len());
        assert_eq!(identity(&stripped), identity(&bytes));
        let without = strip(&["--remove-section", ".note.gnu.build-id"], "without");
        let both =
            strip(&["--strip-all", "--remove-section", ".note.gnu.build-id"], "stripped-without");
        assert!(identity(&without).starts_with("no build id, CRC-32"), "{}", identity(&without));
        assert_eq!(identity(&both), identity(&without));
        assert_ne!(identity(&without), identity(b"no ELF file"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
