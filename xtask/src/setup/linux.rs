//! Fetches an unmodified Debian kernel, perf with its libraries, and busybox, to run on the virtual
//! PMU.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::{Deserialize, Serialize};
use tally_abi::ExitStatus;

use super::{
    apt::{self, Apt},
    install::{check_space, clear, install},
};
use crate::{
    Failure, Result,
    process::Child,
    progress::Step,
    project::{self, Project},
};

/// The packages: the kernel without dependencies; perf and busybox with theirs.
const KERNEL: &str = "linux-image-6.12.107+deb13-cloud-amd64";
const KERNEL_NOW: &str = "linux-image-cloud-amd64";
const PROGRAMS: [&str; 2] = ["linux-perf", "busybox-static"];
/// Size of the packages and their contents.
const NEEDED_MB: u64 = 700;

/// The unpacked kernel and programs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Linux {
    /// The compressed kernel.
    pub kernel: PathBuf,
    /// busybox, linked statically.
    pub busybox: PathBuf,
    /// perf.
    pub perf: PathBuf,
    /// The shared libraries that perf needs, the dynamic linker first.
    pub libraries: Vec<PathBuf>,
}

impl Linux {
    /// Makes a call of perf on the host, with its own dynamic linker and libraries.
    pub fn perf_on_host(&self) -> Command {
        let mut command = Command::new(&self.libraries[0]);
        let folders: BTreeSet<&Path> =
            self.libraries[1..].iter().filter_map(|library| library.parent()).collect();
        let folders: Vec<_> = folders.into_iter().map(Path::to_string_lossy).collect();
        command.arg("--library-path").arg(folders.join(":")).arg(&self.perf);
        command
    }
}

/// Finds or fetches the kernel and the programs.
///
/// # Errors
/// They are missing and cannot be fetched.
pub fn linux(project: &Project) -> Result<Linux> {
    let place = project.private().join("linux");
    if !place.exists() {
        fetch(project, &place)?;
    }
    find(&place).ok_or_else(|| {
        let place = place.display();
        let why = format!("{place} is incomplete: remove the folder and run the command again");
        Failure::new(ExitStatus::HostError, why)
    })
}

fn fetch(project: &Project, place: &Path) -> Result<()> {
    check_space(&project.private(), NEEDED_MB, "Linux and perf")?;
    let step = Step::start("Downloading Linux and perf (70 MB)");
    install(project, place, |fresh| {
        let archives = fresh.join("apt");
        let apt = Apt::prepare(&archives)?;
        let mut files = apt.download_all(&PROGRAMS)?;
        let kernel = fresh.join("kernel-package");
        project::make_folder(&kernel)?;
        files.push(match apt.download(KERNEL, &kernel) {
            Err(error) if error.status != ExitStatus::NoSpace => {
                apt.download(&apt.dependency(KERNEL_NOW)?, &kernel)?
            }
            file => file?,
        });
        for file in &files {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            step.at(&format!("unpacking {name}"));
            apt::succeed(Command::new("dpkg-deb").arg("-x").arg(file).arg(fresh))?;
        }
        clear(&kernel)?;
        clear(&archives)
    })?;
    step.done();
    Ok(())
}

fn find(place: &Path) -> Option<Linux> {
    let boot = fs::read_dir(place.join("boot")).ok()?.flatten().map(|entry| entry.path());
    let is_kernel = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"))
    };
    let kernel = boot.into_iter().find(is_kernel)?;
    let busybox = Some(place.join("usr/bin/busybox")).filter(|path| path.is_file())?;
    let perf = Some(place.join("usr/bin/perf")).filter(|path| path.is_file())?;
    let libraries = libraries(place, &perf)?;
    Some(Linux { kernel, busybox, perf, libraries })
}

/// The libraries that the packages' dynamic linker loads for `program`.
fn libraries(place: &Path, program: &Path) -> Option<Vec<PathBuf>> {
    let linker = place.join("usr/lib64/ld-linux-x86-64.so.2");
    let folder = place.join("usr/lib/x86_64-linux-gnu");
    let mut command = Command::new(&linker);
    command.arg("--library-path").arg(&folder).arg("--list").arg(program);
    let mut child = Child::spawn(command.stdout(Stdio::piped()).stderr(Stdio::null())).ok()?;
    let listed = std::io::read_to_string(child.take_stdout()?).ok()?;
    if !child.wait().ok()?.success() {
        return None;
    }
    let found = listed.lines().filter_map(|line| {
        let path = line.split_once("=> ")?.1.split(" (").next()?;
        Some(PathBuf::from(path))
    });
    // The linker lists itself under the path that programs name, which is outside of `place`.
    let found = found.filter(|path| path.starts_with(place) && *path != linker);
    Some([linker.clone()].into_iter().chain(found).collect())
}
