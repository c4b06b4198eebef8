//! `tally stat`: counts events of a program, and prints the counts as `perf stat` does.

mod computed;
mod count;
mod line;
mod measure;
mod metric;
mod print;
mod repeat;
mod row;

use alloc::{format, vec::Vec};

use tally::{OpenError, io::File};
use tally_abi::command::Command;
use tally_breakdown::Metrics;

use self::{
    count::Count,
    measure::{Run, measure},
    print::Printer,
    row::{Row, whole},
};

/// The status of a program that `SIGKILL` ended.
const KILLED: u8 = 128 + 9;

/// Runs the program as often as requested, or until it is killed, prints its counts and returns its
/// status: the first that is not 0.
pub fn run(command: &Command, metrics: Option<&Metrics>) -> Result<u8, OpenError> {
    let file = match command.stat.output {
        None => None,
        Some(path) => Some(File::create(path, command.stat.appends).map_err(|error| {
            OpenError { error: tally::Error::BadArgument, detail: format!("{path}: {error}") }
        })?),
    };
    let mut printer = Printer::new(command, metrics, file);
    // The sum over all CPUs is printed like a program.
    let is_each = command.stat.cpus.is_none() || command.stat.is_each_cpu;
    fn shown(rows: &[Row], is_each: bool) -> &[Row] {
        if is_each { rows } else { &[] }
    }
    let (mut runs, mut ended): (Vec<(Run, Vec<Count>)>, _) = (Vec::new(), None);
    while ended.is_none() && runs.len() < command.stat.repeat as usize {
        let run = measure(command, &mut |span, rows, at_ns| {
            printer.interval(at_ns, span, &whole(command, span, rows), shown(rows, is_each));
        })?;
        // The kernel ends programs when the host asks for the end: the runs before this one count.
        let is_ended = command.stat.timeout_ms.is_none() && run.status == KILLED;
        ended = is_ended.then_some(run.status);
        if is_ended && !runs.is_empty() {
            break;
        }
        let counts = whole(command, &run.span, &run.rows);
        printer.verbose(&run.span, &counts, shown(&run.rows, is_each));
        runs.push((run, counts));
    }
    if command.stat.interval_ms.is_none() {
        let (all, spreads) = repeat::means(&runs);
        let mut span = runs[0].0.span.clone();
        let times = runs.iter().map(|(run, _)| run.span.time_ns as f64);
        let time = repeat::Mean::of(times);
        (span.time_ns, span.usage) = (time.mean as u64, repeat::usage(&runs));
        let rows = shown(&runs[0].0.rows, is_each);
        printer.all(&span, (&all, rows), spreads.as_deref(), (time, runs.len()));
        let (run, counts) = &runs[0];
        printer.conditions(run);
        printer.added(run, counts);
    }
    let statuses = runs.iter().map(|(run, _)| run.status).chain(ended);
    Ok(statuses.clone().find(|status| *status != 0).unwrap_or(0))
}
