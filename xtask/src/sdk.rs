//! `cargo xtask sdk`: writes a folder with all that a program needs to use the library.
//!
//! The folder appears complete or not at all: it is written beside its place under another name and
//! then renamed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use tally_abi::ExitStatus;

use crate::{
    Failure, Result,
    build::{HEADERS, archives},
    output,
    project::{self, Project},
    setup,
};

/// The folder of what is copied as it is or with [`PLACEHOLDERS`] replaced.
const TEMPLATES: &str = "userlib/sdk";
/// Words of the templates that stand for the clone's folder and for Tally's version.
const PLACEHOLDERS: [&str; 2] = ["@TALLY@", "@VERSION@"];
/// Each template's place in the folder.
const PLACES: [(&str, &str); 10] = [
    ("README.md", "README.md"),
    ("tally.pc", "lib/pkgconfig/tally.pc"),
    ("tally-config.cmake", "lib/cmake/tally/tally-config.cmake"),
    ("tally-config-version.cmake", "lib/cmake/tally/tally-config-version.cmake"),
    ("examples/Makefile", "examples/Makefile"),
    ("examples/example.c", "examples/example.c"),
    ("examples/example.cpp", "examples/example.cpp"),
    ("examples/phases.c", "examples/phases.c"),
    ("examples/rust", "examples/rust"),
    ("../../Cargo.lock", "examples/rust/Cargo.lock"),
];
/// The crates of the Rust library, each with its place below the folder `rust`.
const CRATES: [(&str, &str); 3] =
    [("userlib", "tally"), ("kernel/abi", "abi"), ("kernel/ring", "ring")];
/// What a crate consists of.
const CRATE_PARTS: [&str; 4] = ["Cargo.toml", "src", "tests", "benches"];
/// Files that the folder gets from the clone's.
const LICENSES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];
/// Disk space that the folder takes, at most.
const NEEDED_MB: u64 = 20;

/// Options of `cargo xtask sdk`.
#[derive(Args, Debug)]
pub struct SdkArgs {
    /// The folder to write: a new or an empty one
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Builds the library and writes the folder.
///
/// # Errors
/// The folder is not empty or cannot be written, or the library does not build.
pub fn main(project: &Project, args: &SdkArgs) -> Result<u8> {
    let folder = Place::check(&args.folder)?;
    let built = archives::build(project, &setup::library(project)?)?;
    folder.fill(|part| write(project, &built, part))?;
    output::text(&format!("{}\n", args.folder.display()))?;
    Ok(0)
}

/// A folder that does not exist yet, and the name under which it is written.
struct Place<'a> {
    folder: &'a Path,
    part: PathBuf,
}

impl Place<'_> {
    /// Checks before long work that the folder can be written.
    fn check(folder: &Path) -> Result<Place<'_>> {
        let refused = |why: &str| {
            let why = format!("{}: {why}", folder.display());
            Failure::new(ExitStatus::Usage, why)
        };
        match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(false) => {
                return Err(refused("the folder is not empty: name a new one, or remove it"));
            }
            Err(_) if folder.symlink_metadata().is_err() => {}
            Err(_) => {
                return Err(refused(
                    "a file or an unreadable folder has this name: name a new one",
                ));
            }
        }
        // A path such as `..` names no new folder.
        let name = folder.file_name().ok_or_else(|| refused("name a new folder"))?;
        let name = format!(".{}.part-{}", name.to_string_lossy(), std::process::id());
        let parent = folder.parent().filter(|parent| *parent != Path::new(""));
        let parent = parent.unwrap_or(Path::new("."));
        let place = Place { folder, part: parent.join(name) };
        fs::create_dir(&place.part)
            .and_then(|()| fs::remove_dir(&place.part))
            .map_err(|error| Failure::io("write to the folder", parent, &error))?;
        setup::check_space(parent, NEEDED_MB, "the folder")?;
        Ok(place)
    }

    /// Writes the folder by `write`, which gets the path to write to.
    fn fill(self, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let written = write(&self.part).and_then(|()| {
            fs::rename(&self.part, self.folder)
                .map_err(|error| Failure::io("write", self.folder, &error))
        });
        if written.is_err() {
            // Nothing half-written stays; if it cannot be removed, the first error counts.
            let _ = fs::remove_dir_all(&self.part);
        }
        written
    }
}

