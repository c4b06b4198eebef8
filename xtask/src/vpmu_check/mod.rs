//! `cargo xtask vpmu-check`: a guest of its own walks the virtual PMU's rules, on every profile.
//!
//! The guest prints a line for each check and ends with whether all held; what its counters said is
//! then compared with the truth files.

mod truth;

use std::{path::Path, time::Duration};

use clap::{Args, ValueEnum};
use tally_abi::ExitStatus;

use crate::{
    Failure, Result, build,
    machine::{self, Folder},
    output,
    project::{self, Project},
    setup,
};

/// After this, a guest hangs: it takes seconds.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// How often the machine is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// A machine that the virtual PMU can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Intel, version 5
    IcelakeServer,
    /// Intel, version 5
    SapphireRapids,
    /// AMD, core extension
    Zen3,
    /// AMD, PerfMonV2
    Zen4,
}

impl Profile {
    /// All of them.
    pub const ALL: [Profile; 4] =
        [Profile::IcelakeServer, Profile::SapphireRapids, Profile::Zen3, Profile::Zen4];

    /// As the plugin calls it.
    pub fn name(self) -> &'static str {
        match self {
            Profile::IcelakeServer => "icelake-server",
            Profile::SapphireRapids => "sapphire-rapids",
            Profile::Zen3 => "zen3",
            Profile::Zen4 => "zen4",
        }
    }

    /// The sets of more options that it is checked with: every pipeline and mode on some profile.
    pub fn variants(self) -> &'static [&'static str] {
        match self {
            Profile::IcelakeServer => &["", ",counters=8,fixed=2,width=40", ",pipeline=ooo"],
            Profile::SapphireRapids => &["", ",pipeline=ooo,mode=single"],
            Profile::Zen3 => &["", ",pipeline=ooo,mode=inorder"],
            Profile::Zen4 => &["", ",counters=4", ",pipeline=ooo"],
        }
    }

    /// The vendor that CPUID has to say.
    pub fn vendor(self) -> &'static str {
        match self {
            Profile::IcelakeServer | Profile::SapphireRapids => "GenuineIntel",
            Profile::Zen3 | Profile::Zen4 => "AuthenticAMD",
        }
    }
}

/// Options of `cargo xtask vpmu-check`.
#[derive(Args, Clone, Debug)]
pub struct CheckArgs {
    /// One profile instead of all
    #[arg(long, value_enum)]
    profile: Option<Profile>,
    /// Print the checks that failed and the sums alone
    #[arg(long)]
    brief: bool,
}

/// What a guest found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Every check's line.
    pub lines: Vec<String>,
    /// Checks that held.
    pub held: usize,
    /// Checks that did not.
    pub failed: usize,
    /// Whether the guest came to its end.
    pub complete: bool,
}

impl Checked {
    fn read(log: &str) -> Checked {
        let mut checked = Checked::default();
        for line in log.lines().map(str::trim_end) {
            let held = line.starts_with("ok ");
            let failed = line.starts_with("FAIL ");
            if held || failed {
                checked.held += usize::from(held);
                checked.failed += usize::from(failed);
                checked.lines.push(line.to_owned());
            }
        }
        let sum = format!("{} checks, ", checked.held + checked.failed);
        checked.complete = log.lines().any(|line| line.starts_with(&sum));
        checked
    }
}

impl Checked {
    /// A check of the host's own.
    fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, got: T, want: T) {
        let holds = got == want;
        self.lines.push(match holds {
            true => format!("ok   {what}"),
            false => format!("FAIL {what}: {got:?}, want {want:?}"),
        });
        self.held += usize::from(holds);
        self.failed += usize::from(!holds);
    }
}

/// Does the task.
///
/// # Errors
/// Something is missing or does not build, or a guest cannot be started.
pub fn main(project: &Project, args: &CheckArgs) -> Result<u8> {
    let tools = setup::tools(project)?;
    let plugin = build::plugin(project)?;
    let guest = build::check_guest(project, &tools.library)?;
    let mut all_held = true;
    for profile in Profile::ALL {
        if args.profile.is_some_and(|one| one != profile) {
            continue;
        }
        for options in profile.variants() {
            let checked = check(&tools.qemu, &plugin, &guest, profile, options)?;
            let name = format!("{}{options}", profile.name());
            for line in checked.lines.iter().filter(|line| !args.brief || line.starts_with("FAIL"))
            {
                output::text(&format!("{name} {line}\n"))?;
            }
            let (held, all) = (checked.held, checked.lines.len());
            output::text(&format!("{name}: {held} of {all} checks hold\n"))?;
            all_held &= checked.failed == 0;
        }
    }
    Ok(if all_held { 0 } else { ExitStatus::CheckFailed.into() })
}

/// Boots the guest on one profile, with more options of the plugin's, each behind a comma.
///
/// # Errors
/// QEMU cannot be started, or the guest does not come to its end.
pub fn check(
    qemu: &setup::Qemu,
    plugin: &Path,
    guest: &Path,
    profile: Profile,
    options: &str,
) -> Result<Checked> {
    let folder = Folder::make(&Project::here())?;
    let mut command = machine::check_guest(qemu, plugin, guest, profile, options, &folder);
    let mut child = machine::start(&mut command, &folder)?;
    let lost = |error| Failure::new(ExitStatus::HostError, format!("lost QEMU: {error}"));
    let start = std::time::Instant::now();
    while child.try_wait().map_err(lost)?.is_none() && start.elapsed() < TIME_LIMIT {
        std::thread::sleep(LOOK);
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
        "the check guest did not come to its end on {}:\n{}\n{said}",
        profile.name(),
        folder.log_tail(10)
    );
    Err(Failure::new(ExitStatus::MachineFailed, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_the_end_is_seen() {
        let log = "ok   a\r\nFAIL b: 1, want 2\r\nnoise\r\n2 checks, 1 failed\r\n";
        let checked = Checked::read(log);
        assert_eq!((checked.held, checked.failed, checked.complete), (1, 1, true));
        assert_eq!(checked.lines, ["ok   a", "FAIL b: 1, want 2"]);
        assert!(!Checked::read("ok   a\r\n").complete);
    }
}
