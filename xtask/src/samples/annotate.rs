//! `cargo xtask annotate`: the instructions of a function with the share of its events at each, and
//! their source lines, in the form of perf annotate.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt::{self, Write as _},
    fs,
    path::Path,
};

use clap::Args;
use serde::Serialize;
use tally_abi::{ExitStatus, text::Grouped};

use super::{
    COLUMNS, SampleArgs,
    breakdown::ByCode,
    chosen::{Named, named, typed},
    code::Code,
    last_columns, samples_of,
    share::{Share, Weight},
    short::short_functions,
    short_function,
};
use crate::{
    Failure, Result, output,
    recording::{LoadedFile, Recording, Symbolizer},
};

/// Instructions without samples that are printed before and after one with samples.
const CONTEXT: usize = 2;

/// The places of samples that are precise, and of others.
const AT_THE_EVENT: &str = "Each sample is at an instruction that had the event.";
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
    let event = recording.sampled_event(args.of.event.as_deref())?;
    let functions = sampled(&recording, &symbolizer, &event)?;
    let chosen = choose(&functions, args.function.as_deref())?;
    let annotated = chosen.annotated(event, &functions);
    output::print(args.of.json, &annotated, &annotated.text(args.all))?;
    Ok(0)
}

/// The instructions of the function with the most samples of an event.
///
/// # Errors
/// As [`main`].
pub(super) fn text(of: &Recording, symbolizer: &Symbolizer, event: String) -> Result<String> {
    let functions = sampled(of, symbolizer, &event)?;
    Ok(choose(&functions, None)?.annotated(event, &functions).text(true))
}

/// A function that was sampled.
struct Sampled<'a> {
    file: &'a LoadedFile,
    /// The function's name.
    function: String,
    /// All names of its address.
    aliases: &'a [String],
    instructions: Vec<super::code::Instruction>,
    weight: Weight,
    by_address: BTreeMap<u64, Weight>,
    /// Whether every sample is precise.
    is_precise: bool,
}

/// The functions with samples of an event, in decreasing order of events.
struct Found<'a> {
    functions: Vec<Sampled<'a>>,
    /// Samples in code whose function is not known.
    elsewhere: Weight,
}

/// Finds the functions with samples of an event, in decreasing order of events.
fn sampled<'a>(of: &Recording, symbolizer: &'a Symbolizer, event: &str) -> Result<Found<'a>> {
    let mut elsewhere = Weight::default();
    let mut codes: BTreeMap<(&Path, u64), Code> = BTreeMap::new();
    let mut found: BTreeMap<(&Path, u64), Sampled<'a>> = BTreeMap::new();
    for (sample, events) in of.weighted_samples() {
        if of.event_name(sample.session, sample.event) != event {
            continue;
        }
        let file = symbolizer.file(of, sample, sample.address);
        let code = match file.map(|file| (file, codes.entry(file.key()))) {
            Some((_, Entry::Occupied(known))) => Some(known.into_mut()),
            Some((file, Entry::Vacant(new))) => Some(new.insert(Code::read(file)?)),
            None => None,
        };
        let function = code.and_then(|code| Some((code.at(sample.address)?, &*code)));
        let Some((file, (function, code))) = file.zip(function) else {
            elsewhere.add(events);
            continue;
        };
        let of = found.entry((file.key().0, function.start)).or_insert_with(|| Sampled {
            file,
            function: symbolizer.named(file, function.start, || function.name()),
            aliases: file.aliases(function.start),
            instructions: code.instructions(function),
            weight: Weight::default(),
            by_address: BTreeMap::new(),
            is_precise: true,
        });
        of.weight.add(events);
        of.is_precise &= sample.precise;
        of.by_address.entry(sample.address).or_default().add(events);
    }
    let mut functions: Vec<Sampled<'a>> = found.into_values().collect();
    functions.sort_by_key(|of| std::cmp::Reverse(of.weight.events));
    if functions.is_empty() {
        let why = "no sample is in a function that is known: add --symbols FILE with the file of \
                   the program, not stripped";
        return Err(Failure::new(ExitStatus::BadTrace, why));
    }
    Ok(Found { functions, elsewhere })
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

impl Sampled<'_> {
    fn annotated(&self, event: String, found: &Found<'_>) -> Annotated {
        let known = found.functions.iter().map(|of| of.weight.events).sum::<u64>();
        let all_events = (known + found.elsewhere.events).max(1) as f64;
        let line = |instruction: &super::code::Instruction| {
            let weight = self.by_address.get(&instruction.address).copied().unwrap_or_default();
            let place = self.file.places(instruction.address).into_iter().next();
            Line {
                address: instruction.address,
                instruction: instruction.text.clone(),
                samples: weight.samples,
                events: weight.events,
                share: weight.share_of(&self.weight),
                file: place.as_ref().and_then(|place| place.file.clone()),
                line: place.and_then(|place| place.line),
            }
        };
        Annotated {
            event,
            function: self.function.clone(),
            samples: self.weight.samples,
            events: self.weight.events,
            share: self.weight.events as f64 / all_events,
            unknown_share: found.elsewhere.events as f64 / all_events,
            precise: self.is_precise,
            instructions: self.instructions.iter().map(line).collect(),
        }
    }
}

impl Annotated {
    /// The instructions near samples, or all, with a line for each change of the source line.
    fn text(&self, all: bool) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.head(&mut text);
        let has = |line: &Line| line.samples > 0;
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
        writeln!(text, "# {}", if self.precise { AT_THE_EVENT } else { LATE })?;
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

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (share, interval) = match self.samples {
            0 => Default::default(),
            _ => (self.share.percent(), self.share.interval()),
        };
        let line = format!("{share:>8} {interval:>14}  {:>8x}  {}", self.address, self.instruction);
        f.write_str(&line.chars().take(COLUMNS).collect::<String>())
    }
}
