//! `cargo xtask fuzz`: makes random system calls until the kernel fails or all requested calls are
//! made.

use std::time::Duration;

use clap::Args;
use tally_abi::{ExitStatus, boot::MAX_CPUS};
use xtask::{
    Result,
    machine::{self, Artefacts, Outcome, Pmu, Request},
    output,
    project::Project,
};

/// The guest's last line if it made all calls and afterwards counted exactly.
pub const HELD: &str = "fuzz: done, counting is exact";

/// Options of `cargo xtask fuzz`.
#[derive(Args, Clone, Debug)]
pub struct FuzzArgs {
    /// System calls to make
    #[arg(long, value_name = "N", default_value_t = 100_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    calls: u64,
    /// Seed of the calls and of every other random order
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of CPUs; with more than one, programs race
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=MAX_CPUS as i64))]
    cpus: u16,
    /// PMU of the machine
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// Stop the machine after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 36_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    time_limit: u64,
}

/// The machine that makes `calls` system calls.
pub fn request(pmu: Pmu, cpus: u16, calls: u64, seed: u64) -> Request {
    // Both vendors' catalogues have `instructions`, pinned to a counter.
    let line = format!("seed={seed} wire -- fuzz {calls} {seed} instructions");
    Request { pmu, cpus: cpus.into(), ..Request::new(line) }
}

/// Runs the fuzzer; the status is that of [`judge`].
///
/// # Errors
/// The machine cannot be built or started.
pub fn main(project: &Project, args: &FuzzArgs) -> Result<u8> {
    let artefacts = Artefacts::make_audited(project)?;
    let request = Request {
        time_limit: Duration::from_secs(args.time_limit),
        ..request(args.pmu, args.cpus, args.calls, args.seed)
    };
    let mut boot = machine::boot_with_progress(&artefacts, &request, true)?;
    let status = judge(&boot.outcome, boot.transcript.text().contains(HELD));
    if status == 0 {
        output::text(&format!("{HELD}\n"))?;
        return Ok(0);
    }
    output::note(format_args!("xtask: {}", boot.outcome));
    output::note(format_args!("xtask: kernel log: {}", boot.folder.keep().display()));
    Ok(status)
}

/// The exit status. The fuzz program expects its programs to crash; the kernel must survive and
/// count exactly afterwards.
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
    fn each_outcome_has_its_status() {
        let faulted = || Outcome::Faulted {
            program: "fuzz".into(),
            fault: "page fault".into(),
            address: None,
            instruction: 1,
        };
        assert_eq!((judge(&Outcome::Done(0), true), judge(&faulted(), true)), (0, 0));
        let (limit, text) = (Duration::from_secs(1), String::new);
        let (registers, backtrace) = (Box::default(), Vec::new());
        let panicked = Outcome::Panicked { message: text(), registers, backtrace };
        for (outcome, held, status) in [
            (Outcome::Done(0), false, ExitStatus::CheckFailed),
            (faulted(), false, ExitStatus::CheckFailed),
            (panicked, true, ExitStatus::KernelPanic),
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
