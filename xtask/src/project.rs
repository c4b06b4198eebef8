//! Where things are in the project.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde::de::DeserializeOwned;
use tally_abi::ExitStatus;

use crate::{Failure, Result};

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
        let mut command = self.cargo("run", &self.target);
        command.args(["--quiet", "--release", "--package", package, "--example", example, "--"]);
        let output = command.args(arguments).output();
        let output = output.map_err(|error| failed(format!("cannot start cargo: {error}")))?;
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

/// Writes a file whole or not at all.
///
/// # Errors
/// The host refuses.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let part = path.with_added_extension(format!("part-{}", std::process::id()));
    fs::write(&part, bytes)
        .and_then(|()| fs::rename(&part, path))
        .inspect_err(|_| drop(fs::remove_file(&part)))
        .map_err(|error| Failure::io("write", path, &error))
}
