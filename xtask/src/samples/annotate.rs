//! `cargo xtask annotate`: the instructions of a function with the share of its events at each, and
//! their source lines, in the form of perf annotate.

use std::{
    fmt::{self, Write as _},
    fs,
};

use clap::Args;
use serde::Serialize;
use tally_abi::{ExitStatus, text::Grouped};

use super::{
    COLUMNS, SampleArgs,
    breakdown::ByCode,
    by_instruction::{Found, Sampled},
    chosen::{Named, named, typed},
    code::Instruction,
    exposed, last_columns, samples_of,
    share::Share,
    short::short_functions,
    short_function,
};
use crate::{
    Failure, Result, output,
    recording::{Recording, Symbolizer},
};

/// Instructions without samples that are printed before and after one with samples.
const CONTEXT: usize = 2;

/// The places of samples that are precise, and of others.
const AT_THE_EVENT: &str = "Each sample is at an instruction that had the event.";
/// The places of precise samples of cycles, as they are and corrected.
const OLDEST: &str = "A sample is at the oldest of the instructions that retired together.";
const DISPATCHED: &str =
    "A sample is at the instruction that was dispatched then, ahead of what waits.";
const EXPOSED: &str = "Cycles are shared by the instructions that retired together.";
/// The least share that is printed without samples: half of the last digit.
const LEAST: f64 = 0.000_05;
const LATE: &str = "A sample is some instructions behind the one that caused it.";
/// Functions that a message lists at most.
const LISTED: usize = 10;
/// Columns before each.
const INDENT: usize = 2;

/// Options of `cargo xtask annotate`.
#[derive(Args, Clone, Debug)]
pub struct AnnotateArgs {
    #[command(flatten)]
    of: SampleArgs,
    /// The function, or a part of its name, as FILE:NAME if several files have it [default: the one
    /// with the most events]
    function: Option<String>,
    /// Print where the cycles of the function's lines go (`record --breakdown`)
    #[arg(long, conflicts_with = "all")]
    breakdown: bool,
    /// Print all instructions, not only those near samples
    #[arg(long)]
    all: bool,
}

/// A function's instructions.
#[derive(Clone, Debug, Serialize)]
struct Annotated {
    event: String,
    function: String,
    /// Number of samples in the function, and of the events that they stand for.
    samples: u64,
    events: u64,
    /// The function's share of all events.
    share: f64,
    /// The share of events in code whose function is not known.
    unknown_share: f64,
    /// Whether every sample is precise.
    precise: bool,
    /// Whether the shares are of the cycles that instructions expose.
    exposed: bool,
    #[serde(skip)]
    tags_ops: bool,
    instructions: Vec<Line>,
}

/// An instruction.
#[derive(Clone, Debug, Serialize)]
struct Line {
    address: u64,
    instruction: String,
    samples: u64,
    events: u64,
    /// The instruction's share of the function's events.
    #[serde(flatten)]
    share: Share,
    /// File of the instruction's source line, if it is known.
    file: Option<String>,
    line: Option<u32>,
}

/// Prints the instructions.
///
/// # Errors
/// A file cannot be read, no function of this name has samples, several have, or standard output
/// cannot be written.
pub fn main(args: &AnnotateArgs) -> Result<u8> {
    let (recording, symbolizer) = args.of.read()?;
    if args.breakdown {
        let by = ByCode::lines(&recording, &symbolizer, args.function.as_deref())?;
        output::print(args.of.json, &by, &by.to_string())?;
        return Ok(0);
    }
    let event = event_of(&recording, args.of.event.as_deref())?;
    let functions = Found::of(&recording, &symbolizer, &event)?;
    let chosen = choose(&functions, args.function.as_deref())?;
    let annotated = annotated(chosen, event, &functions);
    output::print(args.of.json, &annotated, &annotated.text(args.all))?;
    Ok(0)
}

/// The instructions of the function with the most samples of an event.
///
/// # Errors
/// As [`main`].
pub(super) fn text(of: &Recording, symbolizer: &Symbolizer, event: String) -> Result<String> {
    let functions = Found::of(of, symbolizer, &event)?;
    Ok(annotated(choose(&functions, None)?, event, &functions).text(true))
}

/// The function that a text names best, or the first.
fn choose<'a, 'f>(found: &'f Found<'a>, name: Option<&str>) -> Result<&'f Sampled<'a>> {
    let functions = &found.functions;
    let Some(name) = name else { return Ok(&functions[0]) };
    let named_as = |of: &'f Sampled<'a>| Named { name: &of.function, aliases: of.aliases };
    let all: Vec<Named<'_>> = functions.iter().map(named_as).collect();
    let matching = named(&all, name).into_iter().map(|place| &functions[place]);
    let matching: Vec<&Sampled<'a>> = matching.collect();
    let why = match matching[..] {
        [one] => return Ok(one),
        [] => {
            let known = listed(&functions.iter().collect::<Vec<_>>());
            format!("no sample is in a function '{name}'; functions with samples:{known}")
        }
        _ => {
            let several = listed(&matching);
            format!("several functions are named '{name}', add more of the name:{several}")
        }
    };
    Err(Failure::new(ExitStatus::Usage, why))
}

