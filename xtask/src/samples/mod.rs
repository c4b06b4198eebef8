//! `cargo xtask report`, `script` and `annotate`: the samples of a trace in the form of perf's
//! commands of these names, by function, one by one, and by instruction.

pub mod annotate;
pub mod breakdown;
mod code;
pub(crate) mod printed;
pub mod report;
pub mod script;
mod share;

use std::path::PathBuf;

use clap::Args;
use tally_abi::text::Grouped;

use crate::{
    Result, output,
    recording::{Recording, Symbolizer},
    symbols::CallGraph,
    trace_file::DEFAULT_TRACE,
};

/// Columns of the text.
const COLUMNS: usize = 80;

/// Options that the three commands share.
#[derive(Args, Clone, Debug)]
pub struct SampleArgs {
    /// Trace file that `cargo xtask record` or `run --trace FILE` wrote
    #[arg(default_value = DEFAULT_TRACE)]
    trace: PathBuf,
    /// The file of a program that was sampled, for functions and lines; repeatable
    #[arg(long, value_name = "FILE")]
    symbols: Vec<PathBuf>,
    /// Only samples of this event
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// How callers are found, if the stacks were recorded (`record -g`)
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    call_graph: CallGraph,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl SampleArgs {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read, or the trace has no samples, or none of the event.
    fn read(&self) -> Result<(Recording, Symbolizer)> {
        let symbolizer = Symbolizer::read(&self.symbols, self.call_graph)?;
        let recording = Recording::read(&self.trace)?;
        recording.has_samples()?;
        if self.event.is_some() {
            recording.sampled_event(self.event.as_deref())?;
        }
        let programs = recording.records.samples.iter();
        let programs = programs.map(|sample| recording.program_of(sample.session).1);
        let lacks = |program: &&str| symbolizer.file(&recording, program).is_none();
        if let Some(program) = programs.clone().find(lacks) {
            output::note(format_args!(
                "xtask: no symbols of {program}: add --symbols FILE for names of functions"
            ));
        }
        Ok((recording, symbolizer))
    }
}

/// A number of samples as text.
fn samples_of(count: u64) -> String {
    format!("{} sample{}", Grouped(count), if count == 1 { "" } else { "s" })
}

/// The end of a name that is longer than `columns` columns: a path's last parts are the most
/// informative.
fn last_columns(name: &str, columns: usize) -> String {
    let length = name.chars().count();
    if length <= columns {
        return name.to_owned();
    }
    let kept = name.chars().skip(length + 1 - columns.max(1));
    std::iter::once('…').chain(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(last_columns("core::fmt::write", 16), "core::fmt::write");
        assert_eq!(last_columns("core::fmt::write", 10), "…mt::write");
        assert_eq!(last_columns("überlänge", 4), "…nge");
    }
}
