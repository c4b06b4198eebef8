//! `cargo xtask sdk`: writes a folder with everything that a program needs to use the library.
//!
//! The folder appears complete or not at all.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    Failure, Result,
    build::{HEADERS, archives},
    new_folder::NewFolder,
    output,
    project::{self, Project},
    setup,
};
use clap::Args;

/// The folder of files that are copied unchanged or with [`PLACEHOLDERS`] replaced.
const TEMPLATES: &str = "userlib/sdk";
/// Words of the templates that stand for the clone's folder and for Tally's version.
const PLACEHOLDERS: [&str; 2] = ["@TALLY@", "@VERSION@"];
/// Each template's place in the folder.
const PLACES: [(&str, &str); 11] = [
    ("README.md", "README.md"),
    ("tally.pc", "lib/pkgconfig/tally.pc"),
    ("tally-config.cmake", "lib/cmake/tally/tally-config.cmake"),
    ("tally-config-version.cmake", "lib/cmake/tally/tally-config-version.cmake"),
    ("examples/Makefile", "examples/Makefile"),
    ("examples/example.c", "examples/example.c"),
    ("examples/example.cpp", "examples/example.cpp"),
    ("examples/phases.c", "examples/phases.c"),
    ("examples/breakdown.c", "examples/breakdown.c"),
    ("examples/rust", "examples/rust"),
    ("../../Cargo.lock", "examples/rust/Cargo.lock"),
];
/// The crates of the Rust library, each with its place below the folder `rust`.
const CRATES: [(&str, &str); 4] = [
    ("userlib", "tally"),
    ("userlib/breakdown", "breakdown"),
    ("kernel/abi", "abi"),
    ("kernel/ring", "ring"),
];
/// Parts of a crate's folder that are copied.
const CRATE_PARTS: [&str; 4] = ["Cargo.toml", "src", "tests", "benches"];
/// Files that are copied from the clone.
const LICENSES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];
/// Maximum disk space that the folder takes.
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
    let folder = NewFolder::check(&args.folder, NEEDED_MB)?;
    let built = archives::build(project, &setup::library(project)?)?;
    folder.fill(|part| write(project, &built, part))?;
    output::text(&format!("{}\n", args.folder.display()))?;
    Ok(0)
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

    #[test]
    fn the_crates_workspace_has_their_paths_alone() {
        let text = "[workspace]\nmembers = [\"kernel\"]\n\n[workspace.package]\nversion = \"1\"\n\n\
                    [workspace.dependencies]\ntally = { path = \"userlib\" }\n\
                    xtask = { path = \"xtask\" }\nspin = \"1\"\n\n[profile.release]\ndebug = 1\n";
        let expected = "[workspace]\nresolver = \"3\"\nmembers = [\"tally\", \"breakdown\", \"abi\", \
                        \"ring\"]\n\n\
                        [workspace.package]\nversion = \"1\"\n\n[workspace.dependencies]\n\
                        tally = { path = \"tally\" }\nspin = \"1\"\n";
        assert_eq!(rust_workspace(text), expected);
    }
}
