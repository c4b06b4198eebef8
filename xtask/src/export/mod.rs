//! `cargo xtask export`: writes a trace in the formats of other viewers.
//!
//! A format is a function from a [`Recording`], a complete trace with the names of its run, to the
//! bytes of a file. The file is written completely or not at all.

mod bytes;
mod chrome;
mod ctf;
mod firefox;
mod folded;
mod openmetrics;
mod parquet;
mod perf;
mod pprof;

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use tally_abi::ExitStatus;

pub(crate) use self::folded::Stacks;
use crate::{
    Failure, Result,
    new_folder::NewFolder,
    output, project,
    recording::{Recording, Symbolizer},
    symbols::CallGraph,
    trace_file::DEFAULT_TRACE,
};

/// Reason why a folder cannot be written to standard output.
const NO_FOLDER: &str = "this format is a folder: add --out DIR";

/// Options of `cargo xtask export`.
#[derive(Args, Clone, Debug)]
pub struct ExportArgs {
    /// Trace file that `cargo xtask record` or `run --trace FILE` wrote
    #[arg(default_value = DEFAULT_TRACE)]
    trace: PathBuf,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,
    /// The file to write, or with ctf the new folder [default: -, standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The file of a program that was sampled, for the names of its functions; repeatable
    #[arg(long, value_name = "FILE")]
    symbols: Vec<PathBuf>,
    /// The event whose samples folded and flamegraph show, if several were sampled
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// How callers are found, if the stacks were recorded (`record -g`)
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    call_graph: CallGraph,
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
    /// The samples as pprof's profile: for go tool pprof, Speedscope, Pyroscope
    Pprof,
    /// All records in the Common Trace Format 1.8, a folder: for babeltrace2, Trace Compass
    Ctf,
}

impl Format {
    /// Returns whether a file of this format is binary.
    fn is_binary(self) -> bool {
        matches!(self, Format::Parquet | Format::Perf | Format::Pprof)
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
    /// An option has no effect on the format, or the file cannot be written.
    fn check(&self) -> Result<()> {
        let usage = |why: &str| Err(Failure::new(ExitStatus::Usage, why));
        if self.event.is_some() && !matches!(self.to, Format::Folded | Format::Flamegraph) {
            return usage("--event has an effect with --to folded and flamegraph only: omit it");
        }
        if self.table.is_some() && self.to != Format::Parquet {
            return usage("--table has an effect with --to parquet only: omit it");
        }
        let is_of_slices = self.to == Format::Parquet && self.table != Some(Table::Samples);
        let has_names = !is_of_slices && !matches!(self.to, Format::Openmetrics | Format::Ctf);
        if !self.symbols.is_empty() && !has_names {
            return usage("--symbols has no effect, as this format has no functions: omit it");
        }
        if self.to == Format::Ctf {
            let Some(out) = self.file() else {
                return usage(NO_FOLDER);
            };
            return NewFolder::check(out, 0).map(drop);
        }
        let Some(out) = self.file() else {
            let is_binary = self.to.is_binary() && io::stdout().is_terminal();
            let why = "this format is no text: add --out FILE, or redirect standard output";
            return if is_binary { usage(why) } else { Ok(()) };
        };
        let real = |path: &Path| path.canonicalize().ok();
        if real(out).is_some_and(|out| Some(out) == real(&self.trace)) {
            return usage("--out is the trace itself: name another file");
        }
        project::check_writable(out)
    }

    /// The file to write; `None` for standard output.
    fn file(&self) -> Option<&Path> {
        self.out.as_deref().filter(|path| *path != "-")
    }
}

/// Writes the trace in another format.
///
/// # Errors
/// An option has no effect, the file is no complete trace with the names of its run, it lacks the
/// samples that the format shows, or the result cannot be written.
pub fn main(args: &ExportArgs) -> Result<u8> {
    args.check()?;
    Symbolizer::check(&args.symbols)?;
    let recording = Recording::read(&args.trace)?;
    let symbolizer = Symbolizer::of(&recording, &args.symbols, args.call_graph)?;
    match (export(args, &recording, &symbolizer)?, args.file()) {
        (Exported::File(bytes), Some(out)) => project::write(out, &bytes)?,
        (Exported::File(bytes), None) => output::bytes(&bytes)?,
        (Exported::Folder(files), Some(out)) => write_folder(out, &files)?,
        (Exported::Folder(_), None) => return Err(Failure::new(ExitStatus::Usage, NO_FOLDER)),
    }
    Ok(0)
}

/// Result of an export.
enum Exported {
    /// The bytes of a file.
    File(Vec<u8>),
    /// The files of a folder, by name.
    Folder(Vec<(String, Vec<u8>)>),
}

/// Writes the files of a folder completely or not at all.
fn write_folder(folder: &Path, files: &[(String, Vec<u8>)]) -> Result<()> {
    let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    NewFolder::check(folder, bytes as u64 >> 20)?.fill(|part| {
        project::make_folder(part)?;
        files.iter().try_for_each(|(name, bytes)| project::write(&part.join(name), bytes))
    })
}

/// Writes a trace in every format; returns the total number of bytes. A format that refuses the
/// trace counts 0.
pub(crate) fn every(of: &Recording, symbolizer: &Symbolizer, trace: &[u8]) -> usize {
    let stacks = || Stacks::of(of, symbolizer, None);
    let files = [
        chrome::write(of, symbolizer),
        firefox::write(of, symbolizer),
        stacks().map(|stacks| stacks.folded()),
        stacks().and_then(|stacks| stacks.flame_graph(&of.run.command_line, None)),
        Ok(openmetrics::write(&of.run).into_bytes()),
        parquet::samples(of, symbolizer),
        parquet::slices(of),
        perf::write(of, symbolizer),
        pprof::write(of, symbolizer),
    ];
    let files = files.into_iter().flatten().map(|bytes| bytes.len()).sum::<usize>();
    let folder = ctf::files(of, trace).unwrap_or_default();
    files + folder.iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
}

fn export(args: &ExportArgs, of: &Recording, symbolizer: &Symbolizer) -> Result<Exported> {
    let stacks = || Stacks::of(of, symbolizer, args.event.as_deref());
    let bytes = match (args.to, args.table) {
        (Format::Chrome, _) => chrome::write(of, symbolizer),
        (Format::Firefox, _) => firefox::write(of, symbolizer),
        (Format::Folded, _) => Ok(stacks()?.folded()),
        (Format::Flamegraph, _) => stacks()?.flame_graph(&of.run.command_line, None),
        (Format::Openmetrics, _) => Ok(openmetrics::write(&of.run).into_bytes()),
        (Format::Parquet, Some(Table::Samples)) => parquet::samples(of, symbolizer),
        (Format::Parquet, Some(Table::Slices) | None) => parquet::slices(of),
        (Format::Perf, _) => perf::write(of, symbolizer),
        (Format::Pprof, _) => pprof::write(of, symbolizer),
        (Format::Ctf, _) => {
            return ctf::files(of, &project::read(&args.trace)?).map(Exported::Folder);
        }
    };
    bytes.map(Exported::File)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: ExportArgs,
    }

    #[test]
    fn a_dash_is_standard_output() {
        let file = |out: &[&str]| {
            let words = [&["export", "t", "--to", "folded"], out].concat();
            Command::parse_from(words).args.file().map(Path::to_owned)
        };
        assert_eq!((file(&[]), file(&["--out", "-"])), (None, None));
        assert_eq!(file(&["--out", "x"]), Some("x".into()));
    }
}
