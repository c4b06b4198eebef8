//! `cargo xtask build`: builds kernel, loader, programs and plugin, each with its own
//! settings.
//!
//! Two sequences of cargo calls run in parallel: one builds for the guest, one for the host. Each
//! has its own target folders, so that neither waits for the other's locks and a warm build does
//! nothing.

pub mod archives;
mod built;
pub mod efi;
mod fresh;
pub mod hosted;
mod package;
pub mod papi;
pub mod programs;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use self::archives::Archives;
pub use self::built::{Built, program_symbols};
pub use self::package::{
    BOOT_LOADER_VARIABLE, C_LIBRARY, C_START, CHECK_GUEST, EFI, GuestPackage, KERNEL, LOADER,
    PAPI_LIBRARY, PROGRAM_NAMES, PROGRAMS, TEST_GUESTS,
};
use crate::{Failure, Result, compiler, output, project::Project, setup};

/// Disk space of a cold build of everything, with tests.
const NEEDED_MB: u64 = 2500;

/// Folder of `tally.h` and `papi.h`.
pub const HEADERS: &str = "userlib/capi/include";
/// Folder of the tests' C programs, which link with Tally's archives only.
const C_GUESTS: &str = "tests/guests/c";
/// The C program that is linked at the start of the kernel's mmap area, with its linker options.
/// Only position-independent code can be linked at such an address.
const LINKED_AT_MMAP_AREA: (&str, [&str; 2]) =
    ("segments", ["-fPIE", "-Wl,--no-relax,-Ttext-segment=0x100000000000"]);

/// Builds what a run needs, and no test guests, unless an earlier call did and nothing changed
/// since.
///
/// # Errors
/// A crate does not build; the message has the compiler's output.
pub fn for_run(project: &Project, library: &Path) -> Result<Built> {
    let sources = fresh::sources(project, library)?;
    if let Some(built) = fresh::find(project, &sources) {
        return Ok(built);
    }
    let built = built(project, library, || Ok(Vec::new()))?;
    fresh::keep(project, sources, &built)?;
    Ok(built)
}

/// Builds what a run needs, and the test guests.
///
/// # Errors
/// As [`for_run`].
pub fn all(project: &Project, library: &Path) -> Result<Built> {
    built(project, library, || test_guests(project, library))
}

fn built(
    project: &Project,
    library: &Path,
    test_guests: impl FnOnce() -> Result<Vec<PathBuf>> + Send,
) -> Result<Built> {
    if !project.target.join("guest").exists() {
        setup::check_space(&project.target, NEEDED_MB, "a first build")?;
    }
    let (guest, host) = thread::scope(|scope| {
        let guest = scope.spawn(|| Ok((build_guest(project, library)?, test_guests()?)));
        let plugin = plugin(project);
        (guest.join(), plugin)
    });
    let (([kernel, symbols, loader], programs), test_guests) =
        guest.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    Ok(Built { kernel, symbols, loader, programs, test_guests, plugin: host? })
}

/// The kernel without and with debug information, and its loader; the programs.
type Guest = ([PathBuf; 3], Vec<PathBuf>);

fn build_guest(project: &Project, library: &Path) -> Result<Guest> {
    compiler::run("Building the kernel", &mut KERNEL.cargo(project, library, "build"))?;
    let programs = build_programs(project, library, &PROGRAMS)?;
    let kernel = KERNEL.stripped(project, &[KERNEL.name.into()])?.remove(0);
    let symbols = KERNEL.release_folder(project).join(KERNEL.name);
    compiler::run("Building the loader", &mut LOADER.cargo(project, library, "build"))?;
    let loader = LOADER.stripped(project, &[LOADER.name.into()])?.remove(0);
    Ok(([kernel, symbols, loader], programs))
}

fn test_guests(project: &Project, library: &Path) -> Result<Vec<PathBuf>> {
    let mut guests = build_programs(project, library, &TEST_GUESTS)?;
    let archives = archives::build(project, library)?;
    guests.extend(build_c_guests(project, &archives)?);
    Ok(guests)
}

fn build_programs(
    project: &Project,
    library: &Path,
    package: &GuestPackage,
) -> Result<Vec<PathBuf>> {
    let title = format!("Building the programs of {}", package.folder);
    compiler::run(&title, package.cargo(project, library, "build").arg("--bins"))?;
    package.stripped(project, &bins(&project.root.join(package.folder))?)
}

