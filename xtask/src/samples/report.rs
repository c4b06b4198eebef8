//! `cargo xtask report`: the functions with the most events, by event, in perf report's columns.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    fmt::{self, Write as _},
};

use clap::Args;
use serde::Serialize;
use tally_abi::text::Grouped;

use super::{
    COLUMNS, SampleArgs, last_columns, samples_of,
    share::{Share, Weight},
};
use crate::{
    Result, output,
    recording::{Recording, Symbolizer},
};

/// Columns of the program's name.
const PROGRAM_COLUMNS: usize = 10;

/// Options of `cargo xtask report`.
#[derive(Args, Clone, Debug)]
pub struct ReportArgs {
    #[command(flatten)]
    of: SampleArgs,
    /// Count samples in inlined functions there, not in the function around them
    #[arg(long)]
    inlined: bool,
    /// Print no function with a smaller share, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    percent_limit: f64,
}

/// The samples of an event.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OfEvent {
    event: String,
    samples: u64,
    /// The events that they stand for.
    events: u64,
    /// The functions, those with the most events first.
    functions: Vec<OfFunction>,
}

/// The samples in a function.
#[derive(Clone, Debug, Serialize)]
struct OfFunction {
    program: u32,
    name: String,
    function: String,
    samples: u64,
    events: u64,
    #[serde(flatten)]
    share: Share,
}

/// Prints the functions.
///
/// # Errors
/// A file cannot be read, there are no samples, or standard output cannot be written.
pub fn main(args: &ReportArgs) -> Result<u8> {
    let (recording, symbolizer) = args.of.read()?;
    let mut events = by_event(&recording, &symbolizer, args.inlined);
    events.retain(|of| args.of.event.as_ref().is_none_or(|event| of.event == *event));
    for of in &mut events {
        of.functions.retain(|function| 100.0 * function.share.share >= args.percent_limit);
    }
    let text: Vec<String> = events.iter().map(OfEvent::to_string).collect();
    output::print(args.of.json, &events, &text.join("\n"))?;
    Ok(0)
}

/// The functions of each event that was sampled. A sample counts in the innermost function that was
/// inlined at its address if `inlined` is set, else in the function around it.
pub(crate) fn by_event(of: &Recording, symbolizer: &Symbolizer, inlined: bool) -> Vec<OfEvent> {
    let mut events: BTreeMap<String, BTreeMap<(u32, String), Weight>> = BTreeMap::new();
    for (sample, weight) in of.weighted_samples() {
        let mut functions = symbolizer.functions(of, sample);
        let function = if inlined { functions.pop() } else { functions.into_iter().next() };
        let (program, _) = of.program_of(sample.session);
        let event = events.entry(of.event_name(sample.session, sample.event)).or_default();
        event.entry((program, function.unwrap_or_default())).or_default().add(weight);
    }
    let listed = |(event, functions): (String, BTreeMap<(u32, String), Weight>)| {
        let mut all = Weight::default();
        functions.values().for_each(|weight| all.extend(weight));
        let function = |((program, function), weight): ((u32, String), Weight)| OfFunction {
            program,
            name: of.program_name(program),
            function,
            samples: weight.samples,
            events: weight.events,
            share: weight.share_of(&all),
        };
        let mut functions: Vec<OfFunction> = functions.into_iter().map(function).collect();
        functions.sort_by_key(|of| Reverse(of.events));
        OfEvent { event, samples: all.samples, events: all.events, functions }
    };
    events.into_iter().map(listed).collect()
}

impl OfEvent {
    /// The event.
    pub(crate) fn event(&self) -> &str {
        &self.event
    }
}

impl fmt::Display for OfEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (samples, events) = (samples_of(self.samples), Grouped(self.events));
        writeln!(f, "# {samples} of {}, for {events} events", self.event)?;
        writeln!(f, "Overhead   95 % interval  Samples  {:<PROGRAM_COLUMNS$}  Symbol", "Command")?;
        for of in &self.functions {
            let program = of.name.rsplit('/').next().unwrap_or(&of.name);
            let mut line = format!(
                "{}  {}  {:>7}  {:<PROGRAM_COLUMNS$}  ",
                of.share.percent(),
                of.share.interval(),
                Grouped(of.samples).to_string(),
                last_columns(program, PROGRAM_COLUMNS),
            );
            let left = COLUMNS.saturating_sub(line.chars().count());
            // Writing to a string does not fail.
            let _ = write!(line, "{}", last_columns(&of.function, left));
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
