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

/// Finds the folder `name` of `.tally` with `packages`, without their dependencies, or fetches it.
/// A folder with other packages is replaced.
///
/// # Errors
/// A package cannot be fetched.
pub(crate) fn packages(project: &Project, name: &str, packages: &[&str]) -> Result<PathBuf> {
    let place = project.private().join(name);
    let contents = packages.join("\n");
    if fs::read_to_string(place.join(CONTENTS)).is_ok_and(|there| there == contents) {
        return Ok(place);
    }
    check_space(&project.private(), packages.len() as u64 * PACKAGE_MB, "Debian packages")?;
    clear(&place)?;
    let step = Step::start(format!("Downloading {} Debian packages", packages.len()));
    install(project, &place, |fresh| {
        fetch(packages, fresh, &step)?;
        project::write(&fresh.join(CONTENTS), contents.as_bytes())
    })?;
    step.done();
    Ok(place)
}

fn fetch(packages: &[&str], fresh: &Path, step: &Step) -> Result<()> {
    let archives = fresh.join("apt");
    for file in Apt::prepare(&archives)?.download_each(packages, &archives)? {
        step.at(&format!("unpacking {}", file.file_name().unwrap_or_default().display()));
        apt::succeed(Command::new("dpkg-deb").arg("-x").arg(&file).arg(fresh))?;
    }
    clear(&archives)
}
