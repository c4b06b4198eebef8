//! The ramdisk: programs, a text as their input, and optionally a command line, as a tar archive.
//!
//! Equal inputs give equal bytes: entries are sorted and have no owner, and only a user's files
//! have a date. Tally's own files come first, so that they are at the same place whatever else
//! there is.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use tally_abi::{ExitStatus, boot::RAMDISK_COMMAND_LINE};

use crate::{
    Failure, Result,
    build::PROGRAM_NAMES,
    guest_files::{self, GuestFile},
    project,
};

/// File name of the text in the ramdisk.
pub const CORPUS: &str = "corpus.txt";
/// Size of the text: 3 MiB.
pub const CORPUS_BYTES: usize = 3 << 20;

/// Content of the archive, by path.
type Files = BTreeMap<String, Entry>;

/// A file of the archive.
struct Entry {
    bytes: Vec<u8>,
    /// Date of the last change, in seconds since 1970; 0 if it has none.
    modified: u64,
}

impl From<Vec<u8>> for Entry {
    fn from(bytes: Vec<u8>) -> Entry {
        Entry { bytes, modified: 0 }
    }
}

/// Builds a ramdisk from `programs`, the text made of the library's sources, and the command line.
///
/// # Errors
/// A file cannot be read, two files have the same name, or the sources are too short for the text.
pub fn make(programs: &[GuestFile], library: &Path, command_line: Option<&str>) -> Result<Vec<u8>> {
    let mut files = Files::from([(CORPUS.to_owned(), corpus(&library.join("core/src"))?.into())]);
    add(&mut files, programs)?;
    if let Some(line) = command_line {
        files.insert(RAMDISK_COMMAND_LINE.to_owned(), line.as_bytes().to_vec().into());
    }
    pack(&files)
}

/// Builds a ramdisk with the files of the one at `ramdisk` and more.
///
/// # Errors
/// A file cannot be read, or two files have the same path.
pub fn with(ramdisk: &Path, more: &[GuestFile]) -> Result<Vec<u8>> {
    let mut files = unpack(ramdisk)?;
    add(&mut files, more)?;
    pack(&files)
}

fn unpack(ramdisk: &Path) -> Result<Files> {
    let bytes = project::read(ramdisk)?;
    let mut archive = tar::Archive::new(bytes.as_slice());
    let failed = |error: io::Error| Failure::io("read", ramdisk, &error);
    let mut files = Files::new();
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        let name = entry.path().map_err(failed)?.to_string_lossy().into_owned();
        let modified = entry.header().mtime().map_err(failed)?;
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(failed)?;
        files.insert(name, Entry { bytes, modified });
    }
    Ok(files)
}

/// Adds files, each at its path.
fn add(files: &mut Files, more: &[GuestFile]) -> Result<()> {
    for file in more {
        if files.contains_key(&file.guest) {
            return Err(guest_files::taken(file));
        }
        let entry = Entry { bytes: file.read()?, modified: file.modified() };
        files.insert(file.guest.clone(), entry);
    }
    Ok(())
}

/// Checks that a user's files exist and that their names, without folders, differ from each other
/// and from the machine's `own`.
///
/// # Errors
/// A file is missing, or two names are equal.
pub fn check_files(paths: &[PathBuf], own: &[&str]) -> Result<()> {
    if let Some(missing) = paths.iter().find(|path| !path.is_file()) {
        let why = format!("{}: no such file", missing.display());
        return Err(Failure::new(ExitStatus::ProgramNotFound, why));
    }
    guest_files::check(&GuestFile::by_names(paths), own).map(drop)
}

fn pack(files: &Files) -> Result<Vec<u8>> {
    let refused = |error: io::Error| {
        Failure::new(ExitStatus::HostError, format!("cannot build the ramdisk: {error}"))
    };
    let mut archive = tar::Builder::new(Vec::new());
    let is_own = |name: &str| name == CORPUS || PROGRAM_NAMES.contains(&name);
    let (own, others): (Vec<_>, Vec<_>) = files.iter().partition(|(name, _)| is_own(name));
    for (name, Entry { bytes, modified }) in own.into_iter().chain(others) {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o755);
        header.set_mtime(*modified);
        header.set_path(name).map_err(|_| too_long(name))?;
        header.set_cksum();
        archive.append(&header, bytes.as_slice()).map_err(refused)?;
    }
    archive.into_inner().map_err(refused)
}

