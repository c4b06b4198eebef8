//! The project's folders, and its files: read, and written completely or not at all.

use std::{
    env, fs, io,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    process::Command,
};

use serde::de::DeserializeOwned;
use tally_abi::ExitStatus;

use crate::{Failure, Result, compiler, process};

/// The project's folders.
#[derive(Clone, Debug)]
pub struct Project {
    /// The folder of the workspace.
    pub root: PathBuf,
    /// The folder of build output: `target`, or `CARGO_TARGET_DIR`.
    pub target: PathBuf,
}

impl Project {
    /// The project that this program was built from.
    pub fn here() -> Project {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = root.parent().expect("xtask lies in the workspace's folder").to_owned();
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => root.join(folder),
            None => root.join("target"),
        };
        Project { root, target }
    }

    /// Checks that the project's folder still exists: an installed program can outlive it.
    ///
    /// # Errors
    /// The folder is gone.
    pub fn check(&self) -> Result<()> {
        if self.has_package("xtask") {
            return Ok(());
        }
        let why = format!(
            "the clone of Tally that this program was built from, {}, is gone: run `cargo install \
             --path xtask` in another clone",
            self.root.display()
        );
        Err(Failure::new(ExitStatus::BuildFailed, why))
    }

    /// The folder of fetched tools and of runs' files, which git ignores.
    pub fn private(&self) -> PathBuf {
        self.root.join(".tally")
    }

    /// The folder of images and ramdisks.
    pub fn images(&self) -> PathBuf {
        self.target.join("image")
    }

    /// The commit of the sources, with `+` appended if they were changed since; `None` without git
    /// or a repository.
    pub fn commit(&self) -> Option<String> {
        let words = ["describe", "--always", "--abbrev=7", "--exclude=*", "--dirty=+"];
        let output = Command::new("git").args(words).current_dir(&self.root).output().ok()?;
        let commit = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !commit.is_empty()).then_some(commit)
    }

    /// Returns whether the package in `folder` exists.
    pub fn has_package(&self, folder: &str) -> bool {
        self.root.join(folder).join("Cargo.toml").is_file()
    }

    /// The project's files that `wanted` selects, sorted, without build output and hidden folders.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn files(&self, wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
        let mut found = files_in(&self.root)?;
        found.retain(|path| wanted(path));
        Ok(found)
    }

    /// Makes a call of cargo in the project, without the environment variables of an outer cargo.
    ///
    /// The target folder is an argument: in the environment it would reach the boot loader's build
    /// script, whose own cargo would then wait for the outer cargo's lock forever.
    pub fn cargo(&self, subcommand: &str, target_dir: &Path) -> Command {
        let mut command = self.cargo_without_target(subcommand);
        command.arg("--target-dir").arg(target_dir);
        command
    }

    /// Makes a call of cargo without a target folder, for commands that build nothing.
    pub fn cargo_without_target(&self, subcommand: &str) -> Command {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root).arg(subcommand);
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        command.env_remove("CARGO_TARGET_DIR");
        command
    }

    /// Builds an example of a package for release, runs it on the host and returns the JSON that it
    /// prints.
    ///
    /// # Errors
    /// The example does not build, fails, or prints something else.
    pub fn example<T: DeserializeOwned>(
        &self,
        package: &str,
        example: &str,
        arguments: &[&str],
    ) -> Result<T> {
        let failed = |why: String| {
            Failure::new(ExitStatus::HostError, format!("example {example} of {package}: {why}"))
        };
        let mut build = self.cargo("build", &self.target);
        build.args(["--release", "--package", package, "--example", example]);
        compiler::run(&format!("Building the example {example}"), &mut build)?;
        let program = self.target.join("release/examples").join(example);
        let output = process::output(Command::new(program).args(arguments));
        let output = output.map_err(|error| failed(format!("cannot start it: {error}")))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))
    }
}

