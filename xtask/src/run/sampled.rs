//! The samples of a run, for its page, and for the cycles of its functions by cause.

use std::path::Path;

use tally_abi::{
    ExitStatus,
    command::{Command, Verb},
    text::Grouped,
};

use crate::{
    Failure, Result,
    machine::Boot,
    output,
    page::{self, Samples},
    program_words::tally,
    recording::{Recording, Symbolizer},
    report::Report,
    samples::{
        self, TimeAt,
        breakdown::{ByCode, CodeTruth},
    },
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

/// The time at each address of a run's programs, by its samples of `event`.
///
/// # Errors
/// A file of a program cannot be read, or the run has no samples in known functions.
pub fn by_instruction(
    boot: &Boot,
    report: &Report,
    (command_line, event): (&str, &str),
) -> Result<Vec<TimeAt>> {
    match read(boot, report, command_line)? {
        Some((recording, symbolizer)) => samples::times(&recording, &symbolizer, event),
        None => Err(Failure::new(ExitStatus::CheckFailed, "the run has no samples")),
    }
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

/// The line about a run that took no samples, with the counts that are below the period.
pub(super) fn none_taken(programs: &[Vec<String>], report: &Report) -> String {
    let sampling = programs.iter().find_map(|words| {
        let words = tally(words)?;
        let command = Command::parse(&words).ok().filter(|it| it.verb == Verb::Record)?;
        let period = (command.hz == 0).then_some(command.period)?;
        Some((command.program.first()?.to_string(), period))
    });
    let events = report.first.iter().chain(&report.others).flat_map(|of| &of.events);
    let short = |(program, period): (String, u64)| {
        let counts = events.filter_map(|of| Some((of.estimate?, &of.name)));
        let counts = counts.filter(|(count, _)| *count < period);
        let counts: Vec<String> =
            counts.map(|(count, name)| format!("{} {name}", Grouped(count))).collect();
        let (counts, period) = (counts.join(", "), Grouped(period));
        (!counts.is_empty())
            .then(|| format!("{program} had {counts}, fewer than the period of {period}"))
    };
    let why = sampling.and_then(short).unwrap_or_else(|| "the program was too short".to_owned());
    format!("no samples were taken: {why}: give it more work, or sample more often with -c or -F")
}

#[cfg(test)]
mod tests {
    use tally_abi::{Reading, Value};

    use super::*;
    use crate::report::{EventReport, SessionReport};

    #[test]
    fn a_run_without_samples_says_that_the_program_had_fewer_events_than_a_period() {
        let event = |name: &str, count| {
            let value = Value::Exact { count };
            let reading =
                Reading { value, counted: 0, counted_cycles: 1, total_cycles: 1, slices: 1 };
            EventReport::of(name, &reading, None)
        };
        let events = vec![event("cycles", 315_204), event("instructions", 2_000_000)];
        let first = Some(SessionReport { events, ..SessionReport::default() });
        let report = Report { first, ..Report::default() };
        let of = |text: &str| {
            let words = text.split(' ').map(str::to_owned).collect();
            none_taken(&[words], &report)
        };
        let said = of("record -c 1000000 -e cycles,instructions ./hello 3");
        let had = "./hello had 315,204 cycles, fewer than the period of 1,000,000: give it more";
        assert!(said.contains(had), "{said}");
        for other in ["record -F 10 ./hello", "record -c 1000 ./hello"] {
            assert!(of(other).contains(": the program was too short: give"), "{other}");
        }
    }
}