/// The failure that a path does not fit the archive (POSIX.1-1988, ustar).
fn too_long(path: &str) -> Failure {
    let why =
        "a file of the machine has at most 100 bytes of name, below at most 155 bytes of folders";
    let how = "name it otherwise with --file FILE:PATH";
    Failure::new(ExitStatus::Usage, format!("{path}: {why}: {how}"))
}

/// Reads a file of the ramdisk at `ramdisk`.
///
/// # Errors
/// The ramdisk cannot be read, or has no such file.
pub fn file(ramdisk: &Path, name: &str) -> Result<Vec<u8>> {
    let missing = || Failure::io("read", ramdisk, &io::ErrorKind::NotFound.into());
    unpack(ramdisk)?.remove(name).map(|entry| entry.bytes).ok_or_else(missing)
}

/// The first 3 MiB of all Rust sources under `folder`, concatenated in the order of their paths.
fn corpus(folder: &Path) -> Result<Vec<u8>> {
    let mut files = Vec::new();
    find_sources(folder, &mut files)?;
    files.sort();
    let mut text = Vec::with_capacity(CORPUS_BYTES);
    for file in files {
        text.extend(project::read(&file)?);
        if text.len() >= CORPUS_BYTES {
            text.truncate(CORPUS_BYTES);
            return Ok(text);
        }
    }
    Err(Failure::new(
        ExitStatus::BuildFailed,
        format!(
            "library sources in {} are incomplete: remove the folder and run the command again",
            folder.display()
        ),
    ))
}

fn find_sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let refused = |error: std::io::Error| Failure::io("read", folder, &error);
    for entry in fs::read_dir(folder).map_err(refused)? {
        let path = entry.map_err(refused)?.path();
        if path.is_dir() {
            find_sources(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_files_of_one_name_are_refused() {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let check =
            |names: &[&str]| guest_files::check(&GuestFile::by_names(&paths(names)), &[CORPUS]);
        assert_eq!(check(&["a/x", "a/y"]), Ok(0));
        for wrong in [&["a/x", "b/x"][..], &["a/corpus.txt"]] {
            let refused = check(wrong).unwrap_err();
            assert_eq!(refused.status, ExitStatus::Usage);
            assert!(refused.message.starts_with(wrong.last().unwrap()), "{refused}");
        }
        let mut files = Files::from([("x".to_owned(), Vec::new().into())]);
        let more = GuestFile::by_names(&paths(&["a/x"]));
        assert_eq!(add(&mut files, &more).unwrap_err().status, ExitStatus::Usage);
    }

    #[test]
    fn a_name_that_the_archive_has_no_room_for_is_named() {
        let name = "n".repeat(101);
        let files = |name: &str| Files::from([(name.to_owned(), Vec::new().into())]);
        assert!(pack(&files(&name[1..])).is_ok());
        let refused = pack(&files(&name)).unwrap_err();
        assert_eq!(refused.status, ExitStatus::Usage);
        assert!(refused.message.starts_with(&name) && refused.message.contains("--file"));
    }

    #[test]
    fn equal_files_give_equal_bytes() {
        let dated = Entry { bytes: b"x".to_vec(), modified: 7 };
        let files = Files::from([
            ("b".into(), vec![1; 700].into()),
            ("a".into(), dated),
            ("c/".into(), Vec::new().into()),
        ]);
        let bytes = pack(&files).unwrap();
        assert_eq!(bytes, pack(&files).unwrap());
        let mut archive = tar::Archive::new(bytes.as_slice());
        let entries: Vec<(String, u64, u64)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let header = entry.unwrap().header().clone();
                let name = header.path().unwrap().to_string_lossy().into_owned();
                (name, header.size().unwrap(), header.mtime().unwrap())
            })
            .collect();
        assert_eq!(entries, [("a".into(), 1, 7), ("b".into(), 700, 0), ("c/".into(), 0, 0)]);
    }
}
