//! The parts of a disk image: its maker, and the application that UEFI firmware starts.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::package::{BOOT_LOADER_VARIABLE, EFI, with_library};
use crate::{
    Failure, Result, compiler,
    project::{self, Project},
};

/// The files that disk images and their tests need.
#[derive(Clone, Debug)]
pub struct Efi {
    /// The maker of disk images.
    pub maker: PathBuf,
    /// The application that firmware starts, with the boot loader in it.
    pub first: PathBuf,
    /// An application that enables five-level paging, for tests.
    pub five_levels: PathBuf,
}

/// Builds these files.
///
/// # Errors
/// A file does not build.
pub fn build(project: &Project, library: &Path) -> Result<Efi> {
    let images = project.images();
    let mut maker = project.cargo("build", &images);
    with_library(&mut maker, library).args(["--release", "--package", "tally-image"]);
    compiler::run("Building the boot loader", &mut maker)?;
    let maker = images.join("release/tally-image");
    let boot_loader = boot_loader(project, &maker)?;
    let mut first = EFI.cargo(project, library, "build");
    first.env(BOOT_LOADER_VARIABLE, &boot_loader);
    compiler::run("Building what UEFI firmware starts", &mut first)?;
    let built = |name| EFI.release_folder(project).join(name);
    Ok(Efi { maker, first: built("bootx64.efi"), five_levels: built("five-levels.efi") })
}

/// The boot loader's file. It is written only if it has changed, as a newer file causes a rebuild
/// of the application that contains it.
fn boot_loader(project: &Project, maker: &Path) -> Result<PathBuf> {
    let path = project.images().join("boot-loader.efi");
    let part = project.images().join(format!("boot-loader-{}", std::process::id()));
    compiler::run("Writing the boot loader", Command::new(maker).arg("boot-loader").arg(&part))?;
    let made = project::read(&part)?;
    fs::remove_file(&part).map_err(|error| Failure::io("remove", &part, &error))?;
    if !fs::read(&path).is_ok_and(|old| old == made) {
        project::write(&path, &made)?;
    }
    Ok(path)
}
