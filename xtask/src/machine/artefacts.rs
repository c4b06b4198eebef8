//! What boots are made of.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tally_abi::ExitStatus;

use super::folder::Folder;
use crate::{
    Failure, Result,
    build::{self, hosted},
    image,
    project::{self, Project},
    ramdisk, setup,
};

/// The environment variable in which `cargo xtask test` tells the boot tests about [`Artefacts`].
pub const ARTEFACTS_VARIABLE: &str = "TALLY_ARTEFACTS";
/// What the disk image of [`Artefacts::disk`] runs, its results going to the log.
pub const DISK_COMMAND_LINE: &str = "seed=1 -- deflate --file status";

/// Everything that a boot is made of, built.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Artefacts {
    /// What firmware boots.
    pub boot: image::BootFiles,
    /// The kernel's ELF file with its debug information, which what firmware boots lacks.
    pub symbols: PathBuf,
    /// Programs that the ramdisk gets where the command line names them: all of them together are
    /// several times as large as the rest, and firmware takes its time for each byte.
    pub on_demand: Vec<PathBuf>,
    /// A disk image that runs [`DISK_COMMAND_LINE`], if tests are to boot one.
    pub disk: Option<PathBuf>,
    /// The virtual PMU.
    pub plugin: PathBuf,
    /// The guest that checks it, if tests are to boot it.
    pub check_guest: Option<PathBuf>,
    /// Another kernel to run on it, if tests are to boot that.
    pub linux: Option<setup::Linux>,
    /// QEMU.
    pub qemu: setup::Qemu,
}

impl Artefacts {
    /// Fetches and builds what is missing or out of date.
    ///
    /// # Errors
    /// Something cannot be fetched or built.
    pub fn make(project: &Project) -> Result<Artefacts> {
        let tools = setup::tools(project)?;
        let built = build::all(project, &tools.library)?;
        let programs = built.with_test_guests();
        Artefacts::of(project, tools, built, &programs)
    }

    /// The same for a user's run: the user's `files` are in the ramdisk, and no program of the
    /// tests.
    ///
    /// # Errors
    /// Something cannot be fetched, built or read, or a file has the name of one of Tally's
    /// programs.
    pub fn make_for_run(project: &Project, files: &[PathBuf]) -> Result<Artefacts> {
        let tools = setup::tools(project)?;
        let built = build::all(project, &tools.library)?;
        let programs = built.with_files(files);
        Artefacts::of(project, tools, built, &programs)
    }

    /// The same, and what only `cargo xtask test` boots.
    ///
    /// # Errors
    /// Something cannot be fetched or built.
    pub fn make_for_tests(project: &Project) -> Result<Artefacts> {
        let tools = setup::tools(project)?;
        let linux = setup::linux(project)?;
        let built = build::all(project, &tools.library)?;
        let mut on_demand = hosted::hosted_guests(project)?;
        on_demand.extend(hosted::musl_guests(project, &setup::musl(project)?)?);
        on_demand.extend([hosted::rust_guest(project)?, linux.busybox.clone()]);
        let disk = image::for_test(project, &built, &tools.library, DISK_COMMAND_LINE)?;
        let check_guest = Some(build::check_guest(project, &tools.library)?);
        let programs = built.with_test_guests();
        let artefacts = Artefacts::of(project, tools, built, &programs)?;
        Ok(Artefacts { on_demand, disk: Some(disk), check_guest, linux: Some(linux), ..artefacts })
    }

    fn of(
        project: &Project,
        tools: setup::Tools,
        built: build::Built,
        programs: &[PathBuf],
    ) -> Result<Artefacts> {
        let boot = image::for_machine(project, &built, programs, &tools.library)?;
        Ok(Artefacts {
            boot,
            symbols: built.symbols,
            on_demand: Vec::new(),
            disk: None,
            plugin: built.plugin,
            check_guest: None,
            linux: None,
            qemu: tools.qemu,
        })
    }

    /// The ramdisk for a command line, put into `folder` if it is one of its own.
    pub(super) fn ramdisk(&self, command_line: &str, folder: &Folder) -> Result<PathBuf> {
        let words: Vec<&str> = command_line.split_ascii_whitespace().collect();
        let is_named = |program: &&PathBuf| {
            let name = program.file_name().unwrap_or_default();
            words.iter().any(|word| name == *word)
        };
        let named: Vec<PathBuf> = self.on_demand.iter().filter(is_named).cloned().collect();
        if named.is_empty() {
            return Ok(self.boot.ramdisk.clone());
        }
        let path = folder.file("ramdisk");
        project::write(&path, &ramdisk::with(&self.boot.ramdisk, &named)?)?;
        Ok(path)
    }

    /// What `cargo xtask test` built.
    ///
    /// # Errors
    /// The caller was not started by it.
    pub fn from_environment() -> Result<Artefacts> {
        let text = std::env::var(ARTEFACTS_VARIABLE).ok();
        text.and_then(|text| serde_json::from_str(&text).ok()).ok_or_else(|| {
            Failure::new(
                ExitStatus::Usage,
                "this test boots a machine that is not built yet; run `cargo xtask test`",
            )
        })
    }
}
