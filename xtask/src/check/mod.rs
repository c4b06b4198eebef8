//! The report of `--check`: the results of the program `tally-check` and of the kernel on a
//! machine's counters, judged; as text, and as JSON of a stable form (docs/guide/check.md).

pub mod diff;
mod judge;
mod made;
mod render;
mod report;
#[cfg(test)]
mod tests;

pub use self::{
    judge::findings,
    render::render,
    report::{CheckReport, Findings, Machine},
};
use crate::{
    Result,
    machine::{Boot, ProgramOutput},
    output::{self, ProgramWriter},
};
use tally_abi::{ExitStatus, check::PROGRAM};

/// Returns whether the run was a check that completed, so that its output is a report's.
pub fn is_check(boot: &Boot) -> bool {
    let mut exits = boot.transcript.exits.iter();
    boot.outcome.is_success() && exits.any(|(program, _)| program == PROGRAM)
}

/// Writes the check program's messages to standard error: the reason why there is no report. Its
/// standard output is kept for the report.
pub fn listen(said: &ProgramOutput) {
    if said.fd != 1 {
        ProgramWriter::new(true).write(said.fd, &said.bytes);
    }
}

/// Prints the report of a check; returns the status.
///
/// # Errors
/// The run's output is not complete.
pub fn show(boot: &Boot, json: bool) -> Result<u8> {
    let report = CheckReport::of(boot)?;
    output::print(json, &report, &render(&report))?;
    Ok(if report.findings.wrong.is_empty() { 0 } else { ExitStatus::CheckFailed.into() })
}
