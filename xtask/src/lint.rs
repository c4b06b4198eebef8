//! `cargo xtask lint`: formatting and lints of host and guest crates, warnings being errors.

use std::process::Command;

use tally_abi::ExitStatus;

use crate::{
    Failure, Result,
    build::{KERNEL, PROGRAMS, TEST_GUESTS},
    process::Child,
    project::Project,
    setup,
};

/// Does the task.
///
/// # Errors
/// Something is missing, or something was found.
pub fn main(project: &Project) -> Result<u8> {
    check("formatting", project.cargo_without_target("fmt").args(["--all", "--check"]))?;
    let mut host = project.cargo("clippy", &project.target);
    check("lints of host crates", host.args(["--all-targets", "--", "-D", "warnings"]))?;
    let library = setup::library(project)?;
    for package in [&KERNEL, &PROGRAMS, &TEST_GUESTS] {
        if project.has_package(package.folder) {
            let mut guest = package.cargo(project, &library, "clippy");
            check(&format!("lints of {}", package.folder), guest.args(["--", "-D", "warnings"]))?;
        }
    }
    Ok(0)
}

/// Runs a check whose output is for people.
pub(crate) fn check(what: &str, command: &mut Command) -> Result<()> {
    eprintln!("{what} …");
    let refused = |error: std::io::Error| {
        Failure::new(ExitStatus::BuildFailed, format!("cannot run cargo: {error}"))
    };
    let status = Child::spawn(command).map_err(refused)?.wait().map_err(refused)?;
    match status.success() {
        true => Ok(()),
        false => {
            Err(Failure::new(ExitStatus::CheckFailed, format!("{what}: see what is said above")))
        }
    }
}
