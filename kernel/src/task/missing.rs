//! The files that a program looked for and that the machine does not have, for a line at its end:
//! those that the host has were not given to the machine.

use alloc::{string::String, vec::Vec};

/// Maximum number of paths kept for a program.
const MAX_PATHS: usize = 128;
/// Maximum length of a path that is kept, in bytes.
const MAX_BYTES: usize = 255;

/// Absolute paths, in the order in which the program first looked for them.
#[derive(Default)]
pub struct MissingFiles(Vec<String>);

impl MissingFiles {
    /// Notes a path. A relative one is in no folder of the host.
    pub fn note(&mut self, path: String) {
        let fits = self.0.len() < MAX_PATHS && path.len() <= MAX_BYTES;
        if fits && path.starts_with('/') && !self.0.contains(&path) {
            self.0.push(path);
        }
    }

    /// The paths.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}