/// The files in a folder and those in it, sorted, without build output and hidden folders.
///
/// # Errors
/// A folder cannot be read.
pub fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut folders, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        let failed = |error: io::Error| Failure::io("read", &folder, &error);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !path.is_dir() {
                found.push(path);
            } else if !name.starts_with('.') && name != "target" {
                folders.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Creates `folder` and its parents.
///
/// # Errors
/// The host refuses.
pub fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| Failure::io("create the folder", folder, &error))
}

/// Reads a whole file.
///
/// # Errors
/// The host refuses.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| Failure::io("read", path, &error))
}

/// Writes a file completely or not at all. A pipe or device is written directly.
///
/// # Errors
/// The host refuses.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_from(path, &mut &*bytes)
}

/// Copies a file completely or not at all, as [`write`].
///
/// # Errors
/// The host refuses.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut file = fs::File::open(from).map_err(|error| Failure::io("read", from, &error))?;
    write_from(to, &mut file)
}

fn write_from(path: &Path, from: &mut dyn io::Read) -> Result<()> {
    let written = if is_special(path) {
        let to = fs::OpenOptions::new().write(true).open(path);
        // Errors of a device may be reported only when its data is written back.
        let sync = |to: fs::File| if is_block_device(path) { to.sync_all() } else { Ok(()) };
        to.and_then(|mut to| io::copy(from, &mut to).and_then(|_| sync(to)))
    } else {
        let part = part_of(path);
        fs::File::create(&part)
            .and_then(|mut to| io::copy(from, &mut to))
            .and_then(|_| fs::rename(&part, path))
            .inspect_err(|_| drop(fs::remove_file(&part)))
    };
    written.map_err(|error| Failure::io("write", path, &error))
}

/// Returns whether the path is a block device, such as a disk.
pub fn is_block_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| there.file_type().is_block_device())
}

/// Checks before long work that [`write`] can write the file, without changing it.
///
/// # Errors
/// The host refuses.
pub fn check_writable(path: &Path) -> Result<()> {
    let tried = if path.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else if is_special(path) {
        Ok(())
    } else {
        let part = part_of(path);
        fs::write(&part, []).and_then(|()| fs::remove_file(&part))
    };
    tried.map_err(|error| Failure::io("write", path, &error))
}

/// Returns whether the path is a pipe, device or the like, which a file must not replace.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// The temporary path of a file that is being written.
fn part_of(path: &Path) -> PathBuf {
    path.with_added_extension(format!("part-{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_that_is_gone_is_named() {
        let gone = |root: PathBuf| Project { target: root.join("target"), root }.check();
        assert_eq!(gone(Project::here().root), Ok(()));
        let failure = gone("/nowhere/tally".into()).unwrap_err();
        assert!(failure.message.contains("/nowhere/tally, is gone: run `cargo install"));
    }

    #[test]
    fn a_file_is_written_completely_or_not_changed() {
        let folder = env::temp_dir().join(format!("xtask-write-{}", std::process::id()));
        make_folder(&folder).unwrap();
        let file = folder.join("trace");
        write(&file, b"old").unwrap();
        check_writable(&file).unwrap();
        assert_eq!(read(&file).unwrap(), b"old");
        let names = || fs::read_dir(&folder).unwrap().count();
        assert_eq!(names(), 1);
        assert!(check_writable(&folder).is_err() && check_writable(&file.join("x")).is_err());
        assert!(write(&folder, b"new").is_err());
        copy(&file, &folder.join("copy")).unwrap();
        assert_eq!(read(&folder.join("copy")).unwrap(), b"old");
        // A file that cannot be read, and a full disk, leave nothing behind.
        assert!(copy(&folder, &folder.join("none")).is_err());
        let full = copy(&file, Path::new("/dev/full")).unwrap_err();
        assert!(full.message.contains("/dev/full") && names() == 2, "{full}");
        let null = Path::new("/dev/null");
        check_writable(null).and_then(|()| write(null, b"new")).unwrap();
        assert!(is_special(null), "the device was not replaced");
        fs::remove_dir_all(&folder).unwrap();
    }
}
