//! `cargo xtask setup`: fetches what this machine lacks into the project's own folder.
//!
//! Nothing on the system changes and root is not needed. What is fetched is unpacked beside its
//! place and then renamed, so that it is there whole or not at all; a lock keeps two set-ups apart.

mod apt;
mod library;
mod linux;
mod lttng;
mod musl;
mod qemu;

use std::{fs, path::Path};

use serde::{Deserialize, Serialize};
use tally_abi::ExitStatus;

pub use linux::{Linux, linux};
pub use lttng::Lttng;
pub use musl::{Musl, musl};
pub use qemu::Qemu;

use crate::{
    Failure, Result, output,
    project::{self, Project},
};

/// What the other tasks need of this machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tools {
    /// The sources of `core` and `alloc`: the folder `library`.
    pub library: std::path::PathBuf,
    /// QEMU and its firmware.
    pub qemu: Qemu,
}

/// Sees to it that everything is there.
///
/// # Errors
/// Something is missing and cannot be fetched.
pub fn tools(project: &Project) -> Result<Tools> {
    Ok(Tools { library: library(project)?, qemu: qemu(project)? })
}

/// Sees to it that QEMU and its firmware are there.
///
/// # Errors
/// They are missing and cannot be fetched.
pub fn qemu(project: &Project) -> Result<Qemu> {
    qemu::find_or_fetch(project)
}

/// Sees to it that LTTng-UST is there.
///
/// # Errors
/// It is missing and cannot be fetched.
pub fn lttng(project: &Project) -> Result<Lttng> {
    lttng::find_or_fetch(project)
}

/// Sees to it that the library sources are there.
///
/// # Errors
/// They are missing and cannot be fetched.
pub fn library(project: &Project) -> Result<std::path::PathBuf> {
    library::find_or_fetch(project)
}

/// Does the task.
///
/// # Errors
/// Something is missing and cannot be fetched.
pub fn main(project: &Project) -> Result<u8> {
    let tools = tools(project)?;
    output::text(&format!(
        "library sources: {}\nQEMU:            {}\nfirmware:        {}\n",
        tools.library.display(),
        tools.qemu.describe(),
        tools.qemu.firmware.display()
    ))?;
    Ok(0)
}

/// Fails unless the disk under `folder` has `needed_mb` free.
pub(crate) fn check_space(folder: &Path, needed_mb: u64, what: &str) -> Result<()> {
    project::make_folder(folder)?;
    let stat = rustix::fs::statvfs(folder)
        .map_err(|error| Failure::io("look at the disk of", folder, &error.into()))?;
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

/// Fills a fresh folder by `fill` and moves it to `place`, unless `place` is there by then.
fn install(project: &Project, place: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let private = project.private();
    project::make_folder(&private)?;
    let lock_path = private.join("lock");
    let lock = fs::File::create(&lock_path)
        .and_then(|file| file.lock().map(|()| file))
        .map_err(|error| Failure::io("lock", &lock_path, &error))?;
    if place.exists() {
        return Ok(());
    }
    // Only the holder of the lock uses it: what is there is left of a set-up that was cut off.
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

fn clear(folder: &Path) -> Result<()> {
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
    fn too_little_space_says_how_much() {
        assert_eq!(enough(300, 300, Path::new("/x"), "QEMU"), Ok(()));
        let failure = enough(299, 300, Path::new("/x"), "QEMU").unwrap_err();
        assert_eq!(failure.status, ExitStatus::NoSpace);
        assert!(failure.message.contains("300 MB needed under /x, 299 MB free"));
    }

    #[test]
    fn a_failed_install_leaves_nothing() {
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