/// Writes everything to `folder`, replacing files of the same names.
///
/// # Errors
/// A file cannot be read or written.
pub fn write(project: &Project, built: &archives::Archives, folder: &Path) -> Result<()> {
    let root = &project.root;
    copy(&root.join(HEADERS), &folder.join("include"))?;
    copy(&built.tally, &folder.join("lib/libtally.a"))?;
    copy(&built.papi, &folder.join("lib/libpapi.a"))?;
    copy(&built.start, &folder.join("lib/libtally_start.a"))?;
    for (template, place) in PLACES {
        copy(&root.join(TEMPLATES).join(template), &folder.join(place))?;
    }
    let values = [root.to_string_lossy().into_owned(), env!("CARGO_PKG_VERSION").to_owned()];
    for (_, place) in PLACES {
        let path = folder.join(place);
        if path.is_file() {
            replace(&path, &values)?;
        }
    }
    for license in LICENSES {
        copy(&root.join(license), &folder.join(license))?;
    }
    for (from, to) in CRATES {
        for part in CRATE_PARTS.map(|part| root.join(from).join(part)) {
            if part.exists() {
                let name = part.file_name().unwrap_or_default();
                copy(&part, &folder.join("rust").join(to).join(name))?;
            }
        }
    }
    let manifest = project::read(&root.join("Cargo.toml"))?;
    let manifest = rust_workspace(&String::from_utf8_lossy(&manifest));
    project::write(&folder.join("rust/Cargo.toml"), manifest.as_bytes())
}

/// Copies a file, or the files and folders in a folder.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        project::make_folder(to.parent().unwrap_or(to))?;
        return fs::copy(from, to).map(drop).map_err(|error| Failure::io("write", to, &error));
    }
    project::make_folder(to)?;
    let failed = |error: std::io::Error| Failure::io("read", from, &error);
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Replaces the placeholders in a text.
fn replace(path: &Path, values: &[String; 2]) -> Result<()> {
    let mut text = String::from_utf8_lossy(&project::read(path)?).into_owned();
    for (word, value) in PLACEHOLDERS.iter().zip(values) {
        text = text.replace(word, value);
    }
    project::write(path, text.as_bytes())
}

/// The manifest of a workspace of the library's crates, with the project's package settings, lints
/// and versions of foreign crates, from the project's manifest.
fn rust_workspace(manifest: &str) -> String {
    let members = CRATES.map(|(_, place)| format!("\"{place}\"")).join(", ");
    let mut text = format!("[workspace]\nresolver = \"3\"\nmembers = [{members}]\n");
    let sections = manifest.split("\n[").filter(|section| section.starts_with("workspace."));
    for section in sections {
        text += "\n[";
        for line in section.lines() {
            match line.split_once("path = \"").and_then(|(_, path)| path.split_once('"')) {
                None => text += &format!("{line}\n"),
                Some((path, _)) => {
                    let known = CRATES.iter().find(|(from, _)| *from == path);
                    text += &known.map_or(String::new(), |(from, to)| {
                        format!("{}\n", line.replace(from, to))
                    });
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-sdk-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_folder_in_use_and_a_missing_parent_are_refused_at_once() {
        let folder = scratch("refused");
        let status = |path: &Path| Place::check(path).map(drop).map_err(|error| error.status);
        assert_eq!(status(&folder), Ok(()), "an empty folder");
        assert_eq!(status(&folder.join("new")), Ok(()));
        fs::write(folder.join("file"), "").unwrap();
        assert_eq!(status(&folder), Err(ExitStatus::Usage));
        assert_eq!(status(&folder.join("file")), Err(ExitStatus::Usage));
        assert_eq!(status(&folder.join("..")), Err(ExitStatus::Usage));
        assert_eq!(status(&folder.join("a/b")), Err(ExitStatus::HostError));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left behind");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_appears_complete_or_not_at_all() {
        let folder = scratch("complete");
        let new = folder.join("new");
        let failed = Failure::new(ExitStatus::HostError, "x");
        let write = |part: &Path, end: Result<()>| {
            copy(&Project::here().root.join("README.md"), &part.join("README.md")).and(end)
        };
        let place = || Place::check(&new).unwrap();
        assert_eq!(place().fill(|part| write(part, Err(failed.clone()))), Err(failed.clone()));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        place().fill(|part| write(part, Ok(()))).unwrap();
        assert!(new.join("README.md").is_file());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_crates_workspace_has_their_paths_alone() {
        let text = "[workspace]\nmembers = [\"kernel\"]\n\n[workspace.package]\nversion = \"1\"\n\n\
                    [workspace.dependencies]\ntally = { path = \"userlib\" }\n\
                    xtask = { path = \"xtask\" }\nspin = \"1\"\n\n[profile.release]\ndebug = 1\n";
        let expected = "[workspace]\nresolver = \"3\"\nmembers = [\"tally\", \"abi\", \"ring\"]\n\n\
                        [workspace.package]\nversion = \"1\"\n\n[workspace.dependencies]\n\
                        tally = { path = \"tally\" }\nspin = \"1\"\n";
        assert_eq!(rust_workspace(text), expected);
    }
}
