//! Runs commands on the build machine, and reads the resulting files of a folder.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::Command,
};

use xtask::{Failure, Result, process, project};

/// Content of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Folder,
    /// A symbolic link, with its target.
    Link(PathBuf),
    File(Vec<u8>),
}

/// Result of a command.
#[derive(Clone, Debug, Default)]
pub(in crate::study) struct Ended {
    /// Output to descriptors 1 and 2.
    pub output: [Vec<u8>; 2],
    /// Exit status as shells report it.
    pub status: i32,
}

/// Everything below a folder, by path.
pub(super) type Tree = BTreeMap<PathBuf, Node>;

/// Reads the folder `root`.
///
/// # Errors
/// The host refuses.
pub(super) fn tree(root: &Path) -> Result<Tree> {
    let (mut folders, mut found) = (vec![root.to_owned()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        let failed = |error: io::Error| Failure::io("read", &folder, &error);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let kind = path.symlink_metadata().map_err(failed)?;
            let node = if kind.is_dir() {
                folders.push(path.clone());
                Node::Folder
            } else if kind.is_symlink() {
                Node::Link(fs::read_link(&path).map_err(failed)?)
            } else {
                Node::File(project::read(&path)?)
            };
            let name = path.strip_prefix(root).unwrap_or(&path).to_owned();
            found.insert(name, node);
        }
    }
    Ok(found)
}

/// Runs a command in `folder`, which contains its program, with exactly this environment.
///
/// # Errors
/// The program cannot be started.
pub(super) fn run(words: &[String], environment: &[String], folder: &Path) -> Result<Ended> {
    let program = folder.join(&words[0]);
    let variables = environment.iter().filter_map(|variable| variable.split_once('='));
    let mut command = Command::new(&program);
    command.arg0(&words[0]).args(&words[1..]).current_dir(folder).env_clear().envs(variables);
    let ended = process::output(&mut command);
    let ended = ended.map_err(|error| Failure::io("run", &program, &error))?;
    // A signal gives the status that shells, and Tally, report.
    let by_signal = ended.status.signal().map(|signal| 128 + signal);
    let status = ended.status.code().or(by_signal).unwrap_or_default();
    Ok(Ended { output: [ended.stdout, ended.stderr], status })
}
