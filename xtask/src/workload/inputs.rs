//! The files and the programs of a workload, with their paths on the machine. They are determined
//! before anything is built.

use std::path::Path;

use tally_abi::ExitStatus;

use crate::{
    Failure, Result, build,
    guest_files::{self, GuestFile},
    job::Job,
    machine, program_words, ramdisk,
};

/// The files of the words of `--file`, and the one of `--stdin`; and the path of the latter on the
/// machine.
///
/// # Errors
/// A file is missing, or has no path on the machine.
/// One is missing, or has no path on the machine.
pub(super) fn files(
    words: &[String],
    stdin: Option<&Path>,
) -> Result<(Vec<GuestFile>, Option<String>)> {
    let mut files = guest_files::expand(words)?;
    let Some(input) = stdin else { return Ok((files, None)) };
    if !input.is_file() {
        let why = format!("{}: no such file", input.display());
        return Err(Failure::new(ExitStatus::ProgramNotFound, why));
    }
    let known = files.iter().find(|file| file.host == input).map(|file| file.guest.clone());
    let path = known.unwrap_or_else(|| {
        let file = GuestFile::by_name(input);
        files.push(file.clone());
        file.guest
    });
    Ok((files, Some(path)))
}

/// Checks that files have different paths, other than Tally's own, and fit into the memory.
///
/// # Errors
/// Paths are equal, or the files do not fit.
pub(super) fn check(files: &[GuestFile], memory_mib: Option<u64>) -> Result<()> {
    let own = [&build::PROGRAM_NAMES[..], &[ramdisk::CORPUS]].concat();
    let bytes = guest_files::check(files, &own)?;
    machine::memory_for(bytes, memory_mib).map(drop)
}

/// Replaces the names of programs by their paths on the machine, in `programs`, each with its
/// arguments, or in the job if there are none.
///
/// # Errors
/// A program is missing or is not a static x86-64 ELF file.
pub(super) fn locate(
    files: &[GuestFile],
    programs: &mut [Vec<String>],
    job: &mut Job,
) -> Result<()> {
    let locate = |name: &mut String| -> Result<()> {
        if let Some(path) = guest_files::program(files, &build::PROGRAM_NAMES, name)? {
            *name = path;
        }
        Ok(())
    };
    if programs.is_empty() {
        job.program.iter_mut().try_for_each(locate)?;
    }
    for words in programs {
        let index = program_words::program_index(words);
        words.get_mut(index).map_or(Ok(()), locate)?;
    }
    Ok(())
}
