//! `cargo xtask script`: a line for each sample, in the order of time, in the form of perf script.

use clap::Args;
use serde::Serialize;
use tally_abi::access::Access;

use super::{COLUMNS, SampleArgs, last_columns, short_function};
use crate::{
    Result, output,
    recording::{Level, Recording, Symbolizer},
    symbols::Place,
};

/// Columns of the program's name.
const PROGRAM_COLUMNS: usize = 10;
/// Columns of a caller's address.
const ADDRESS_COLUMNS: usize = 24;
/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;

/// Options of `cargo xtask script`.
#[derive(Args, Clone, Debug)]
pub struct ScriptArgs {
    #[command(flatten)]
    of: SampleArgs,
}

/// A sample as it is printed.
#[derive(Clone, Debug, Serialize)]
struct Line {
    program: u32,
    thread: u32,
    name: String,
    /// The thread's own name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_name: Option<String>,
    session: u32,
    cpu: u16,
    /// Time since the trace's earliest time stamp.
    ns: u64,
    /// The events for which it stands.
    period: u64,
    event: String,
    /// The address; `null` if it is not known.
    address: Option<u64>,
    user: bool,
    /// The functions at the address, the outermost first.
    functions: Vec<String>,
    /// The calls that led there, the innermost first; empty if the stack was not recorded.
    callers: Vec<Level>,
    /// The memory access, if the sample has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    access: Option<Access>,
    /// The line of the innermost function, if it is known.
    file: Option<String>,
    line: Option<u32>,
}

/// Prints the samples.
///
/// # Errors
/// A file cannot be read, there are no samples, or standard output cannot be written.
pub fn main(args: &ScriptArgs) -> Result<u8> {
    let (recording, symbolizer) = args.of.read()?;
    let lines = lines(&recording, &symbolizer).into_iter();
    let mut bytes = Vec::new();
    for line in lines.filter(|line| args.of.event.as_ref().is_none_or(|of| line.event == *of)) {
        bytes.extend(if args.of.json {
            output::json_line(&line)?
        } else {
            line.text().into_bytes()
        });
    }
    output::bytes(&bytes)?;
    Ok(0)
}

/// The lines of all samples.
pub(super) fn text(of: &Recording, symbolizer: &Symbolizer) -> String {
    lines(of, symbolizer).iter().map(Line::text).collect()
}

fn lines(of: &Recording, symbolizer: &Symbolizer) -> Vec<Line> {
    let line = |(sample, period): (&tally_abi::trace::SampleRecord, u64)| {
        let (program, name) = of.program_of(sample.session);
        let place: Option<Place> = symbolizer.place(of, sample);
        let mut levels = symbolizer.stack(of, sample);
        let functions = levels.pop().map(|level| level.functions).unwrap_or_default();
        let event = of.event_name(sample.session, sample.event);
        Line {
            program,
            thread: sample.thread,
            name: name.to_owned(),
            thread_name: of.thread_name(program, sample.thread),
            session: sample.session,
            cpu: sample.cpu,
            ns: of.ns(sample.tsc),
            period,
            access: of.accesses.of_sample(sample, &event),
            event,
            address: (sample.address != 0).then_some(sample.address),
            user: sample.user,
            functions,
            callers: levels.into_iter().rev().collect(),
            file: place.as_ref().and_then(|place| place.file.clone()),
            line: place.and_then(|place| place.line),
        }
    };
    of.weighted_samples().into_iter().map(line).collect()
}

impl Line {
    /// The line of a sample: `rounds 2 [000] 0.003883168: 1000 branch-misses: 208acc
    /// compress_inner`.
    fn text(&self) -> String {
        let program = self.name.rsplit('/').next().unwrap_or(&self.name);
        let command = self.thread_name.as_deref().unwrap_or(program);
        let seconds = format!("{}.{:09}", self.ns / SECOND_NS, self.ns % SECOND_NS);
        let address = self.address.map_or_else(|| "?".into(), |address| format!("{address:x}"));
        let head = format!(
            "{:>PROGRAM_COLUMNS$} {} [{:03}] {seconds}: {:>6} {}: {address} ",
            last_columns(command, PROGRAM_COLUMNS),
            self.thread,
            self.cpu,
            self.period,
            self.event,
        );
        let left = COLUMNS.saturating_sub(head.chars().count()).max(PROGRAM_COLUMNS);
        let function = self.functions.last().map_or("", String::as_str);
        let callers = self.callers.iter().map(caller).collect::<String>();
        format!("{head}{}\n{callers}", short_function(function, left))
    }
}

/// The line of a caller: `            208acc compress`.
fn caller(of: &Level) -> String {
    let head = format!("{:>ADDRESS_COLUMNS$x} ", of.at.address);
    let left = COLUMNS.saturating_sub(head.len());
    let function = of.functions.last().map_or("", String::as_str);
    format!("{head}{}\n", short_function(function, left))
}
