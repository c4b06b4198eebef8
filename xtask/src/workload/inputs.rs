//! The files and the programs of a workload, with their paths on the machine. They are determined
//! before anything is built.

use std::{env, fs::File, io::Read, path::Path};

use tally_elf::Program;

use super::stdin::Input;
use crate::{
    Result, build,
    guest_files::{self, GuestFile},
    job::Job,
    libraries::{self, Dynamic},
    machine, program_words, project, ramdisk,
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
        files.push(GuestFile { guest: guest.clone(), host: input.path.clone() });
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
    let mut dynamic = Vec::new();
    for file in started {
        let bytes = project::read(&file.host)?;
        // A file that is no program is refused when it is located.
        let interpreter = Program::parse(&bytes).ok().and_then(|program| program.interpreter);
        dynamic.extend(interpreter.map(|path| (file, path.to_owned())));
    }
    if !dynamic.is_empty() {
        let folders = folders(job);
        let is_later = |file: &&GuestFile| {
            is_library(&file.host) && dynamic.iter().all(|(program, _)| program != *file)
        };
        let later: Vec<GuestFile> = given.iter().filter(is_later).cloned().collect();
        for (file, interpreter) in &dynamic {
            let (folders, later) = (folders.as_deref(), &*later);
            implied.extend(Dynamic { file, interpreter, folders, later }.needs()?);
        }
    }
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

/// Returns whether a file is an x86-64 ELF file of the kind of libraries.
fn is_library(path: &Path) -> bool {
    // The magic number and the class, then the kind, ET_DYN, and the machine.
    let mut head = [0; 20];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head.starts_with(b"\x7fELF\x02") && head[16..] == [3, 0, 62, 0]
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
