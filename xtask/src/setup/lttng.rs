//! Debian's LTTng-UST, to compare trace rings with: unpacked, and run without root.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tally_abi::ExitStatus;

use super::{
    apt::{self, Apt},
    install::{check_space, clear, install},
};
use crate::{
    Failure, Result, process,
    project::{self, Project},
};

/// The packages, fetched with their dependencies.
const PACKAGES: [&str; 2] = ["lttng-tools", "liblttng-ust-dev"];
/// Size of the packages and their contents.
const NEEDED_MB: u64 = 200;

/// The unpacked packages.
#[derive(Debug)]
pub struct Lttng {
    place: PathBuf,
}

/// Finds or fetches LTTng-UST.
pub(super) fn find_or_fetch(project: &Project) -> Result<Lttng> {
    let place = project.private().join("lttng");
    if !place.exists() {
        check_space(&project.private(), NEEDED_MB, "LTTng-UST")?;
        install(project, &place, |fresh| {
            let archives = fresh.join("apt");
            // The system's suite, because the programs run with the system's C library.
            let files = Apt::prepare_for(&archives, &suite()?)?.download_all(&PACKAGES)?;
            for file in &files {
                apt::succeed(Command::new("dpkg-deb").arg("-x").arg(file).arg(fresh))?;
            }
            clear(&archives)
        })?;
    }
    Ok(Lttng { place })
}

/// The Debian suite of the system.
fn suite() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let found = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    found
        .map(|name| name.trim_matches('"').to_owned())
        .ok_or_else(|| Failure::new(ExitStatus::HostError, "/etc/os-release names no Debian suite"))
}

impl Lttng {
    /// Measures the nanoseconds per record, `repetitions` times.
    ///
    /// # Errors
    /// The program does not compile or run, or LTTng records nothing.
    pub fn measure(&self, repetitions: u16) -> Result<Vec<f64>> {
        let script = self.place.join("measure.sh");
        project::write(&script, include_bytes!("lttng/measure.sh"))?;
        for (name, text) in [
            ("record.h", &include_bytes!("lttng/record.h")[..]),
            ("record.c", include_bytes!("lttng/record.c")),
        ] {
            project::write(&self.place.join(name), text)?;
        }
        let mut sh = Command::new("sh");
        sh.arg(&script).arg(&self.place).arg(repetitions.to_string());
        let output = process::output(&mut sh)
            .map_err(|error| Failure::new(ExitStatus::HostError, format!("sh: {error}")))?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let times: Vec<f64> = printed.lines().filter_map(|line| line.parse().ok()).collect();
        if output.status.success() && times.len() == usize::from(repetitions) {
            return Ok(times);
        }
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = errors.lines().chain(printed.lines()).last().unwrap_or("no output").to_owned();
        Err(Failure::new(ExitStatus::HostError, format!("{}: {last}", shown(&script))))
    }
}

fn shown(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
