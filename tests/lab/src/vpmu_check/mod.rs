//! `cargo xtask vpmu-check`: a guest checks every rule of the virtual PMU, on every profile.
//!
//! The guest prints a line per check and a summary. Its counters are then compared with the truth
//! files.

mod checked;
mod truth;

use std::{path::Path, time::Duration};

use clap::Args;
use tally_abi::ExitStatus;
use xtask::{
    Failure, Result, build,
    machine::{self, Folder, ProfileName},
    output,
    project::{self, Project},
    setup,
};

pub use checked::Checked;

/// Time limit of a guest, which takes seconds.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// Interval at which the machine is polled.
const POLL: Duration = Duration::from_millis(10);

/// Options of `cargo xtask vpmu-check`.
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// Check one profile instead of all
    #[arg(long, value_enum)]
    profile: Option<ProfileName>,
    /// Print only failed checks and the sums
    #[arg(long)]
    brief: bool,
}

/// Runs the checks and prints their results.
///
/// # Errors
/// A tool is missing, a crate does not build, or a guest cannot be started.
pub fn main(project: &Project, args: &CheckArgs) -> Result<u8> {
    let tools = setup::tools(project)?;
    let plugin = build::plugin(project)?;
    let guest = build::check_guest(project, &tools.library)?;
    let mut all_held = true;
    for profile in ProfileName::ALL {
        if args.profile.is_some_and(|one| one != profile) {
            continue;
        }
        for options in profile.variants() {
            let checked = check(&tools.qemu, &plugin, &guest, profile, options)?;
            let name = format!("{},{options}", profile.name());
            let name = name.trim_end_matches(',').to_owned();
            for line in checked.lines.iter().filter(|line| !args.brief || line.starts_with("FAIL"))
            {
                output::text(&format!("{name} {line}\n"))?;
            }
            let (held, all) = (checked.held, checked.lines.len());
            output::text(&format!("{name}: {held} of {all} checks passed\n"))?;
            all_held &= checked.failed == 0;
        }
    }
    Ok(if all_held { 0 } else { ExitStatus::CheckFailed.into() })
}

/// Boots the guest on one profile, with further options of the plugin, joined by commas.
///
/// # Errors
/// QEMU cannot be started, or the guest does not run to its end.
pub fn check(
    qemu: &setup::Qemu,
    plugin: &Path,
    guest: &Path,
    profile: ProfileName,
    options: &str,
) -> Result<Checked> {
    let folder = Folder::make(&Project::here())?;
    let mut command = machine::check_guest(qemu, plugin, guest, profile, options, &folder);
    let mut child = machine::start(&mut command, &folder)?;
    let lost = |error| Failure::new(ExitStatus::HostError, format!("lost QEMU: {error}"));
    let start = std::time::Instant::now();
    while child.try_wait().map_err(lost)?.is_none() && start.elapsed() < TIME_LIMIT {
        std::thread::sleep(POLL);
    }
    drop(child);
    let log = String::from_utf8_lossy(&project::read(&folder.log())?).into_owned();
    let mut checked = Checked::read(&log);
    if let (true, Some(truth)) = (checked.complete, machine::read_truth(&folder)?) {
        truth::check(&mut checked, &log, &truth, &folder)?;
        return Ok(checked);
    }
    let said = String::from_utf8_lossy(&project::read(&folder.errors())?).into_owned();
    let why = format!(
        "the check guest did not finish on {}:\n{}\n{said}",
        profile.name(),
        folder.log_tail(10)
    );
    Err(Failure::new(ExitStatus::MachineFailed, why))
}
