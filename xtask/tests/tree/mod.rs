//! The project's files, for tests that read them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use xtask::project::Project;

/// Folder of the workspace.
pub fn root() -> PathBuf {
    Project::here().root
}

/// Files of the project for which `wanted` holds, as in [`Project::files`].
pub fn files(wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let found = Project::here().files(wanted).expect("the project can be read");
    assert!(!found.is_empty(), "no file is selected");
    found
}

/// Every file with this extension and its text, by its path relative to [`root`].
pub fn sources(extension: &str) -> Vec<(PathBuf, String)> {
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a source can be read");
        (path.strip_prefix(root()).expect("it is below the root").to_owned(), text)
    };
    files(|path| path.extension().is_some_and(|of| of == extension)).into_iter().map(read).collect()
}
