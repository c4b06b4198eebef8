//! Programs of the list `tests/programs/list.toml`: fetched or built, each as a file of its name in
//! one folder. The guest machine and the host run the same files.

pub mod benchmarks;
pub mod list;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use self::list::{FOLDER, List, Listed, Origin};
use super::{PROGRAMS, hosted};
use tally_abi::ExitStatus;

use crate::{
    Failure, Result, compiler,
    project::{self, Project},
    setup,
};

/// The package with programs of ordinary crates.
pub const CRATES: &str = "tally-test-crates";
/// Folder of the built programs, below the target folder.
const BUILT: &str = "guest/programs";
/// Folders of `.tally` with the packages of the boot tests' programs, and of the other programs.
const PACKAGES: [&str; 2] = ["programs", "programs-study"];
/// Packages of the C library that programs of [`Origin::Source`] are linked with. It comes from the
/// same source as the other libraries, which can be newer than the build machine's.
const C_LIBRARY: [&str; 2] = ["libc6-dev", "linux-libc-dev"];
/// Debian's packages of Go.
const GO: [&str; 2] = ["golang-1.24-go", "golang-1.24-src"];
const GO_ROOT: &str = "usr/lib/go-1.24";

/// Fetches or builds the programs of the list; only those of the boot tests if `quick` is set.
/// Returns them with the files of their inputs.
///
/// # Errors
/// A package cannot be fetched, or a program does not build.
pub fn make(project: &Project, list: &List, quick: bool) -> Result<Vec<PathBuf>> {
    let folder = project.target.join(BUILT);
    project::make_folder(&folder)?;
    // The packages of all programs are fetched, so that another choice does not fetch them again.
    let all = List::read(project)?;
    let mut made = Vec::new();
    for (part, packages) in PACKAGES.into_iter().enumerate().take(if quick { 1 } else { 2 }) {
        let wanted: Vec<&Listed> =
            list.wanted(quick).filter(|program| program.quick == (part == 0)).collect();
        let of_part = all.wanted(false).filter(|program| program.quick == (part == 0));
        let origins = packages_of(of_part.map(|program| &program.from));
        let root = setup::packages(project, packages, &origins)?;
        if part == 1 {
            make_guests(project, &wanted)?;
        }
        for program in wanted.iter().filter(|it| !matches!(it.from, Origin::Host { .. })) {
            let path = folder.join(&program.name);
            let Listed { name, from, .. } = program;
            let sources = project.root.join(FOLDER).join("c");
            make_one(project, (name, from), &sources, &root, (&path, Symbols::No))?;
            made.push(path);
        }
    }
    made.extend(inputs(project)?);
    Ok(made)
}

/// The packages that programs come from or are built with, sorted.
fn packages_of<'a>(origins: impl Iterator<Item = &'a Origin>) -> Vec<&'a str> {
    let of = |origin: &'a Origin| match origin {
        Origin::Package { package, .. } => vec![package.as_str()],
        Origin::Source { packages, .. } => {
            packages.iter().map(String::as_str).chain(C_LIBRARY).collect()
        }
        Origin::Go { .. } => GO.to_vec(),
        Origin::Crate { .. }
        | Origin::Install { .. }
        | Origin::Guest { .. }
        | Origin::Host { .. } => Vec::new(),
    };
    let mut packages: Vec<&str> = origins.flat_map(of).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// Builds the test guests if one of the programs is a test guest.
fn make_guests(project: &Project, programs: &[&Listed]) -> Result<()> {
    if programs.iter().any(|program| matches!(program.from, Origin::Guest { .. })) {
        project::make_folder(&hosted::folder(project))?;
        hosted::musl_guests(project, &setup::musl(project)?)?;
        hosted::library_guests(project)?;
        hosted::rust_guest(project)?;
    }
    Ok(())
}

/// Whether a program that is compiled here has its symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbols {
    /// Without symbols.
    No,
    /// With the symbols of all functions.
    Yes,
}

