//! Installs fetched packages: completely or not at all, and one set-up at a time.

use std::{fs, path::Path};

use tally_abi::ExitStatus;

use crate::{
    Failure, Result,
    project::{self, Project},
};

/// Checks that the disk of `folder` has `needed_mb` MB free.
pub(crate) fn check_space(folder: &Path, needed_mb: u64, what: &str) -> Result<()> {
    project::make_folder(folder)?;
    let stat = rustix::fs::statvfs(folder)
        .map_err(|error| Failure::io("read the free space of", folder, &error.into()))?;
    enough(stat.f_bavail.saturating_mul(stat.f_frsize) >> 20, needed_mb, folder, what)
}

fn enough(free_mb: u64, needed_mb: u64, folder: &Path, what: &str) -> Result<()> {
    if free_mb >= needed_mb {
        return Ok(());
    }
    let folder = folder.display();
    Err(Failure::new(
        ExitStatus::NoSpace,
        format!(
            "not enough disk space for {what}: {needed_mb} MB needed under {folder}, {free_mb} MB \
             free; make room and run the command again"
        ),
    ))
}

/// Fills a new folder by `fill` and renames it to `place`, unless `place` exists by then.
pub(super) fn install(
    project: &Project,
    place: &Path,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let private = project.private();
    project::make_folder(&private)?;
    let lock_path = private.join("lock");
    let lock = fs::File::create(&lock_path)
        .and_then(|file| file.lock().map(|()| file))
        .map_err(|error| Failure::io("lock", &lock_path, &error))?;
    if place.exists() {
        return Ok(());
    }
    // Only the holder of the lock uses this folder; existing content is from an interrupted set-up.
    let fresh = private.join("unpacking");
    clear(&fresh)?;
    project::make_folder(&fresh)?;
    let filled = fill(&fresh).and_then(|()| {
        fs::rename(&fresh, place).map_err(|error| Failure::io("move to", place, &error))
    });
    if filled.is_err() {
        clear(&fresh)?;
    }
    drop(lock);
    filled
}

/// Removes a folder if it exists.
pub(super) fn clear(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::io("remove", folder, &error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_space_is_refused_with_the_amount() {
        assert_eq!(enough(300, 300, Path::new("/x"), "QEMU"), Ok(()));
        let failure = enough(299, 300, Path::new("/x"), "QEMU").unwrap_err();
        assert_eq!(failure.status, ExitStatus::NoSpace);
        assert!(failure.message.contains("300 MB needed under /x, 299 MB free"));
    }

    #[test]
    fn a_failed_install_leaves_no_files() {
        let root = std::env::temp_dir().join(format!("xtask-install-{}", std::process::id()));
        let project = Project { root: root.clone(), target: root.join("target") };
        let place = project.private().join("thing");
        let failed = install(&project, &place, |fresh| {
            project::write(&fresh.join("half"), b"half")?;
            Err(Failure::new(ExitStatus::HostError, "no"))
        });
        assert!(failed.is_err());
        assert!(!place.exists() && !project.private().join("unpacking").exists());
        install(&project, &place, |fresh| project::write(&fresh.join("all"), b"all")).unwrap();
        assert!(place.join("all").is_file());
        clear(&root).unwrap();
    }
}
