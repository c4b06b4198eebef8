//! The project's files, for tests that read them.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask has a parent").to_owned()
}

/// The project's files that `wanted` selects, sorted; build output and hidden folders are left out.
pub fn files(wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("the project can be read") {
            let path = entry.expect("the project can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !path.is_dir() {
                found.push(path);
            } else if !name.starts_with('.') && name != "target" {
                walk(&path, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root(), &mut found);
    found.retain(|path| wanted(path));
    found.sort();
    assert!(!found.is_empty(), "no file is selected");
    found
}

/// Every file with this extension, relative to [`root`], with its text.
pub fn sources(extension: &str) -> Vec<(PathBuf, String)> {
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a source can be read");
        (path.strip_prefix(root()).expect("it is below the root").to_owned(), text)
    };
    files(|path| path.extension().is_some_and(|of| of == extension)).into_iter().map(read).collect()
}