/// Fetches or builds a program as the file `path`. Its source in C is in `sources`; the packages
/// are unpacked in `root`.
fn make_one(
    project: &Project,
    (name, origin): (&str, &Origin),
    sources: &Path,
    root: &Path,
    (path, symbols): (&Path, Symbols),
) -> Result<()> {
    let built = match origin {
        Origin::Package { file, .. } => root.join(file),
        Origin::Source { source, options, link, .. } => {
            return compile(&sources.join(source), (options, link), root, (path, symbols));
        }
        Origin::Go { go } => {
            return compile_go(project, &project.root.join(FOLDER).join("go").join(go), root, path);
        }
        Origin::Crate { name: of_crate } => build_crate(project, of_crate)?,
        Origin::Install { install, version } => {
            install_crate(project, install, version)?.join("bin").join(name)
        }
        Origin::Guest { guest } => hosted::folder(project).join(guest),
        Origin::Host { .. } => {
            let why = format!("{name}: a program of this machine is not built");
            return Err(Failure::new(ExitStatus::BuildFailed, why));
        }
    };
    fs::copy(&built, path).map(drop).map_err(|error| Failure::io("copy", &built, &error))
}

/// Compiles a file in C with these options of the compiler and the linker.
fn compile(
    source: &Path,
    (options, link): (&[String], &[String]),
    root: &Path,
    (path, symbols): (&Path, Symbols),
) -> Result<()> {
    let mut sysroot = std::ffi::OsString::from("--sysroot=");
    sysroot.push(root);
    let mut libraries = std::ffi::OsString::from("-B");
    libraries.push(root.join("usr/lib/x86_64-linux-gnu"));
    let mut cc = Command::new("cc");
    cc.args([sysroot, libraries])
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-static", "-pthread"])
        .args(if symbols == Symbols::No { &["-s"][..] } else { &[] })
        .args(options)
        .arg("-o")
        .arg(path)
        .arg(source)
        .args(link);
    compiler::run(&format!("Compiling {}", path.file_name().unwrap_or_default().display()), &mut cc)
}

fn compile_go(project: &Project, source: &Path, root: &Path, path: &Path) -> Result<()> {
    let go_root = root.join(GO_ROOT);
    let own = project.target.join("guest/go");
    let mut go = Command::new(go_root.join("bin/go"));
    go.args(["build", "-trimpath", "-o"])
        .args([path, source])
        .env("GOROOT", &go_root)
        .env("GOPATH", own.join("path"))
        .env("GOCACHE", own.join("cache"))
        .envs([("CGO_ENABLED", "0"), ("GO111MODULE", "off"), ("GOTOOLCHAIN", "local")])
        .env_remove("GOFLAGS");
    compiler::run(&format!("Compiling {}", source.display()), &mut go)
}

/// Makes a call of cargo for static programs with Rust's standard library as the compiler ships it.
fn static_cargo(project: &Project, subcommand: &str) -> Command {
    let mut cargo = project.cargo(subcommand, &project.target.join("guest/rust"));
    cargo
        .args(["--target", PROGRAMS.target, "--config", "profile.release.strip=true"])
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", "-C target-feature=+crt-static");
    cargo
}

fn build_crate(project: &Project, name: &str) -> Result<PathBuf> {
    let mut build = static_cargo(project, "build");
    build.args(["--release", "--package", CRATES, "--bin", name]);
    compiler::run(&format!("Building {name}"), &mut build)?;
    Ok(project.target.join("guest/rust").join(PROGRAMS.target).join("release").join(name))
}

/// Installs a program of crates.io into a separate folder below the target folder, unless it is
/// installed.
fn install_crate(project: &Project, name: &str, version: &str) -> Result<PathBuf> {
    let root = project.target.join("guest/crates").join(format!("{name}-{version}"));
    if !root.join("bin").is_dir() {
        let mut install = static_cargo(project, "install");
        install.args([name, "--locked", "--version", &format!("={version}"), "--root"]).arg(&root);
        compiler::run(&format!("Building {name} {version}"), &mut install)?;
    }
    Ok(root)
}

/// The input files that commands can name.
fn inputs(project: &Project) -> Result<Vec<PathBuf>> {
    let folder = project.root.join(FOLDER).join("inputs");
    let entries = fs::read_dir(&folder).map_err(|error| Failure::io("read", &folder, &error))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}