/// Compiles each C program with the system's compiler, which Rust needs as linker anyway, and links
/// it as `tally.h` documents.
fn build_c_guests(project: &Project, archives: &Archives) -> Result<Vec<PathBuf>> {
    let folder = C_LIBRARY.release_folder(project);
    let header = project.root.join(HEADERS);
    let compile = |name: &String| {
        let program = folder.join(name);
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-ffreestanding", "-s"])
            .args([
                "-fno-stack-protector",
                "-static",
                "-no-pie",
                "-nostdlib",
                "-Wl,--gc-sections",
                "-I",
            ])
            .arg(&header)
            .arg(project.root.join(C_GUESTS).join(name).with_extension("c"))
            .args([&archives.tally, &archives.start])
            .arg("-o")
            .arg(&program);
        if name == LINKED_AT_MMAP_AREA.0 {
            cc.args(LINKED_AT_MMAP_AREA.1);
        }
        compiler::run(&format!("Compiling {name}.c"), &mut cc)?;
        Ok(program)
    };
    sources(&project.root.join(C_GUESTS), "c")?.iter().map(compile).collect()
}

/// Builds the virtual PMU alone.
///
/// # Errors
/// It does not build.
pub fn plugin(project: &Project) -> Result<PathBuf> {
    let mut plugin = project.cargo("build", &project.target);
    plugin.args(["--release", "--package", "tally-vpmu-plugin"]);
    compiler::run("Building the virtual PMU", &mut plugin)?;
    Ok(project.target.join("release/libtally_vpmu_plugin.so"))
}

/// Builds the empty plugin, to compare speeds with.
///
/// # Errors
/// It does not build.
pub fn empty_plugin(project: &Project) -> Result<PathBuf> {
    let mut plugin = project.cargo("build", &project.target);
    plugin.args(["--release", "--package", "tally-empty-plugin"]);
    compiler::run("Building the empty plugin", &mut plugin)?;
    Ok(project.target.join("release/libtally_empty_plugin.so"))
}

/// Builds the kernel that checks memory after each system call. Returns it without and with debug
/// information. Call before [`all`], whose kernel replaces this one in the target folder.
///
/// # Errors
/// It does not build.
pub fn audited_kernel(project: &Project, library: &Path) -> Result<[PathBuf; 2]> {
    let mut cargo = KERNEL.cargo(project, library, "build");
    compiler::run("Building the audited kernel", cargo.args(["--features", "audit"]))?;
    let symbols = KERNEL.set_aside(project, "audited")?;
    let kernel = symbols.with_extension("stripped");
    compiler::strip_debug(&project.root, &symbols, &kernel)?;
    Ok([kernel, symbols])
}

/// Builds the guest that checks the virtual PMU.
///
/// # Errors
/// It does not build.
pub fn check_guest(project: &Project, library: &Path) -> Result<PathBuf> {
    compiler::run("Building the check guest", &mut CHECK_GUEST.cargo(project, library, "build"))?;
    Ok(CHECK_GUEST.stripped(project, &[CHECK_GUEST.name.into()])?.remove(0))
}

/// The names of a package's programs, as cargo finds them in `src/bin`.
fn bins(package: &Path) -> Result<Vec<String>> {
    let folder = package.join("src/bin");
    let mut names = sources(&folder, "rs")?;
    let entries = fs::read_dir(&folder).map_err(|error| Failure::io("read", &folder, &error))?;
    let folders = entries.flatten().filter(|entry| entry.path().join("main.rs").exists());
    names.extend(folders.filter_map(|entry| entry.file_name().into_string().ok()));
    names.sort();
    Ok(names)
}

/// The sorted names, without extension, of the files in `folder` with this extension.
fn sources(folder: &Path, extension: &str) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).map_err(|error| Failure::io("read", folder, &error))?;
    let files = entries.flatten().map(|entry| entry.path());
    let mut names: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// Builds everything and prints the files with their sizes.
///
/// # Errors
/// The library's sources cannot be fetched, or a crate does not build.
pub fn main(project: &Project) -> Result<u8> {
    let built = all(project, &setup::library(project)?)?;
    let guests = built.programs.iter().chain(&built.test_guests);
    let kernel = [&built.kernel, &built.loader];
    let all = kernel.into_iter().chain(guests).chain([&built.plugin]);
    for file in all {
        let size = fs::metadata(file)
            .map_err(|error| Failure::io("read the size of", file, &error))?
            .len();
        output::text(&format!("{size:>9} bytes  {}\n", file.display()))?;
    }
    Ok(0)
}
