//! The files that boots need.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tally_abi::{ExitStatus, trace::SampleRecord};

use super::folder::Folder;
use crate::{
    Failure, Result, boot_files,
    build::{
        self, efi, hosted,
        programs::{
            self,
            benchmarks::{self, Benchmark},
            list::List,
        },
    },
    code_files::{CodeFile, CodeFiles, KernelFile},
    guest_files::GuestFile,
    project::{self, Project},
    ramdisk, setup,
};

/// The environment variable in which `cargo xtask test` passes [`Artefacts`] to the boot tests.
pub const ARTEFACTS_VARIABLE: &str = "TALLY_ARTEFACTS";
/// The command line of the disk image [`Artefacts::disk`]; results go to log and screen.
pub const DISK_COMMAND_LINE: &str = "seed=1 codes=100 -- deflate --file status";

/// The built files that boots need.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Artefacts {
    /// The files that QEMU boots.
    pub boot: boot_files::BootFiles,
    /// Boot files with the kernel that checks memory after each system call, and that kernel's ELF
    /// file with debug information; for the fuzzer only.
    pub audited: Option<(boot_files::BootFiles, PathBuf)>,
    /// The files of the ramdisk, each with the file of the host that has its symbols.
    pub files: Vec<GuestFile>,
    /// The kernel's ELF file with debug information, which is not booted.
    pub symbols: PathBuf,
    /// Programs and their inputs that are in the ramdisk only if the command line names them:
    /// together they are several times as large as the rest.
    pub on_demand: Vec<PathBuf>,
    /// A disk image that runs [`DISK_COMMAND_LINE`]; for tests only.
    pub disk: Option<PathBuf>,
    /// A UEFI application that enables five-level paging; for tests only.
    pub five_levels: Option<PathBuf>,
    /// The virtual PMU.
    pub plugin: PathBuf,
    /// The check guest; for tests only.
    pub check_guest: Option<PathBuf>,
    /// The Linux kernel and its programs; for tests only.
    pub linux: Option<setup::Linux>,
    /// QEMU.
    pub qemu: setup::Qemu,
}

impl Artefacts {
    /// Fetches and builds whatever is missing or out of date. The ramdisk has the test guests.
    ///
    /// # Errors
    /// A tool cannot be fetched, or a crate does not build.
    pub fn make(project: &Project) -> Result<Artefacts> {
        let tools = setup::tools(project)?;
        let built = build::all(project, &tools.library)?;
        let programs = built.with_test_guests();
        Artefacts::of(project, tools, built, &programs)
    }

    /// Makes the files with the kernel that checks memory after each system call.
    ///
    /// # Errors
    /// As [`Self::make`].
    pub fn make_audited(project: &Project) -> Result<Artefacts> {
        let tools = setup::tools(project)?;
        let [kernel, symbols] = build::audited_kernel(project, &tools.library)?;
        let built = build::all(project, &tools.library)?;
        let programs = built.with_test_guests();
        Artefacts::of(project, tools, build::Built { kernel, symbols, ..built }, &programs)
    }

    /// Makes the files of a user's run: the ramdisk has the user's `files` and no test guests.
    ///
    /// # Errors
    /// A tool cannot be fetched, a crate does not build, or a file cannot be read or has the name
    /// of one of Tally's programs.
    pub fn make_for_run(project: &Project, files: &[GuestFile]) -> Result<Artefacts> {
        let tools = setup::tools(project)?;
        let built = build::for_run(project, &tools.library)?;
        let programs = built.with_files(files);
        Artefacts::of(project, tools, built, &programs)
    }

    /// Makes the files with a disk image that runs `command_line`.
    ///
    /// # Errors
    /// As [`Self::make`], or the image cannot be written.
    pub fn make_with_disk(project: &Project, command_line: &str) -> Result<Artefacts> {
        let tools = setup::tools(project)?;
        let built = build::all(project, &tools.library)?;
        let programs = built.with_test_guests();
        let efi = efi::build(project, &tools.library)?;
        let (kernel, library) = (&built.kernel, &tools.library);
        let disk = boot_files::disk(project, kernel, &efi, &programs, library, command_line)?;
        let artefacts = Artefacts::of(project, tools, built, &programs)?;
        Ok(Artefacts { disk: Some(disk), five_levels: Some(efi.five_levels), ..artefacts })
    }

