//! Output files that options name, written as a whole.

use std::{fs, path::Path};

/// Writes the file of an option.
pub(crate) fn write(option: &str, path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{option}={}: {error}", path.display()))
}

/// Checks that the file of an option can be written, so that the run fails now and not at its end.
pub(crate) fn check(option: &str, path: &Path) -> Result<(), String> {
    write(option, path, "")
}
