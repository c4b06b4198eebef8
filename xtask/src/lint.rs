//! `cargo xtask lint`: checks of formatting, clippy for host and guest crates, the documentation of
//! the Rust library; warnings are errors.

use std::process::Command;

use tally_abi::ExitStatus;

use crate::{
    Failure, Result,
    build::{
        BOOT_LOADER_VARIABLE, C_LIBRARY, C_START, CHECK_GUEST, EFI, KERNEL, LOADER, PAPI_LIBRARY,
        PROGRAMS, TEST_GUESTS,
    },
    output,
    process::Child,
    project::Project,
    setup,
};

/// Runs every check, also after a failed one.
///
/// # Errors
/// The library's sources cannot be fetched, or a check failed.
pub fn main(project: &Project) -> Result<u8> {
    let format =
        check("formatting", project.cargo_without_target("fmt").args(["--all", "--check"]));
    let mut host = project.cargo("clippy", &project.target);
    host.args(["--all-targets", "--", "-D", "warnings"]);
    let mut found = format.and(check("lints of host crates", &mut host));
    let mut doc = project.cargo("doc", &project.target);
    doc.args(["--no-deps", "--package", "tally", "--features", "runtime"])
        .env("RUSTDOCFLAGS", "-D warnings");
    found = found.and(check("documentation of the Rust library", &mut doc));
    let library = setup::library(project)?;
    let archives = [&C_LIBRARY, &C_START, &PAPI_LIBRARY];
    for package in
        [&KERNEL, &LOADER, &EFI, &PROGRAMS, &TEST_GUESTS, &CHECK_GUEST].into_iter().chain(archives)
    {
        if project.has_package(package.folder) {
            let mut guest = package.cargo(project, &library, "clippy");
            // Lints need no boot loader, and the build's is not made here.
            guest.env(BOOT_LOADER_VARIABLE, "/dev/null");
            let title = format!("lints of {}", package.folder);
            found = found.and(check(&title, guest.args(["--", "-D", "warnings"])));
        }
    }
    found.map(|()| 0)
}

/// Runs a check; its output goes to the terminal.
pub(crate) fn check(what: &str, command: &mut Command) -> Result<()> {
    output::note(format_args!("{what} …"));
    let refused = |error: std::io::Error| {
        Failure::new(ExitStatus::BuildFailed, format!("cannot run cargo: {error}"))
    };
    let status = Child::spawn(command).map_err(refused)?.wait().map_err(refused)?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(ExitStatus::CheckFailed, format!("{what} failed; see the output above")))
}
