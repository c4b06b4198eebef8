//! Where things are in the project.

use std::{
    env, fs,
    io::{self, Write},
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
    /// What is built: `target`, or what `CARGO_TARGET_DIR` says.
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

    /// What is fetched, and what runs leave behind: git-ignored.
    pub fn private(&self) -> PathBuf {
        self.root.join(".tally")
    }

    /// Images and ramdisks.
    pub fn images(&self) -> PathBuf {
        self.target.join("image")
    }

    /// Whether the package in `folder` exists.
    pub fn has_package(&self, folder: &str) -> bool {
        self.root.join(folder).join("Cargo.toml").is_file()
    }

    /// A call of cargo in the project, free of what an outer cargo told us about ourselves.
    ///
    /// The target folder is always given as an argument: in the environment it would reach the
    /// boot loader's build script, whose own cargo would wait for the outer one's lock for ever.
    pub fn cargo(&self, subcommand: &str, target_dir: &Path) -> Command {
        let mut command = self.cargo_without_target(subcommand);
        command.arg("--target-dir").arg(target_dir);
        command
    }

    /// A call of cargo that builds nothing.
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

    /// Runs an example of a package, built for release, on the host: the JSON that it prints.
    ///
    /// # Errors
    /// It does not build, fails, or prints something else.
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

/// Makes `folder` and what leads to it.
///
/// # Errors
/// The host refuses.
pub fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| Failure::io("make the folder", folder, &error))
}

/// Reads a file whole.
///
/// # Errors
/// The host refuses.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| Failure::io("read", path, &error))
}

/// Writes a file whole or not at all; into what is no file, such as a pipe, as it comes.
///
/// # Errors
/// The host refuses.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = match is_special(path) {
        true => {
            fs::OpenOptions::new().write(true).open(path).and_then(|mut it| it.write_all(bytes))
        }
        false => {
            let part = part_of(path);
            fs::write(&part, bytes)
                .and_then(|()| fs::rename(&part, path))
                .inspect_err(|_| drop(fs::remove_file(&part)))
        }
    };
    written.map_err(|error| Failure::io("write", path, &error))
}

/// Fails at once where [`write`] would fail after long work; changes nothing.
///
/// # Errors
/// The host refuses.
pub fn check_writable(path: &Path) -> Result<()> {
    let tried = match path.is_dir() {
        true => Err(io::ErrorKind::IsADirectory.into()),
        false if is_special(path) => Ok(()),
        false => {
            let part = part_of(path);
            fs::write(&part, []).and_then(|()| fs::remove_file(&part))
        }
    };
    tried.map_err(|error| Failure::io("write", path, &error))
}

/// Whether there is something that a file must not take the place of.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// Where a file is written before it is moved to its place.
fn part_of(path: &Path) -> PathBuf {
    path.with_added_extension(format!("part-{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_or_as_it_was() {
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
        let null = Path::new("/dev/null");
        check_writable(null).and_then(|()| write(null, b"new")).unwrap();
        assert!(is_special(null), "it is still there");
        fs::remove_dir_all(&folder).unwrap();
    }
}