/// The names of the first functions, each on a line and as it can be typed.
fn listed(functions: &[&Sampled<'_>]) -> String {
    let typed: Vec<_> = functions.iter().map(|of| typed(&of.function)).collect();
    let names: Vec<&str> = typed.iter().map(|name| &**name).collect();
    let first = &names[..names.len().min(LISTED)];
    let lines = short_functions(first, output::columns() - INDENT);
    let mut text: String = lines.iter().map(|name| format!("\n{:INDENT$}{name}", "")).collect();
    if names.len() > LISTED {
        text += &format!("\n{:INDENT$}… {} more", "", names.len() - LISTED);
    }
    text
}

/// The chosen event, or the only one; of cycles and the executions that correct them, the cycles.
fn event_of(recording: &Recording, chosen: Option<&str>) -> Result<String> {
    let sampled = recording.sampled_events();
    let cycles = sampled.iter().find(|event| exposed::is_cycles(event));
    let is_pair = sampled.len() == 2 && exposed::executions(sampled.iter()).is_some();
    recording.sampled_event(chosen.or(cycles.filter(|_| is_pair).map(String::as_str)))
}

fn annotated(of: &Sampled<'_>, event: String, found: &Found<'_>) -> Annotated {
    let elsewhere: u64 = found.elsewhere.values().map(|weight| weight.events).sum();
    let known = found.functions.iter().map(|of| of.weight.events).sum::<u64>();
    let all_events = (known + elsewhere).max(1) as f64;
    let line = |(index, instruction): (usize, &Instruction)| {
        let address = instruction.step.address;
        let weight = of.by_address.get(&address).copied().unwrap_or_default();
        let place = of.file.places(address).into_iter().next();
        Line {
            address,
            instruction: instruction.text.clone(),
            samples: weight.samples,
            events: weight.events,
            share: of.share(index),
            file: place.as_ref().and_then(|place| place.file.clone()),
            line: place.and_then(|place| place.line),
        }
    };
    Annotated {
        event,
        function: of.function.clone(),
        samples: of.weight.samples,
        events: of.weight.events,
        share: of.weight.events as f64 / all_events,
        unknown_share: elsewhere as f64 / all_events,
        precise: of.is_precise,
        exposed: of.times.is_some(),
        tags_ops: found.tags_ops,
        instructions: of.instructions.iter().enumerate().map(line).collect(),
    }
}

impl Annotated {
    /// The instructions near samples, or all, with a line for each change of the source line.
    fn text(&self, all: bool) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.head(&mut text);
        let has = |line: &Line| line.has_share();
        let (mut source, mut hidden) = (None, 0);
        for (index, line) in self.instructions.iter().enumerate() {
            let end = (index + CONTEXT + 1).min(self.instructions.len());
            if !all && !self.instructions[index.saturating_sub(CONTEXT)..end].iter().any(has) {
                hidden += 1;
                continue;
            }
            if hidden > 0 {
                let _ = writeln!(text, "{:>25}… {hidden} instructions without samples", "");
                (hidden, source) = (0, None);
            }
            let here = line.file.as_deref().zip(line.line);
            if here != source {
                source = here;
                let _ = here.map_or(Ok(()), |(file, line)| writeln!(text, "{}", of(file, line)));
            }
            let _ = writeln!(text, "{line}");
        }
        if hidden > 0 {
            let _ = writeln!(text, "{:>25}… {hidden} instructions without samples", "");
        }
        text
    }

    fn head(&self, text: &mut String) -> fmt::Result {
        let events = Grouped(self.events);
        writeln!(text, "# {}", short_function(&self.function, COLUMNS - 2))?;
        writeln!(
            text,
            "# {:.2}% of {}: {} for {events} events",
            100.0 * self.share,
            self.event,
            samples_of(self.samples)
        )?;
        if self.unknown_share > 0.0 {
            let share = 100.0 * self.unknown_share;
            writeln!(text, "# {share:.2}% are in code of which no function is known: --symbols")?;
        }
        let note = match (self.exposed, self.precise) {
            (true, _) => EXPOSED,
            (false, true) if exposed::is_cycles(&self.event) && self.tags_ops => DISPATCHED,
            (false, true) if exposed::is_cycles(&self.event) => OLDEST,
            (false, true) => AT_THE_EVENT,
            (false, false) => LATE,
        };
        writeln!(text, "# {note}")?;
        writeln!(text, "Percent   95 % interval   Address  Instruction")
    }
}

/// A line of the source: its text if the file exists, and its place.
fn of(file: &str, line: u32) -> String {
    let read = fs::read_to_string(file).ok();
    let text = read.as_deref().and_then(|text| text.lines().nth(line.checked_sub(1)? as usize));
    let place = last_columns(&format!("{file}:{line}"), COLUMNS - 10);
    let Some(text) = text else { return format!("{:10}{place}", "") };
    let text: String = text.trim().chars().take(COLUMNS - 12).collect();
    format!("{:10}{place}\n{:12}{text}", "", "")
}

impl Line {
    /// Returns whether the instruction has a share that is printed: samples, or cycles of its own.
    fn has_share(&self) -> bool {
        self.samples > 0 || self.share.share >= LEAST
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (share, interval) = if self.has_share() {
            (self.share.percent(), self.share.interval())
        } else {
            Default::default()
        };
        let line = format!("{share:>8} {interval:>14}  {:>8x}  {}", self.address, self.instruction);
        f.write_str(&line.chars().take(COLUMNS).collect::<String>())
    }
}
