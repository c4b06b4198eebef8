//! `cargo xtask report`, `script`, `annotate`, `mem` and `c2c`: the samples of a trace in the form
//! of perf's commands of these names: by function, one by one, by instruction, and by memory
//! access.

pub mod annotate;
mod branch_cost;
pub mod breakdown;
mod by_instruction;
mod chosen;
mod code;
mod exposed;
pub(crate) mod history;
pub mod memory;
mod nearby;
pub(crate) mod printed;
pub mod report;
pub mod script;
mod share;
pub mod sharing;
mod short;

use std::path::PathBuf;

use clap::Args;
use tally_abi::text::Grouped;

pub use self::by_instruction::TimeAt;
use self::short::last_columns;
pub(crate) use self::{
    branch_cost::is_mispredictions,
    by_instruction::times,
    report::weights,
    share::{Share, Weight},
    short::{short_function, short_functions},
};
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
        Symbolizer::check(&self.symbols)?;
        let recording = Recording::read(&self.trace)?;
        recording.has_samples()?;
        let symbolizer = symbolizer(&recording, &self.symbols, self.call_graph)?;
        if self.event.is_some() {
            recording.sampled_event(self.event.as_deref())?;
        }
        Ok((recording, symbolizer))
    }
}

/// Reads the files of the programs that were sampled, and says which program has none.
///
/// # Errors
/// As [`Symbolizer::of`].
pub(crate) fn symbolizer(of: &Recording, symbols: &[PathBuf], by: CallGraph) -> Result<Symbolizer> {
    let symbolizer = Symbolizer::of(of, symbols, by)?;
    let programs = of.records.samples.iter();
    let mut programs = programs.map(|sample| of.program_of(sample.session));
    let lacks = |(program, _): &(u32, &str)| symbolizer.files(*program).next().is_none();
    if let Some((_, program)) = programs.find(lacks) {
        output::note(format_args!(
            "xtask: no symbols of {program}: add --symbols FILE for names of functions"
        ));
    }
    Ok(symbolizer)
}

/// A number of samples as text.
pub(crate) fn samples_of(count: u64) -> String {
    format!("{} sample{}", Grouped(count), if count == 1 { "" } else { "s" })
}
