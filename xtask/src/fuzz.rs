//! `cargo xtask fuzz`: throws system calls at the kernel until it falls over, or enough were made.

use std::time::Duration;

use clap::Args;
use tally_abi::{ExitStatus, boot::MAX_CPUS};

use crate::{
    Result,
    machine::{self, Artefacts, Outcome, Pmu, Request},
    output,
    project::Project,
};

/// What the guest says when all was made and counting was exact after it.
pub const HELD: &str = "fuzz: done, counting is exact";

/// Options of `cargo xtask fuzz`.
#[derive(Args, Clone, Debug)]
pub struct FuzzArgs {
    /// System calls to make
    #[arg(long, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    calls: u64,
    /// Seed of the calls, and of every other random order
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Processors; with more than one, programs race
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=MAX_CPUS as i64))]
    cpus: u16,
    /// Whose PMU the machine shows
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// Stop the machine after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 36_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: u64,
}

/// The machine for so many calls.
pub fn request(pmu: Pmu, cpus: u16, calls: u64, seed: u64) -> Request {
    // Both vendors' catalogues have it, always counted.
    let line = format!("seed={seed} wire -- fuzz {calls} {seed} instructions");
    Request { pmu, cpus: cpus.into(), ..Request::new(line) }
}

/// Does the task.
///
/// # Errors
/// The machine cannot be built or started. However it ends otherwise is in the status.
pub fn main(project: &Project, args: &FuzzArgs) -> Result<u8> {
    let artefacts = Artefacts::make(project)?;
    let request = Request {
        time_limit: Duration::from_secs(args.time_limit),
        ..request(args.pmu, args.cpus, args.calls, args.seed)
    };
    let mut boot = machine::boot_with_progress(&artefacts, &request)?;
    let status = judge(&boot.outcome, boot.transcript.text().contains(HELD));
    if status == 0 {
        output::text(&format!("{HELD}\n"))?;
        return Ok(0);
    }
    output::note(format_args!("xtask: {}", boot.outcome));
    output::note(format_args!("xtask: the kernel's log is in {}", boot.folder.keep().display()));
    Ok(status)
}

/// The status to exit with. What became of its programs is the fuzz program's affair: only the kernel's end
/// is ours, and whether it counted exactly after all.
fn judge(outcome: &Outcome, held: bool) -> u8 {
    match outcome {
        Outcome::Done(_) | Outcome::Faulted { .. } if held => 0,
        Outcome::Done(_) | Outcome::Faulted { .. } => ExitStatus::CheckFailed.into(),
        other => other.status(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_its_status() {
        let faulted = || Outcome::Faulted {
            program: "fuzz".into(),
            fault: "page fault".into(),
            address: None,
            instruction: 1,
        };
        assert_eq!((judge(&Outcome::Done(0), true), judge(&faulted(), true)), (0, 0));
        let (limit, text) = (Duration::from_secs(1), String::new);
        for (outcome, held, status) in [
            (Outcome::Done(0), false, ExitStatus::CheckFailed),
            (faulted(), false, ExitStatus::CheckFailed),
            (Outcome::Panicked { message: text() }, true, ExitStatus::KernelPanic),
            (Outcome::TimedOut { limit, log_tail: text() }, false, ExitStatus::TimedOut),
            (Outcome::MachineFailed { said: text() }, false, ExitStatus::MachineFailed),
            (
                Outcome::Refused { program: text(), status: 68, why: text() },
                false,
                ExitStatus::ProgramNotFound,
            ),
        ] {
            assert_eq!(judge(&outcome, held), u8::from(status), "{outcome:?}");
        }
    }
}
