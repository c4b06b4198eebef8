//! The samples of a run, for its page, and for the cycles of its functions by cause.

use std::path::Path;

use crate::{
    Result,
    machine::Boot,
    output,
    page::{self, Samples},
    recording::{Recording, Symbolizer},
    report::Report,
    samples::breakdown::{ByCode, CodeTruth},
    symbols::CallGraph,
    trace::run::Run,
    trace_file::Trace,
};

/// The samples of a run whose kernel had this command line, by the functions of its programs, with
/// the truth of the file of `--vpmu blocks=FILE`; `None` if its trace has no samples, or is not
/// complete.
///
/// # Errors
/// A program or the file cannot be read, or a picture cannot be drawn.
pub(super) fn sampled(
    boot: &Boot,
    report: &Report,
    (command_line, blocks): (&str, Option<&Path>),
) -> Result<Samples> {
    let Some((recording, symbolizer)) = read(boot, report, command_line)? else {
        return Ok(Samples::default());
    };
    let truth = blocks.map(CodeTruth::read).transpose()?;
    page::sampled(&recording, &symbolizer, truth.as_ref())
}

/// Prints the cycles of functions by cause, for a run that sampled the events for it, with the
/// truth of the file of `--vpmu blocks=FILE`.
///
/// # Errors
/// A program or the file cannot be read, or there are too few samples.
pub(super) fn show_breakdown(
    boot: &Boot,
    report: &Report,
    (command_line, blocks): (&str, Option<&Path>),
) -> Result<()> {
    let by = by_function(boot, report, (command_line, blocks))?;
    by.iter().for_each(|by| output::note(format_args!("\n{}", by.to_string().trim_end())));
    Ok(())
}

/// The cycles of functions by cause; `None` if the trace has no samples, or is not complete.
///
/// # Errors
/// As [`show_breakdown`].
pub fn by_function(
    boot: &Boot,
    report: &Report,
    (command_line, blocks): (&str, Option<&Path>),
) -> Result<Option<ByCode>> {
    let Some((recording, symbolizer)) = read(boot, report, command_line)? else {
        return Ok(None);
    };
    let truth = blocks.map(CodeTruth::read).transpose()?;
    ByCode::functions(&recording, &symbolizer, false, truth.as_ref()).map(Some)
}

/// The samples of a run, and the symbols of its programs.
fn read(
    boot: &Boot,
    report: &Report,
    command_line: &str,
) -> Result<Option<(Recording, Symbolizer)>> {
    if boot.transcript.samples.is_empty() {
        return Ok(None);
    }
    let run = Run::of(boot, report, command_line).json();
    let recording = match Recording::of(&Trace::with_run(&boot.transcript.trace, &run)) {
        Ok(recording) => recording,
        Err(why) => {
            output::note(format_args!("xtask: the samples are not shown: {why}"));
            return Ok(None);
        }
    };
    let symbolizer = Symbolizer::of(&recording, &[], CallGraph::default())?;
    Ok(Some((recording, symbolizer)))
}
