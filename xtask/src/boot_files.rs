//! Makes the files that are booted: those that runs and tests pass to QEMU, and disk images.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use tally_abi::ExitStatus;

use crate::{
    Failure, Result,
    build::{Built, efi::Efi},
    guest_files::GuestFile,
    process::Child,
    project::{self, Project},
    ramdisk,
};

/// The files that runs and tests boot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BootFiles {
    /// QEMU's loader of the kernel.
    pub loader: PathBuf,
    /// The kernel.
    pub kernel: PathBuf,
    /// The ramdisk: programs, without a command line, which is passed separately.
    pub ramdisk: PathBuf,
}

/// Collects the files that runs and tests boot, with `programs` in the ramdisk. The files are
/// copies, so that a build during a long run does not change them.
///
/// # Errors
/// A file cannot be read or written.
pub fn for_machine(
    project: &Project,
    built: &Built,
    programs: &[GuestFile],
    library: &Path,
) -> Result<BootFiles> {
    let loader = project::read(&built.loader)?;
    let kernel = project::read(&built.kernel)?;
    let ramdisk = ramdisk::make(programs, library, None)?;
    let files = [("loader", &loader), ("kernel", &kernel), ("ramdisk", &ramdisk)];
    let folder = made(project, "boot-folder-", files.map(|(_, bytes)| &**bytes), |part| {
        project::make_folder(part)?;
        files.iter().try_for_each(|(name, bytes)| project::write(&part.join(name), bytes))
    })?;
    let [loader, kernel, ramdisk] = files.map(|(name, _)| folder.join(name));
    Ok(BootFiles { loader, kernel, ramdisk })
}

/// Makes a disk image that runs `command_line`, with `programs`.
///
/// # Errors
/// A file cannot be read or written, or the image maker fails.
pub fn disk(
    project: &Project,
    kernel: &Path,
    efi: &Efi,
    programs: &[GuestFile],
    library: &Path,
    command_line: &str,
) -> Result<PathBuf> {
    let ramdisk = ramdisk::make(programs, library, Some(command_line))?;
    let inputs = [&*project::read(kernel)?, &ramdisk, &project::read(&efi.first)?];
    made(project, "boot-disk-", inputs, |part| {
        let ramdisk_file = project.images().join(format!("ramdisk-{}.tar", std::process::id()));
        project::write(&ramdisk_file, &ramdisk)?;
        let mut command = Command::new(&efi.maker);
        command.arg("disk").args([kernel, &ramdisk_file, &efi.first, part]);
        let ended = Child::spawn(&mut command).and_then(|mut child| child.wait());
        remove(&ramdisk_file);
        if !ended.map_err(|error| Failure::io("run", &efi.maker, &error))?.success() {
            let why = format!("the image maker could not write {}", part.display());
            return Err(Failure::new(ExitStatus::BuildFailed, why));
        }
        Ok(())
    })
}

/// The file that `make` writes for `inputs`. Its name contains their hash, so that an existing one
/// is up to date. `make` writes under another name first.
fn made(
    project: &Project,
    prefix: &str,
    inputs: [&[u8]; 3],
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let folder = project.images();
    let made = folder.join(format!("{prefix}{}", stamp(inputs)));
    if is_there(&made) {
        return Ok(made);
    }
    project::make_folder(&folder)?;
    let part = folder.join(format!("part-{}", std::process::id()));
    make(&part).inspect_err(|_| remove(&part))?;
    remove_old(&folder, prefix);
    match fs::rename(&part, &made) {
        Ok(()) => Ok(made),
        // Another process has made the same file meanwhile.
        Err(_) if made.exists() => {
            remove(&part);
            Ok(made)
        }
        Err(error) => Err(Failure::io("write", &made, &error)),
    }
}

/// Returns whether an image exists. Sets its modification time to now, so that no process removes
/// it while in use.
fn is_there(made: &Path) -> bool {
    let Ok(file) = fs::File::open(made) else { return false };
    // If this fails, the worst result is that the image is built again.
    let _ = file.set_modified(SystemTime::now());
    true
}

/// Age from which an unused image is removed. A study may use one image for hours.
const KEPT: Duration = Duration::from_secs(3 * 60 * 60);

/// Removes the images that no process has used for [`KEPT`].
fn remove_old(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|m| m.elapsed().ok());
        let ours = entry.file_name().to_string_lossy().starts_with(prefix);
        if ours && age.is_some_and(|age| age > KEPT) {
            remove(&entry.path());
        }
    }
}

/// Removes a file or folder; an error is harmless.
fn remove(path: &Path) {
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

/// A hash of `inputs`, not cryptographic.
fn stamp(inputs: [&[u8]; 3]) -> String {
    let mut hasher = DefaultHasher::new();
    inputs.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_image_is_not_removed() {
        let folder = std::env::temp_dir().join(format!("xtask-images-{}", std::process::id()));
        let [used, unused] = ["boot-folder-a", "boot-folder-b"].map(|name| folder.join(name));
        for image in [&used, &unused] {
            project::make_folder(image).unwrap();
            let ago = SystemTime::now() - 2 * KEPT;
            fs::File::open(image).and_then(|image| image.set_modified(ago)).unwrap();
        }
        assert!(is_there(&used) && !is_there(&folder.join("boot-folder-c")));
        remove_old(&folder, "boot-folder-");
        assert!(used.exists() && !unused.exists());
        remove(&folder);
    }

    #[test]
    fn a_stamp_depends_on_the_boundaries_of_the_inputs() {
        assert_eq!(stamp([b"a", b"b", b""]), stamp([b"a", b"b", b""]));
        assert_ne!(stamp([b"a", b"b", b""]), stamp([b"ab", b"", b""]));
    }
}
