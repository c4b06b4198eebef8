//! Output of a run at its end, printed and written.

use std::path::Path;

use serde::Serialize;

use super::not_found;
use crate::{
    Result, check,
    machine::{Boot, Outcome},
    output, project,
    repeat::{self, Merged},
    report::{
        Report,
        table::{self, Detail},
    },
    stat_files::{self, StatFile},
    trace::run::Run,
    trace_file::Trace,
};

/// A report as JSON, with the jobs that ran more than once.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// Jobs that ran more than once, with their runs merged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repeated: Vec<RepeatedJob>,
}

/// A job that ran more than once.
#[derive(Serialize)]
struct RepeatedJob {
    number: u32,
    #[serde(flatten)]
    merged: Merged,
}

impl RepeatedJob {
    /// The repeated jobs of a machine. Jobs whose runs differ are shown one by one.
    fn all(boot: &Boot) -> Vec<RepeatedJob> {
        let jobs = repeat::jobs(boot).unwrap_or_else(|why| {
            output::note(format_args!("xtask: {why}"));
            Vec::new()
        });
        jobs.into_iter().map(|(number, merged)| RepeatedJob { number, merged }).collect()
    }
}

/// Prints what programs asked for that the machine refused, or that was not given to it.
fn note_what_programs_lacked(boot: &Boot) {
    for (program, calls) in &boot.transcript.refused_calls {
        let hint = if calls.contains("(EACCES)") {
            "; for memory that is writable and executable at once add --jit"
        } else {
            ""
        };
        output::note(format_args!("xtask: {program}: refused system calls: {calls}{hint}"));
    }
    for failed in boot.transcript.not_found.chunk_by(|(one, _), (other, _)| one == other) {
        let paths: Vec<&str> = failed.iter().map(|(_, path)| &**path).collect();
        if let Some(hint) = not_found::hint(&failed[0].0, &paths) {
            output::note(format_args!("xtask: {hint}"));
        }
    }
}

/// Prints the report and why the run failed; returns the exit status. The kernel's log is in
/// `folder`, if there is one.
pub(crate) fn show(
    boot: &Boot,
    report: &Report,
    json: bool,
    detail: Detail,
    folder: Option<&Path>,
) -> Result<u8> {
    if check::is_check(boot) {
        return check::show(boot, json);
    }
    let repeated = RepeatedJob::all(boot);
    if json {
        output::print(json, &Shown { report, repeated }, "")?;
    } else if !repeated.is_empty() {
        for RepeatedJob { number, merged } in &repeated {
            output::note(format_args!("job {number}, {}", repeat::render(merged).trim_end()));
        }
    } else if report.first.is_some() {
        output::note(table::render(report, detail).trim_end());
    }
    if let Some(halts) = &report.halts {
        output::note(halts);
    }
    for ring in boot.transcript.rings.iter().filter(|ring| ring.lost > 0) {
        let (cpu, lost, written) = (ring.cpu, ring.lost, ring.written);
        output::note(format_args!("xtask: CPU {cpu}: {lost} of {written} trace records lost"));
    }
    note_what_programs_lacked(boot);
    for (program, status) in boot.transcript.exits.iter().filter(|(_, status)| *status != 0) {
        output::note(format_args!("xtask: {program}: ended with status {status}"));
    }
    if let Some(folder) = folder.filter(|_| !matches!(boot.outcome, Outcome::Done(_))) {
        output::note(format_args!("xtask: kernel log: {}", folder.display()));
    }
    for message in boot.failures().into_iter().flat_map(Outcome::messages) {
        output::error(format_args!("xtask: {message}"));
    }
    Ok(boot.outcome.status())
}

/// Writes the file of `--trace`, with a description of the run whose kernel had this command line.
pub(crate) fn write_trace(
    boot: &Boot,
    report: &Report,
    command_line: &str,
    path: &Path,
) -> Result<()> {
    let (came, sent) = boot.transcript.records();
    if boot.transcript.omitted > 0 && came < sent {
        let lost = sent - came;
        let why = "the machine's screen has no room for more";
        output::note(format_args!(
            "xtask: {}: {lost} of {sent} records are lost: {why}",
            path.display()
        ));
    } else if let Some(bad) = boot.transcript.bad_trace {
        output::note(format_args!("xtask: {}: {bad}", path.display()));
    }
    let run = Run::of(boot, report, command_line).json();
    project::write(path, &Trace::with_run(&boot.transcript.trace, &run))
}

/// Writes the files of `--out` and of `stat -o`. If the machine failed they are lost, and its
/// failure is shown.
pub(super) fn write_files(boot: &Boot, out: Option<&Path>, files: &[StatFile]) -> Result<()> {
    let written = stat_files::write(boot, out, files);
    if boot.transcript.done.is_some() {
        return written;
    }
    if let Err(failure) = written {
        output::error(format_args!("xtask: {failure}"));
    }
    Ok(())
}
