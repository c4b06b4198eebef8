//! Files of a run that were built from the sources as they are.
//!
//! Four calls of cargo that find nothing to build take longer than a run of a small program. So a
//! build leaves a note of its sources and files, each with its size and time of change. While these
//! are the same there is nothing to ask cargo. A note that cannot be read is no note.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use serde::{Deserialize, Serialize};

use super::{
    built::{Built, program_symbols},
    package::PROGRAM_NAMES,
};
use crate::{
    Result,
    project::{self, Project},
};

/// Sources of builds: folders, and files of the project's folder.
const SOURCES: [&str; 8] = [
    ".cargo/config.toml",
    "Cargo.lock",
    "Cargo.toml",
    "kernel",
    "qemu",
    "rust-toolchain.toml",
    "userlib",
    "xtask/src/build",
];

/// The note of a build.
#[derive(Debug, Deserialize, Serialize)]
struct Note {
    sources: String,
    files: String,
    built: Built,
}

fn note(project: &Project) -> PathBuf {
    project.target.join("guest/built.json")
}

/// The sources of a build with this Rust library.
///
/// # Errors
/// A folder cannot be read.
pub(super) fn sources(project: &Project, library: &Path) -> Result<String> {
    let mut files = Vec::new();
    for source in SOURCES.map(|source| project.root.join(source)) {
        files.extend(if source.is_dir() { project::files_in(&source)? } else { vec![source] });
    }
    Ok(format!("{}\n{}", library.display(), seen(&files)))
}

/// A line for each file, with its size and time of change.
fn seen(files: &[PathBuf]) -> String {
    files.iter().fold(String::new(), |mut lines, file| {
        let metadata = fs::metadata(file).ok();
        let modified = metadata.as_ref().and_then(|it| it.modified().ok());
        let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let (size, nanoseconds) = (metadata.map(|it| it.len()), since.map(|it| it.as_nanos()));
        // Writing to a string does not fail.
        _ = writeln!(lines, "{} {size:?} {nanoseconds:?}", file.display());
        lines
    })
}

/// The built files, with those that were built on the way.
fn files(project: &Project, built: &Built) -> String {
    let Built { kernel, symbols, loader, programs, test_guests, plugin } = built;
    let one = [kernel, symbols, loader, plugin].into_iter().cloned();
    let many = programs.iter().chain(test_guests).cloned();
    let unstripped = PROGRAM_NAMES.iter().map(|name| program_symbols(project, name));
    seen(&one.chain(many).chain(unstripped).collect::<Vec<_>>())
}

/// Finds the files of an earlier build of these sources, if they are as it left them.
pub(super) fn find(project: &Project, sources: &str) -> Option<Built> {
    let note: Note = serde_json::from_slice(&fs::read(note(project)).ok()?).ok()?;
    let is_fresh = note.sources == sources && note.files == files(project, &note.built);
    is_fresh.then_some(note.built)
}

/// Keeps what was built. `sources` are those from before the build: a file that changed meanwhile
/// is built at the next run.
///
/// # Errors
/// The note cannot be written.
pub(super) fn keep(project: &Project, sources: String, built: &Built) -> Result<()> {
    let files = files(project, built);
    let text = serde_json::to_vec(&Note { sources, files, built: built.clone() });
    project::write(&note(project), &text.expect("a note has no value that JSON cannot have"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_fresh_until_a_source_or_a_file_changes() {
        let folder = std::env::temp_dir().join(format!("tally-fresh-{}", std::process::id()));
        let project = Project { root: folder.clone(), target: folder.join("target") };
        for path in ["kernel/src/a.rs", "Cargo.lock", "target/guest/kernel"] {
            let path = folder.join(path);
            project::make_folder(path.parent().unwrap()).unwrap();
            project::write(&path, b"1").unwrap();
        }
        let built = Built {
            kernel: folder.join("target/guest/kernel"),
            symbols: PathBuf::new(),
            loader: PathBuf::new(),
            programs: Vec::new(),
            test_guests: Vec::new(),
            plugin: PathBuf::new(),
        };
        let now = || sources(&project, Path::new("library")).unwrap();
        assert!(find(&project, &now()).is_none());
        keep(&project, now(), &built).unwrap();
        assert_eq!(find(&project, &now()).map(|it| it.kernel), Some(built.kernel.clone()));
        assert!(find(&project, &sources(&project, Path::new("other")).unwrap()).is_none());

        project::write(&folder.join("kernel/src/b.rs"), b"2").unwrap();
        assert!(find(&project, &now()).is_none());
        keep(&project, now(), &built).unwrap();
        project::write(&built.kernel, b"12").unwrap();
        assert!(find(&project, &now()).is_none());
        fs::write(note(&project), b"{").unwrap();
        assert!(find(&project, &now()).is_none());
        fs::remove_dir_all(&folder).unwrap();
    }
}
