//! The report of `--check`: what the program `tally-check` and the kernel found out about a
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

/// Returns whether the run was a check that came to its end, so that its output is a report's.
pub fn is_check(boot: &Boot) -> bool {
    let mut exits = boot.transcript.exits.iter();
    boot.outcome.is_success() && exits.any(|(program, _)| program == PROGRAM)
}

/// Writes what a check's program says to standard error, if it says anything: why there is no
/// report. Its lines are for the report.
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
