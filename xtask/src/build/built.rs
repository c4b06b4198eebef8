//! The files of a build.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::package::PROGRAMS;
use crate::{guest_files::GuestFile, project::Project};

/// The files of a build.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Built {
    /// The kernel's ELF file, without debug information.
    pub kernel: PathBuf,
    /// The kernel's ELF file with debug information.
    pub symbols: PathBuf,
    /// The loader that starts the kernel on QEMU.
    pub loader: PathBuf,
    /// Programs of [`PROGRAMS`], sorted.
    pub programs: Vec<PathBuf>,
    /// Programs of [`TEST_GUESTS`], sorted; none for a user's run.
    pub test_guests: Vec<PathBuf>,
    /// The plugin.
    pub plugin: PathBuf,
}

impl Built {
    /// Tally's programs and the test guests.
    pub fn with_test_guests(&self) -> Vec<GuestFile> {
        let all = self.programs.iter().chain(&self.test_guests);
        all.map(|path| GuestFile::by_name(path)).collect()
    }

    /// Tally's programs and the user's files, for the ramdisk of a user's run.
    pub fn with_files(&self, files: &[GuestFile]) -> Vec<GuestFile> {
        GuestFile::by_names(&self.programs).into_iter().chain(files.iter().cloned()).collect()
    }
}

/// The file of one of Tally's programs with its debug information, once it is built.
pub fn program_symbols(project: &Project, name: &str) -> PathBuf {
    PROGRAMS.release_folder(project).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_s_ramdisk_has_the_user_s_files_and_no_test_guests() {
        let built = Built {
            kernel: "kernel".into(),
            symbols: PathBuf::new(),
            programs: vec!["deflate".into()],
            test_guests: vec!["bank".into()],
            plugin: "plugin".into(),
            loader: "loader".into(),
        };
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let files = |names: &[&str]| GuestFile::by_names(&paths(names));
        assert_eq!(built.with_files(&files(&["x/bank"])), files(&["deflate", "x/bank"]));
        assert_eq!(built.with_test_guests(), files(&["deflate", "bank"]));
    }
}
