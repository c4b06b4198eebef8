//! Finds or fetches the sources of PAPI's own tests: Debian's source package.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use tally_abi::ExitStatus;

use super::{
    apt::{self, Apt},
    install::{check_space, clear, install},
};
use crate::{Failure, Result, process, progress::Step, project::Project};

/// The source package, and the suite that has it.
const PACKAGE: &str = "papi=7.0.0-2";
const SUITE: &str = "bookworm";
/// PAPI's own archive in the package, and its SHA-256 sum.
const ARCHIVE: &str = "papi_7.0.0.orig.tar.gz";
const SUM: &str = "799dcc317a47da96beaeed445812ecb6ae49df7c0504a4569797c1f7d74c4fd2";
/// The folders of the archive that tests need, below its first.
const FOLDERS: [&str; 3] = ["src/ctests", "src/testlib", "src/validation_tests"];
/// The archive's first folder.
const FIRST: &str = "papi-7.0.0";
/// Size of the package and the unpacked files.
const NEEDED_MB: u64 = 20;

/// Finds the folder with PAPI's tests (`ctests`, `testlib`, `validation_tests`), or fetches it.
///
/// # Errors
/// The package cannot be fetched, or is another than this project knows.
pub fn papi_tests(project: &Project) -> Result<PathBuf> {
    let place = project.private().join("papi-7.0.0");
    if !place.exists() {
        check_space(&project.private(), NEEDED_MB, "PAPI's tests")?;
        let step = Step::start("Downloading PAPI's tests (6 MB)");
        install(project, &place, |fresh| fetch(fresh, &step))?;
        step.done();
    }
    Ok(place.join("src"))
}

fn fetch(fresh: &Path, step: &Step) -> Result<()> {
    let folder = fresh.join("apt");
    Apt::prepare_sources(&folder, SUITE)?.download_source(PACKAGE, &folder)?;
    let archive = folder.join(ARCHIVE);
    check(&archive)?;
    step.at("unpacking");
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(&archive).arg("-C").arg(fresh).arg("--strip-components=1");
    apt::succeed(tar.args(FOLDERS.map(|folder| format!("{FIRST}/{folder}"))))?;
    clear(&folder)
}

/// Checks that the archive is the one whose tests the list names.
fn check(archive: &Path) -> Result<()> {
    let refused = |why: String| Failure::new(ExitStatus::HostError, why);
    let ran = process::output(Command::new("sha256sum").arg(archive))
        .map_err(|error| refused(format!("sha256sum: {error}")))?;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    match said.split(' ').next() {
        Some(SUM) => Ok(()),
        sum => {
            let sum = sum.unwrap_or_default();
            Err(refused(format!("{ARCHIVE} has the SHA-256 sum {sum}, not {SUM}: it was changed")))
        }
    }
}
