//! Finds or fetches musl, a second C library that test programs are linked with.

use std::{path::PathBuf, process::Command};

use tally_abi::ExitStatus;

use super::{
    apt::{self, Apt},
    install::{check_space, clear, install},
};
use crate::{Failure, Result, progress::Step, project::Project};

/// The package with headers, archives and start files, without the shared library.
const PACKAGE: &str = "musl-dev";
/// Size of the package and its contents.
const NEEDED_MB: u64 = 20;

/// The folders of musl.
#[derive(Clone, Debug)]
pub struct Musl {
    /// Folder of the headers.
    pub headers: PathBuf,
    /// Folder of the archives and start files.
    pub library: PathBuf,
}

/// Finds or fetches musl.
///
/// # Errors
/// The package is missing and cannot be fetched.
pub fn musl(project: &Project) -> Result<Musl> {
    let place = project.private().join("musl");
    let musl = Musl {
        headers: place.join("usr/include/x86_64-linux-musl"),
        library: place.join("usr/lib/x86_64-linux-musl"),
    };
    if !place.exists() {
        check_space(&project.private(), NEEDED_MB, "musl")?;
        let step = Step::start("Downloading musl (1 MB)");
        install(project, &place, |fresh| {
            let archives = fresh.join("apt");
            let package = Apt::prepare(&archives)?.download(PACKAGE, &archives)?;
            step.at("unpacking");
            apt::succeed(Command::new("dpkg-deb").arg("-x").arg(&package).arg(fresh))?;
            clear(&archives)
        })?;
        step.done();
    }
    if musl.library.join("libc.a").is_file() && musl.headers.is_dir() {
        return Ok(musl);
    }
    let place = place.display();
    let why = format!("{place} is incomplete: remove the folder and run the command again");
    Err(Failure::new(ExitStatus::HostError, why))
}
