//! Finds or fetches the sources of `core` and `alloc`, from which the kernel, the programs and the
//! boot loader are built.

use std::{
    path::{Component, Path, PathBuf},
    process::{Command, Stdio},
};

use tally_abi::ExitStatus;

use super::{
    apt::Apt,
    install::{check_space, clear, install},
};
use crate::{
    Failure, Result,
    process::{self, Child},
    progress::Step,
    project::Project,
};

/// The compiler's version, as in `rust-toolchain.toml`.
const RUST_VERSION: &str = "1.95.0";
/// The package with the sources of this compiler version.
const PACKAGE: &str = "rust-src=1.95.0+dfsg1-2~bpo13+1";
/// Path of the sources in the package.
const IN_PACKAGE: &str = "usr/src/rustc-1.95.0/library";
/// Size of the package and the unpacked sources.
const NEEDED_MB: u64 = 200;

/// The toolchain's folder `library`, or the project's copy.
pub(super) fn find_or_fetch(project: &Project) -> Result<PathBuf> {
    let sysroot = rustc_output(&["--print", "sysroot"])?;
    let installed = Path::new(&sysroot).join("lib/rustlib/src/rust/library");
    if installed.join("Cargo.lock").is_file() {
        return Ok(installed);
    }
    let place = project.private().join(format!("library-{RUST_VERSION}"));
    if place.join("Cargo.lock").is_file() {
        return Ok(place);
    }
    let version = rustc_output(&["--version"])?;
    if version.split(' ').nth(1) != Some(RUST_VERSION) {
        return Err(failure(&format!("the compiler is {version}, not {RUST_VERSION}")));
    }
    check_space(&project.private(), NEEDED_MB, "the library sources")?;
    let step = Step::start("Downloading the library sources of Rust 1.95.0 (45 MB)");
    install(project, &place, |fresh| fetch(fresh, &step)).map_err(|error| match error.status {
        ExitStatus::NoSpace => error,
        _ => failure(&error.message),
    })?;
    step.done();
    Ok(place)
}

fn rustc_output(arguments: &[&str]) -> Result<String> {
    let output = process::output(Command::new("rustc").args(arguments)).map_err(|error| {
        Failure::new(
            ExitStatus::BuildFailed,
            format!("cannot run rustc: {error}; install Rust {RUST_VERSION} with rustup"),
        )
    })?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn failure(why: &str) -> Failure {
    Failure::new(
        ExitStatus::BuildFailed,
        format!(
            "the library sources of Rust {RUST_VERSION} are missing and could not be fetched: \
             {why}; connect to the network and run the command again, or run `rustup component add rust-src`"
        ),
    )
}

fn fetch(fresh: &Path, step: &Step) -> Result<()> {
    let archives = fresh.join("apt");
    let apt = Apt::prepare(&archives)?;
    let package = apt.download(PACKAGE, &archives)?;
    step.at("unpacking");
    let mut tar = Child::spawn(
        Command::new("dpkg-deb").arg("--fsys-tarfile").arg(&package).stdout(Stdio::piped()),
    )
    .map_err(|error| failure(&format!("cannot run dpkg-deb: {error}")))?;
    let stream = tar.take_stdout().expect("standard output is a pipe");
    unpack(tar::Archive::new(stream), fresh)
        .map_err(|error| Failure::io("unpack to", fresh, &error))?;
    // The stream was read to the end of the sources; dropping the child ends the child.
    drop(tar);
    clear(&archives)
}

fn unpack(mut archive: tar::Archive<impl std::io::Read>, fresh: &Path) -> std::io::Result<()> {
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let path = path.strip_prefix(".").unwrap_or(&path);
        let Ok(inner) = path.strip_prefix(IN_PACKAGE) else { continue };
        let inside = inner.components().all(|part| matches!(part, Component::Normal(_)));
        if inside && inner != Path::new("") {
            entry.unpack(fresh.join(inner)).map(drop)?;
        }
    }
    if fresh.join("Cargo.lock").is_file() {
        Ok(())
    } else {
        Err(std::io::Error::other("the package has no library/Cargo.lock"))
    }
}
