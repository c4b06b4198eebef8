//! `cargo xtask trace`: prints a trace file that `cargo xtask run --trace` wrote.

mod page;
pub(crate) mod print;
pub mod run;

use std::{
    io::{self, BufWriter, Write},
    path::PathBuf,
};

use clap::Args;
use tally_abi::ExitStatus;

use self::run::{RUN_KIND, Run};
use crate::{
    Failure, Result, output, project,
    trace_file::{Bad, DEFAULT_TRACE, Raw, Trace, Type},
};

/// Options of `cargo xtask trace`.
#[derive(Args, Clone, Debug)]
pub struct TraceArgs {
    /// Trace file that `cargo xtask run --trace FILE` wrote
    #[arg(default_value = DEFAULT_TRACE)]
    file: PathBuf,
    /// Print one JSON object per record, with numeric fields, and first one that describes the run
    #[arg(long)]
    json: bool,
    /// Print only records of these kinds
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    kind: Vec<String>,
    /// Print only records of these CPUs
    #[arg(long, value_name = "N", value_delimiter = ',')]
    cpu: Vec<u16>,
    /// Print only records of these sessions
    #[arg(long, value_name = "N", value_delimiter = ',')]
    session: Vec<u64>,
    /// Print the page docs/trace.md, which describes all records, and read no file
    #[arg(long)]
    describe: bool,
}

/// Prints the file's records.
///
/// # Errors
/// The file cannot be read, is not a trace, or is incomplete: the readable records are printed
/// first. Standard output cannot be written.
pub fn main(args: &TraceArgs) -> Result<u8> {
    if args.describe {
        output::text(&page::page())?;
        return Ok(0);
    }
    let path = &args.file;
    let mut out = BufWriter::new(io::stdout().lock());
    let bytes = project::read(path)?;
    let failed =
        |bad: Bad| Failure::new(ExitStatus::BadTrace, format!("{}: {bad}", path.display()));
    let trace = Trace::open(&bytes).map_err(failed)?;
    args.check(&trace)?;
    if let Some(run) = trace.run.as_ref().filter(|_| args.wants_run()) {
        let text =
            if args.json { print::run_json(run) } else { print::run_lines(&Run::read(&trace)?) };
        if let Err(error) = out.write_all(output::shown(&text).as_bytes()) {
            return output::unless_closed(error).map(|()| 0);
        }
    }
    let start_tsc = start_tsc(&trace);
    for record in trace.clone() {
        let record = record.map_err(|bad| {
            // The records before the error are printed first.
            let _ = out.flush();
            failed(bad)
        })?;
        let t = trace.type_of(&record);
        if !args.wants(&record, t) {
            continue;
        }
        let text = if args.json {
            print::json(&record, t).to_string() + "\n"
        } else {
            print::lines(&record, t, start_tsc)
        };
        if let Err(error) = out.write_all(output::shown(&text).as_bytes()) {
            return output::unless_closed(error).map(|()| 0);
        }
    }
    out.flush().or_else(output::unless_closed).map(|()| 0)
}

/// Prints all records of a trace as text and as JSON.
///
/// # Errors
/// The bytes are no trace, are incomplete, or have a description of the run that is not understood.
pub(crate) fn printed(bytes: &[u8]) -> Result<String> {
    let failed = |bad: Bad| Failure::new(ExitStatus::BadTrace, bad.to_string());
    let trace = Trace::open(bytes).map_err(failed)?;
    let mut text = trace.run.as_ref().map(print::run_json).unwrap_or_default();
    let run = Run::read(&trace).map(|run| print::run_lines(&run));
    let start_tsc = start_tsc(&trace);
    for record in trace.clone() {
        let record = record.map_err(failed)?;
        let t = trace.type_of(&record);
        text += &print::lines(&record, t, start_tsc);
        text += &print::json(&record, t).to_string();
    }
    run.map(|run| text + &run)
}

/// The earliest time stamp of a trace. Chunks of several CPUs are in no order of time.
fn start_tsc(trace: &Trace<'_>) -> u64 {
    trace.clone().flatten().map(|record| record.tsc).min().unwrap_or_default()
}

impl TraceArgs {
    /// Checks that the trace has the requested kinds.
    fn check(&self, trace: &Trace<'_>) -> Result<()> {
        let known = || [RUN_KIND].into_iter().chain(trace.types.iter().map(|t| t.name.as_str()));
        match self.kind.iter().find(|kind| known().all(|name| name != **kind)) {
            None => Ok(()),
            Some(unknown) => {
                let names = known().collect::<Vec<_>>().join(", ");
                let why = format!("unknown record kind '{unknown}'; this trace has {names}");
                Err(Failure::new(ExitStatus::Usage, why))
            }
        }
    }

    /// Returns whether the description of the run is requested. It belongs to no CPU and no
    /// session.
    fn wants_run(&self) -> bool {
        let is_kind = self.kind.is_empty() || self.kind.iter().any(|kind| kind == RUN_KIND);
        is_kind && self.cpu.is_empty() && self.session.is_empty()
    }

    fn wants(&self, record: &Raw, t: Option<&Type>) -> bool {
        let name = t.map(|t| &t.name);
        let session = t.and_then(|t| t.value(record, "session"));
        (self.kind.is_empty() || name.is_some_and(|name| self.kind.contains(name)))
            && (self.cpu.is_empty() || self.cpu.contains(&record.cpu))
            && (self.session.is_empty() || session.is_some_and(|s| self.session.contains(&s)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_the_earliest_record_of_any_cpu() {
        let bytes = crate::trace_file::tests::sample();
        let later_first = crate::trace_file::tests::with_earlier_chunk(&bytes, 1_000);
        assert_eq!(start_tsc(&Trace::open(&bytes).unwrap()), 5_000);
        assert_eq!(start_tsc(&Trace::open(&later_first).unwrap()), 1_000);
    }

    #[test]
    fn filters_select_by_kind_cpu_and_session() {
        let bytes = crate::trace_file::tests::sample();
        let trace = Trace::open(&bytes).unwrap();
        let kept = |kind: &[&str], cpu: &[u16], session: &[u64]| {
            let args = TraceArgs {
                file: PathBuf::new(),
                json: false,
                kind: kind.iter().map(|kind| (*kind).into()).collect(),
                cpu: cpu.into(),
                session: session.into(),
                describe: false,
            };
            trace.clone().flatten().filter(|r| args.wants(r, trace.type_of(r))).count()
        };
        assert_eq!((kept(&[], &[], &[]), kept(&["lost"], &[], &[])), (2, 1));
        assert_eq!((kept(&[], &[0], &[]), kept(&[], &[0, 1], &[])), (0, 2));
        assert_eq!((kept(&[], &[], &[7]), kept(&[], &[], &[8])), (1, 0));
    }
}
