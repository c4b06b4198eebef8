//! The files and the programs of a workload, with their paths on the machine. They are determined
//! before anything is built.

use std::env;

use super::stdin::Input;
use crate::{
    Result, build,
    guest_files::{self, GuestFile},
    job::Job,
    libraries, machine, program_words, ramdisk,
};

/// The files of the words of `--file`, and the standard input; and the path of the latter on the
/// machine.
///
/// # Errors
/// A file is missing, or has no path on the machine.
pub(super) fn files(
    words: &[String],
    input: Option<&Input>,
) -> Result<(Vec<GuestFile>, Option<String>)> {
    let mut files = guest_files::expand(words)?;
    let Some(input) = input else { return Ok((files, None)) };
    let known = files.iter().find(|file| file.host == input.path).map(|file| file.guest.clone());
    let path = known.unwrap_or_else(|| {
        let guest = input.name();
        files.push(GuestFile::of_user(guest.clone(), &input.path));
        guest
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

/// The names of programs: in `programs`, each with its arguments, or in the job if there are none.
fn names<'a>(programs: &'a mut [Vec<String>], job: &'a mut Job) -> Vec<&'a mut String> {
    if programs.is_empty() {
        return job.program.iter_mut().collect();
    }
    let name = |words: &'a mut Vec<String>| {
        let index = program_words::program_index(words);
        words.get_mut(index)
    };
    programs.iter_mut().filter_map(name).collect()
}

/// The files that the programs of a job need and that are not among those `given`: programs of the
/// host, interpreters and libraries. Dynamic programs get the host's folders of libraries in their
/// environment.
///
/// # Errors
/// An interpreter or a library is not on the host, or a program cannot be read.
pub(super) fn implied(
    given: &[GuestFile],
    programs: &mut [Vec<String>],
    job: &mut Job,
) -> Result<Vec<GuestFile>> {
    let (mut implied, mut started) = (Vec::new(), Vec::new());
    for name in names(programs, job) {
        if let Some(file) = guest_files::find(given, name)? {
            started.push(file.clone());
        } else if !build::PROGRAM_NAMES.contains(&&**name) {
            implied.extend(guest_files::on_host(name));
        }
    }
    started.extend(implied.iter().cloned());
    implied.extend(libraries::needed(&started, given, || folders(job))?);
    implied.sort();
    implied.dedup_by(|a, b| a.guest == b.guest);
    implied.retain(|file| given.iter().all(|other| other.guest != file.guest));
    Ok(implied)
}

/// The value of `LD_LIBRARY_PATH` for the programs of a job: the job's own, or the host's, which is
/// added to the job.
fn folders(job: &mut Job) -> Option<String> {
    let prefix = format!("{}=", libraries::FOLDERS);
    if let Some(own) = job.env.iter().rev().find_map(|word| word.strip_prefix(&prefix)) {
        return Some(own.to_owned());
    }
    let folders = env::var(libraries::FOLDERS).ok().filter(|folders| !folders.is_empty())?;
    job.env.push(prefix + &folders);
    Some(folders)
}

/// Replaces the names of programs by their paths on the machine, in `programs`, each with its
/// arguments, or in the job if there are none.
///
/// # Errors
/// A program is missing or is not an x86-64 ELF file.
pub(super) fn locate(
    files: &[GuestFile],
    programs: &mut [Vec<String>],
    job: &mut Job,
) -> Result<()> {
    for name in names(programs, job) {
        if let Some(path) = guest_files::program(files, &build::PROGRAM_NAMES, name)? {
            *name = path;
        }
    }
    Ok(())
}
