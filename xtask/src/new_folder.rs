//! A folder of results that appears complete or not at all: it is written under another name in the
//! same parent folder and then renamed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tally_abi::ExitStatus;

use crate::{Failure, Result, setup};

/// A folder that does not exist yet, and the name under which it is written.
pub(crate) struct NewFolder<'a> {
    folder: &'a Path,
    part: PathBuf,
}

impl NewFolder<'_> {
    /// Checks before long work that the folder can be written, with `needed_mb` MB.
    ///
    /// # Errors
    /// The folder exists and is not empty, its parent cannot be written, or the disk is full.
    pub(crate) fn check(folder: &Path, needed_mb: u64) -> Result<NewFolder<'_>> {
        let refused = |why: &str| {
            let why = format!("{}: {why}", folder.display());
            Failure::new(ExitStatus::Usage, why)
        };
        match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(false) => {
                return Err(refused("the folder is not empty: name a new one, or remove it"));
            }
            Err(_) if folder.symlink_metadata().is_err() => {}
            Err(_) => {
                return Err(refused(
                    "a file or an unreadable folder has this name: name a new one",
                ));
            }
        }
        // A path such as `..` names no new folder.
        let name = folder.file_name().ok_or_else(|| refused("name a new folder"))?;
        let name = format!(".{}.part-{}", name.to_string_lossy(), std::process::id());
        let parent = folder.parent().filter(|parent| *parent != Path::new(""));
        let parent = parent.unwrap_or(Path::new("."));
        let place = NewFolder { folder, part: parent.join(name) };
        fs::create_dir(&place.part)
            .and_then(|()| fs::remove_dir(&place.part))
            .map_err(|error| Failure::io("write to the folder", parent, &error))?;
        setup::check_space(parent, needed_mb, "the folder")?;
        Ok(place)
    }

    /// Writes the folder by `write`, which gets the path to write to.
    ///
    /// # Errors
    /// As `write`, or the host refuses the folder's name.
    pub(crate) fn fill(self, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let written = write(&self.part).and_then(|()| {
            fs::rename(&self.part, self.folder)
                .map_err(|error| Failure::io("write", self.folder, &error))
        });
        if written.is_err() {
            // A partial folder is removed; if that fails, the first error is returned.
            let _ = fs::remove_dir_all(&self.part);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-new-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_folder_in_use_and_a_missing_parent_are_refused_at_once() {
        let folder = scratch("refused");
        let status =
            |path: &Path| NewFolder::check(path, 0).map(drop).map_err(|error| error.status);
        assert_eq!(status(&folder), Ok(()), "an empty folder");
        assert_eq!(status(&folder.join("new")), Ok(()));
        fs::write(folder.join("file"), "").unwrap();
        assert_eq!(status(&folder), Err(ExitStatus::Usage));
        assert_eq!(status(&folder.join("file")), Err(ExitStatus::Usage));
        assert_eq!(status(&folder.join("..")), Err(ExitStatus::Usage));
        assert_eq!(status(&folder.join("a/b")), Err(ExitStatus::HostError));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left behind");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_appears_complete_or_not_at_all() {
        let folder = scratch("complete");
        let new = folder.join("new");
        let failed = Failure::new(ExitStatus::HostError, "x");
        let write = |part: &Path, end: Result<()>| {
            project::make_folder(part)?;
            project::write(&part.join("README.md"), b"x").and(end)
        };
        let place = || NewFolder::check(&new, 0).unwrap();
        assert_eq!(place().fill(|part| write(part, Err(failed.clone()))), Err(failed.clone()));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        place().fill(|part| write(part, Ok(()))).unwrap();
        assert!(new.join("README.md").is_file());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