    /// Makes the files for `cargo xtask test`, with everything that its tests boot.
    ///
    /// # Errors
    /// A tool cannot be fetched, or a crate does not build.
    pub fn make_for_tests(project: &Project) -> Result<Artefacts> {
        let tools = setup::tools(project)?;
        let linux = setup::linux(project)?;
        let [audited, symbols] = build::audited_kernel(project, &tools.library)?;
        let built = build::all(project, &tools.library)?;
        let mut on_demand = hosted::hosted_guests(project)?;
        on_demand.extend(hosted::musl_guests(project, &setup::musl(project)?)?);
        on_demand.extend(hosted::unusable_programs(project)?);
        on_demand.extend(hosted::library_guests(project)?);
        on_demand.extend(hosted::dynamic_guests(project)?);
        on_demand.extend(hosted::layout_guests(project)?);
        on_demand.push(hosted::rust_guest(project)?);
        on_demand.extend(programs::make(project, &List::read(project)?, true)?);
        let of_studies = Benchmark::all(project)?;
        on_demand.extend(benchmarks::make(project, &of_studies, &Benchmark::quick(&of_studies))?);
        let programs = built.with_test_guests();
        let efi = efi::build(project, &tools.library)?;
        let (kernel, library) = (&built.kernel, &tools.library);
        let disk = boot_files::disk(project, kernel, &efi, &programs, library, DISK_COMMAND_LINE)?;
        let check_guest = Some(build::check_guest(project, library)?);
        let with_audit = build::Built { kernel: audited, ..built.clone() };
        let boot = boot_files::for_machine(project, &with_audit, &programs, library)?;
        let audited = Some((boot, symbols));
        let artefacts = Artefacts::of(project, tools, built, &programs)?;
        let (disk, five_levels, linux) = (Some(disk), Some(efi.five_levels), Some(linux));
        Ok(Artefacts { audited, on_demand, disk, five_levels, check_guest, linux, ..artefacts })
    }

    fn of(
        project: &Project,
        tools: setup::Tools,
        built: build::Built,
        programs: &[GuestFile],
    ) -> Result<Artefacts> {
        let boot = boot_files::for_machine(project, &built, programs, &tools.library)?;
        let files = programs.iter().map(|file| with_symbols(project, file)).collect();
        Ok(Artefacts {
            boot,
            files,
            audited: None,
            symbols: built.symbols,
            on_demand: Vec::new(),
            disk: None,
            five_levels: None,
            plugin: built.plugin,
            check_guest: None,
            linux: None,
            qemu: tools.qemu,
        })
    }

    /// Artefacts with the kernel that checks memory after each system call, if it was built.
    #[must_use]
    pub fn audited(mut self) -> Artefacts {
        if let Some((boot, symbols)) = self.audited.take() {
            (self.boot, self.symbols) = (boot, symbols);
        }
        self
    }

    /// The ramdisk for a command line; if it needs programs on demand, a new one in `folder`.
    pub(super) fn ramdisk(&self, command_line: &str, folder: &Folder) -> Result<PathBuf> {
        let words: Vec<&str> = command_line.split_ascii_whitespace().collect();
        let named = self.named(&words);
        if named.is_empty() {
            return Ok(self.boot.ramdisk.clone());
        }
        let path = folder.file("ramdisk");
        project::write(&path, &ramdisk::with(&self.boot.ramdisk, &GuestFile::by_names(&named))?)?;
        Ok(path)
    }

    /// The files of the code in which samples can be, with the ramdisk `ramdisk` for a command
    /// line.
    ///
    /// # Errors
    /// The ramdisk or the kernel's file cannot be read.
    pub(super) fn code_files(
        &self,
        command_line: &str,
        ramdisk: &Path,
        samples: &[SampleRecord],
    ) -> Result<CodeFiles> {
        if samples.is_empty() {
            return Ok(CodeFiles::default());
        }
        let words: Vec<&str> = command_line.split_ascii_whitespace().collect();
        let named = GuestFile::by_names(&self.named(&words));
        let ramdisk = CodeFile::all(ramdisk, &[&self.files[..], &named].concat())?;
        let in_kernel = samples.iter().any(|of| !of.user && of.address != 0);
        let kernel = in_kernel.then(|| KernelFile::read(&self.symbols)).transpose()?;
        Ok(CodeFiles { ramdisk, kernel })
    }

    /// The files of [`Self::on_demand`] with these names.
    pub fn named(&self, words: &[&str]) -> Vec<PathBuf> {
        let is_named = |path: &&PathBuf| {
            let name = path.file_name().unwrap_or_default();
            words.iter().any(|word| name == *word)
        };
        self.on_demand.iter().filter(is_named).cloned().collect()
    }

    /// The files that `cargo xtask test` has built.
    ///
    /// # Errors
    /// The caller was not started by `cargo xtask test`.
    pub fn from_environment() -> Result<Artefacts> {
        let text = std::env::var(ARTEFACTS_VARIABLE).ok();
        text.and_then(|text| serde_json::from_str(&text).ok()).ok_or_else(|| {
            Failure::new(
                ExitStatus::Usage,
                "boot tests need built artefacts: run `cargo xtask test`",
            )
        })
    }
}

/// A file of the ramdisk; one of Tally's programs with the file that has its symbols.
fn with_symbols(project: &Project, file: &GuestFile) -> GuestFile {
    let known = build::PROGRAM_NAMES.into_iter().find(|known| *known == file.guest);
    let host = known.map(|known| build::program_symbols(project, known));
    GuestFile { host: host.unwrap_or_else(|| file.host.clone()), ..file.clone() }
}
