//! `cargo xtask export`: writes a trace in the formats of other viewers.
//!
//! A format is a function from a [`Recording`], a complete trace with the names of its run, to the
//! bytes of a file. The file is written completely or not at all.

mod bytes;
mod chrome;
mod firefox;
mod folded;
mod openmetrics;
mod parquet;
mod perf;

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
};

use clap::{Args, ValueEnum};
use tally_abi::ExitStatus;

use self::folded::Stacks;
use crate::{
    Failure, Result, output, project,
    recording::{Recording, Symbolizer},
};

/// Options of `cargo xtask export`.
#[derive(Args, Clone, Debug)]
pub struct ExportArgs {
    /// Trace file that `cargo xtask run --trace FILE` wrote
    trace: PathBuf,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The file of a program that was sampled, for the names of its functions; repeatable
    #[arg(long, value_name = "FILE")]
    symbols: Vec<PathBuf>,
    /// The event whose samples folded and flamegraph show, if several were sampled
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// The table that parquet has [default: slices]
    #[arg(long, value_enum, value_name = "TABLE")]
    table: Option<Table>,
}

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Chrome trace events, as JSON: for ui.perfetto.dev and chrome://tracing
    Chrome,
    /// Firefox Profiler's processed profile, as JSON: for profiler.firefox.com
    Firefox,
    /// A line for each stack of samples: for flamegraph.pl, inferno, speedscope
    Folded,
    /// A flame graph of samples, as SVG
    Flamegraph,
    /// The totals of sessions with their errors, as OpenMetrics text: for Prometheus
    Openmetrics,
    /// A table: for pandas, DuckDB, Spark
    Parquet,
    /// The samples as perf.data: for perf report, perf script, perf annotate
    Perf,
}

impl Format {
    /// Returns whether a file of this format is no text.
    fn is_binary(self) -> bool {
        matches!(self, Format::Parquet | Format::Perf)
    }
}

/// A table of the Parquet format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Table {
    /// A row for each slice and event that was counted in it
    Slices,
    /// A row for each sample
    Samples,
}

impl ExportArgs {
    /// Checks the options before the trace is read.
    ///
    /// # Errors
    /// One has no effect on the format, or the file cannot be written.
    fn check(&self) -> Result<()> {
        let usage = |why: &str| Err(Failure::new(ExitStatus::Usage, why));
        if self.event.is_some() && !matches!(self.to, Format::Folded | Format::Flamegraph) {
            return usage("--event has an effect with --to folded and flamegraph only: omit it");
        }
        if self.table.is_some() && self.to != Format::Parquet {
            return usage("--table has an effect with --to parquet only: omit it");
        }
        let is_of_slices = self.to == Format::Parquet && self.table != Some(Table::Samples);
        if !self.symbols.is_empty() && (is_of_slices || self.to == Format::Openmetrics) {
            return usage("--symbols has no effect, as this format has no samples: omit it");
        }
        let Some(out) = &self.out else {
            let is_binary = self.to.is_binary() && io::stdout().is_terminal();
            let why = "this format is no text: add --out FILE, or redirect standard output";
            return if is_binary { usage(why) } else { Ok(()) };
        };
        let real = |path: &PathBuf| path.canonicalize().ok();
        if real(out).is_some_and(|out| Some(out) == real(&self.trace)) {
            return usage("--out is the trace itself: name another file");
        }
        project::check_writable(out)
    }
}

/// Writes the trace in another format.
///
/// # Errors
/// An option has no effect, the file is no complete trace with the names of its run, it lacks the
/// samples that the format shows, or the result cannot be written.
pub fn main(args: &ExportArgs) -> Result<u8> {
    args.check()?;
    let symbolizer = Symbolizer::read(&args.symbols)?;
    let bytes = export(args, &Recording::read(&args.trace)?, &symbolizer)?;
    match &args.out {
        Some(out) => project::write(out, &bytes)?,
        None => output::bytes(&bytes)?,
    }
    Ok(0)
}

fn export(args: &ExportArgs, of: &Recording, symbolizer: &Symbolizer) -> Result<Vec<u8>> {
    let stacks = || Stacks::of(of, symbolizer, args.event.as_deref());
    match (args.to, args.table) {
        (Format::Chrome, _) => chrome::write(of, symbolizer),
        (Format::Firefox, _) => firefox::write(of, symbolizer),
        (Format::Folded, _) => Ok(stacks()?.folded()),
        (Format::Flamegraph, _) => stacks()?.flame_graph(&of.run.command_line),
        (Format::Openmetrics, _) => Ok(openmetrics::write(&of.run).into_bytes()),
        (Format::Parquet, Some(Table::Samples)) => parquet::samples(of, symbolizer),
        (Format::Parquet, Some(Table::Slices) | None) => parquet::slices(of),
        (Format::Perf, _) => perf::write(of, symbolizer),
    }
}
