//! Fetches Debian packages whose programs and libraries tests run: several, unpacked together.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    apt::{self, Apt},
    install::{check_space, clear, install},
};
use crate::{
    Result,
    progress::Step,
    project::{self, Project},
};

/// The file that names the packages of a folder.
const CONTENTS: &str = "packages";
/// Disk space for each package with its contents; few are larger.
const PACKAGE_MB: u64 = 15;
/// Disk space for a package with all its dependencies.
const PROGRAM_MB: u64 = 150;

/// Extent of the packages to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// Only the named packages.
    Named,
    /// Also their dependencies, the dynamic linker among them.
    WithDependencies,
}

/// Finds the folder `name` of `.tally` with `packages`, without their dependencies, or fetches it.
/// A folder with other packages is replaced.
///
/// # Errors
/// A package cannot be fetched.
pub(crate) fn packages(project: &Project, name: &str, packages: &[&str]) -> Result<PathBuf> {
    find_or_fetch(project, name, packages, Extent::Named)
}

/// Finds or fetches a folder as [`packages`] does, with everything that the packages' programs need
/// to run.
///
/// # Errors
/// A package cannot be fetched.
pub(super) fn programs(project: &Project, name: &str, packages: &[&str]) -> Result<PathBuf> {
    find_or_fetch(project, name, packages, Extent::WithDependencies)
}

fn find_or_fetch(
    project: &Project,
    name: &str,
    packages: &[&str],
    extent: Extent,
) -> Result<PathBuf> {
    let place = project.private().join(name);
    let contents = packages.join("\n");
    if fs::read_to_string(place.join(CONTENTS)).is_ok_and(|there| there == contents) {
        return Ok(place);
    }
    let needed = match extent {
        Extent::Named => packages.len() as u64 * PACKAGE_MB,
        Extent::WithDependencies => packages.len() as u64 * PROGRAM_MB,
    };
    check_space(&project.private(), needed, "Debian packages")?;
    clear(&place)?;
    let step = Step::start(format!("Downloading {} Debian packages", packages.len()));
    install(project, &place, |fresh| {
        fetch(packages, extent, fresh, &step)?;
        project::write(&fresh.join(CONTENTS), contents.as_bytes())
    })?;
    step.done();
    Ok(place)
}

fn fetch(packages: &[&str], extent: Extent, fresh: &Path, step: &Step) -> Result<()> {
    let archives = fresh.join("apt");
    let apt = Apt::prepare(&archives)?;
    let files = match extent {
        Extent::Named => apt.download_each(packages, &archives)?,
        Extent::WithDependencies => apt.download_all(packages)?,
    };
    for file in files {
        step.at(&format!("unpacking {}", file.file_name().unwrap_or_default().display()));
        apt::succeed(Command::new("dpkg-deb").arg("-x").arg(&file).arg(fresh))?;
    }
    clear(&archives)
}
