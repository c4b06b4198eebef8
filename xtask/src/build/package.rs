//! The packages that are built for the guest, each with its own settings.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Result, compiler,
    project::{self, Project},
};

/// Flags for static executables without start files and libc, at fixed addresses.
const PROGRAM_FLAGS: &str = "-C panic=abort -C relocation-model=static \
    -C target-feature=+crt-static -C link-arg=-nostartfiles -C link-arg=-nostdlib \
    -C link-arg=-static -C link-arg=-no-pie";
/// Flags for archives that can be linked into static programs of either kind, at fixed addresses or
/// position-independent.
const ARCHIVE_FLAGS: &str = "-C panic=abort -C relocation-model=pic";
/// Makes what is built independent of the folder that the project is in.
const RUSTC: &str = "xtask/src/build/rustc.sh";
/// Setting that keeps the debug information for gdb and the symbolizer; a copy without it is
/// booted.
const WITH_SYMBOLS: &str = "profile.release.strip=\"none\"";
/// Packages of the guest with debug information on variables and types; the others have only
/// functions and lines.
const FULL_DEBUG: [&str; 4] = ["tally-kernel", "tally-engine", "tally-pmu", "tally-ring"];

/// A package that is built for the guest.
#[derive(Clone, Copy, Debug)]
pub struct GuestPackage {
    /// Name of the package.
    pub name: &'static str,
    /// Folder in the project.
    pub folder: &'static str,
    /// Target triple.
    pub target: &'static str,
    /// Crates of Rust's library to build with.
    library: &'static str,
    flags: &'static str,
}

/// The kernel.
pub const KERNEL: GuestPackage = GuestPackage {
    name: "tally-kernel",
    folder: "kernel",
    target: "x86_64-unknown-none",
    library: "core,alloc,compiler_builtins",
    // As the loader's, so that both take one build of Rust's library; `kernel/build.rs` has more.
    flags: "",
};
/// Names of the programs that come with Tally.
pub const PROGRAM_NAMES: [&str; 5] = ["deflate", "roofs", "rounds", "tally", "tally-check"];
/// The programs that come with Tally.
pub const PROGRAMS: GuestPackage = GuestPackage {
    name: "tally-programs",
    folder: "userlib/programs",
    target: "x86_64-unknown-linux-gnu",
    library: "core,alloc,compiler_builtins,panic_abort",
    flags: PROGRAM_FLAGS,
};
/// The programs that only tests and benches run.
pub const TEST_GUESTS: GuestPackage =
    GuestPackage { name: "tally-test-guests", folder: "tests/guests", ..PROGRAMS };
/// The user library for C programs.
pub const C_LIBRARY: GuestPackage =
    GuestPackage { name: "tally-capi", folder: "userlib/capi", flags: ARCHIVE_FLAGS, ..PROGRAMS };
/// PAPI's calls for C programs.
pub const PAPI_LIBRARY: GuestPackage =
    GuestPackage { name: "tally-papi", folder: "userlib/papi", ..C_LIBRARY };
/// The entry point of C programs without a C library.
pub const C_START: GuestPackage =
    GuestPackage { name: "tally-start", folder: "userlib/start", ..C_LIBRARY };
/// The guest that checks the virtual PMU.
pub const CHECK_GUEST: GuestPackage =
    GuestPackage { name: "tally-vpmu-check", folder: "qemu/check", ..KERNEL };
/// The loader of the kernel on QEMU.
pub const LOADER: GuestPackage =
    GuestPackage { name: "tally-loader", folder: "qemu/loader", ..CHECK_GUEST };
/// The application that UEFI firmware starts.
pub const EFI: GuestPackage = GuestPackage {
    name: "tally-efi",
    folder: "kernel/efi",
    target: "x86_64-unknown-uefi",
    library: "core,compiler_builtins",
    ..CHECK_GUEST
};
/// The environment variable that names the boot loader's file to the build of [`EFI`].
pub const BOOT_LOADER_VARIABLE: &str = "TALLY_BOOT_LOADER";

impl GuestPackage {
    /// Makes the command `cargo subcommand` for this package, with Rust's library built from the
    /// sources in `library`.
    pub fn cargo(&self, project: &Project, library: &Path, subcommand: &str) -> Command {
        let mut cargo = project.cargo(subcommand, &project.target.join("guest"));
        with_library(&mut cargo, library)
            .args(["--release", "--package", self.name, "--target", self.target])
            .arg(format!("-Zbuild-std={}", self.library))
            .args(["-Zbuild-std-features=compiler-builtins-mem", "--config", WITH_SYMBOLS])
            .args(FULL_DEBUG.iter().flat_map(|package| {
                ["--config".to_owned(), format!("profile.release.package.{package}.debug=\"full\"")]
            }))
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env("RUSTFLAGS", self.flags)
            .env("RUSTC_WRAPPER", project.root.join(RUSTC));
        cargo
    }

    /// Strips debug information, which would slow booting down, from the executables `bins`.
    /// Symbols are kept.
    pub(super) fn stripped(&self, project: &Project, bins: &[String]) -> Result<Vec<PathBuf>> {
        let folder = project.target.join("guest").join(self.target).join("stripped");
        project::make_folder(&folder)?;
        bins.iter()
            .map(|bin| {
                let stripped = folder.join(bin);
                compiler::strip_debug(
                    &project.root,
                    &self.release_folder(project).join(bin),
                    &stripped,
                )?;
                Ok(stripped)
            })
            .collect()
    }

    /// Copies the package's executable to a folder of this name.
    pub(super) fn set_aside(&self, project: &Project, folder: &str) -> Result<PathBuf> {
        let folder = project.target.join("guest").join(self.target).join(folder);
        project::make_folder(&folder)?;
        let copy = folder.join(self.name);
        project::write(&copy, &project::read(&self.release_folder(project).join(self.name))?)?;
        Ok(copy)
    }

    pub(super) fn release_folder(&self, project: &Project) -> PathBuf {
        project.target.join("guest").join(self.target).join("release")
    }
}

/// Makes stable cargo build Rust's library from the sources in `library`.
pub(super) fn with_library<'a>(cargo: &'a mut Command, library: &Path) -> &'a mut Command {
    cargo.env("RUSTC_BOOTSTRAP", "1").env("__CARGO_TESTS_ONLY_SRC_ROOT", library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_programs() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../userlib/programs/src/bin");
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<_> =
            entries.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        names.sort();
        assert_eq!(names, PROGRAM_NAMES);
    }
}
