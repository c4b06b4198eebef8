//! `cargo xtask report`: functions with their numbers of events, by event, in perf report's
//! columns.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
};

use clap::Args;
use serde::Serialize;
use tally_abi::{ExitStatus, text::Grouped, trace::SampleRecord};

use super::{
    SampleArgs,
    breakdown::{ByCode, CodeTruth},
    history::history,
    last_columns,
    nearby::{Moved, Nearby},
    samples_of,
    share::{Share, Weight},
    short::short_functions,
};
use crate::{
    Failure, Result, output,
    recording::{Level, Recording, Symbolizer},
};

/// The line about samples of ring 0 that are not there.
const AT_CALLS: &str =
    "# Interrupts waited for the kernel: these call it; --overflows nmi samples it";
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
    /// Count a sample also in the functions that called the one it is in (`record -g`)
    #[arg(long)]
    children: bool,
    /// List the functions of each thread apart
    #[arg(long)]
    threads: bool,
    /// Print where the cycles of each function go (`record --breakdown`)
    #[arg(long, conflicts_with_all = ["children", "threads", "percent_limit"])]
    breakdown: bool,
    /// Print the branches that were taken before samples (`record -b`)
    #[arg(long, conflicts_with_all = ["breakdown", "children", "threads", "percent_limit"])]
    branch_history: bool,
    /// With --breakdown: the file of `run --vpmu blocks=FILE`, for the truth of each function
    #[arg(long, value_name = "FILE", requires = "breakdown")]
    blocks: Option<PathBuf>,
    /// Print no function with a smaller share, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    percent_limit: f64,
}

/// The samples of an event.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OfEvent {
    event: String,
    samples: u64,
    /// Events that the samples stand for.
    events: u64,
    /// Whether the event counts in ring 0, and all samples are at instructions of ring 3.
    #[serde(skip)]
    is_at_calls: bool,
    /// The functions, in decreasing order of events.
    functions: Vec<OfFunction>,
}

/// The samples in a function.
#[derive(Clone, Debug, Serialize)]
struct OfFunction {
    program: u32,
    name: String,
    /// With `--threads`, the number of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u32>,
    /// With `--threads`, the thread's own name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_name: Option<String>,
    function: String,
    samples: u64,
    events: u64,
    /// The share of the event's events; with `--children` including those in the functions that it
    /// called.
    #[serde(flatten)]
    share: Share,
    /// With `--children`, the share of the events in the function itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    own_share: Option<f64>,
}

/// Selection of the functions that a sample counts for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct How {
    /// Whether the innermost inlined function counts, not the function around it.
    pub(crate) inlined: bool,
    /// Whether the callers count, too.
    pub(crate) children: bool,
    /// Whether threads are separate.
    pub(crate) threads: bool,
}

/// A program, one of its threads if these are separate, and a function.
pub(crate) type Key = (u32, Option<u32>, String);

/// The samples in a function.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InFunction {
    /// Samples at the function's own instructions.
    pub(crate) own: Weight,
    /// Samples including those in the functions that it called.
    with_called: Weight,
}

/// Prints the functions.
///
/// # Errors
/// A file cannot be read, there are no samples, or standard output cannot be written.
pub fn main(args: &ReportArgs) -> Result<u8> {
    let (recording, symbolizer) = args.of.read()?;
    if args.breakdown {
        let truth = args.blocks.as_deref().map(CodeTruth::read).transpose()?;
        let by = ByCode::functions(&recording, &symbolizer, args.inlined, truth.as_ref())?;
        output::print(args.of.json, &by, &by.to_string())?;
        return Ok(0);
    }
    if args.branch_history {
        let history = history(&recording, &symbolizer, args.of.event.as_deref())?;
        output::print(args.of.json, &history, &history.to_string())?;
        return Ok(0);
    }
    if args.children && !recording.has_callers() {
        let why = "--children: the trace has no stacks: record them with `record -g`";
        return Err(Failure::new(ExitStatus::BadTrace, why));
    }
    let how = How { inlined: args.inlined, children: args.children, threads: args.threads };
    let mut events = by_event(&recording, &symbolizer, how);

    events.retain(|of| args.of.event.as_ref().is_none_or(|event| of.event == *event));
    for of in &mut events {
        of.functions.retain(|function| 100.0 * function.share.share >= args.percent_limit);
    }
    let text: Vec<String> = events.iter().map(OfEvent::to_string).collect();
    output::print(args.of.json, &events, &text.join("\n"))?;
    Ok(0)
}

/// The samples in each function, by event.
pub(crate) fn weights(
    of: &Recording,
    symbolizer: &Symbolizer,
    how: How,
) -> BTreeMap<String, BTreeMap<Key, InFunction>> {
    let mut events: BTreeMap<String, BTreeMap<Key, InFunction>> = BTreeMap::new();
    for (sample, weight) in of.weighted_samples() {
        let (program, _) = of.program_of(sample.session);
        let thread = how.threads.then_some(sample.thread);
        let event = events.entry(of.event_name(sample.session, sample.event)).or_default();
        let mut levels = if how.children {
            symbolizer.stack(of, sample)
        } else {
            vec![symbolizer.level(of, sample)]
        };
        let innermost = levels.pop().map(|level| shown(level, how.inlined)).unwrap_or_default();
        let called_by = levels.into_iter().map(|level| shown(level, how.inlined));
        // A function that is on the stack twice counts once.
        let mut called_by: BTreeSet<String> = called_by.collect();
        called_by.insert(innermost.clone());
        for function in called_by {
            event.entry((program, thread, function)).or_default().with_called.add(weight);
        }
        event.entry((program, thread, innermost)).or_default().own.add(weight);
    }
    events
}

/// The samples of each event that can belong to another function, by function.
fn moved(
    of: &Recording,
    symbolizer: &Symbolizer,
    how: How,
) -> BTreeMap<String, BTreeMap<Key, Moved>> {
    let name = |sample: &SampleRecord| shown(symbolizer.level(of, sample), how.inlined);
    let mut nearby = Nearby::of(of, symbolizer, &name, None);
    let mut events: BTreeMap<String, BTreeMap<Key, Moved>> = BTreeMap::new();
    for (sample, weight) in of.weighted_samples() {
        let others = nearby.others(sample);
        if others.is_empty() {
            continue;
        }
        let (program, _) = of.program_of(sample.session);
        let thread = how.threads.then_some(sample.thread);
        let event = events.entry(of.event_name(sample.session, sample.event)).or_default();
        event.entry((program, thread, name(sample))).or_default().leaving.add(weight);
        for other in others.iter().cloned() {
            event.entry((program, thread, other)).or_default().coming.add(weight);
        }
    }
    events
}

/// The functions of each event that was sampled.
pub(crate) fn by_event(of: &Recording, symbolizer: &Symbolizer, how: How) -> Vec<OfEvent> {
    // A late sample is in the same functions with those that they called.
    let moved = if how.children { BTreeMap::new() } else { moved(of, symbolizer, how) };
    let listed = |(event, functions): (String, BTreeMap<Key, InFunction>)| {
        let moved =
            |key: &Key| moved.get(&event).and_then(|of| of.get(key)).copied().unwrap_or_default();
        let mut all = Weight::default();
        functions.values().for_each(|weight| all.extend(&weight.own));
        let function = |(key, weight): (Key, InFunction)| {
            let Moved { leaving, coming } = moved(&key);
            let (program, thread, function) = key;
            OfFunction {
                program,
                name: of.program_name(program),
                thread,
                thread_name: thread.and_then(|thread| of.thread_name(program, thread)),
                function,
                samples: weight.with_called.samples,
                events: weight.with_called.events,
                share: weight.with_called.share_with_skid(&leaving, &coming, &all),
                own_share: how.children.then(|| weight.own.share_of(&all).share),
            }
        };
        let mut functions: Vec<OfFunction> = functions.into_iter().map(function).collect();
        functions.sort_by_key(|of| Reverse(of.events));
        let samples = of.records.samples.iter();
        let mut its = samples.filter(|it| of.event_name(it.session, it.event) == event);
        // A sample without an address is in neither ring.
        let is_in_ring_0 = its.clone().any(|it| !it.user && it.address != 0);
        let is_at_calls = !is_in_ring_0 && its.any(|it| of.counts_ring_0(it.session, it.event));
        OfEvent { event, samples: all.samples, events: all.events, is_at_calls, functions }
    };
    weights(of, symbolizer, how).into_iter().map(listed).collect()
}

impl OfEvent {
    /// The event's name.
    pub(crate) fn event(&self) -> &str {
        &self.event
    }
}

/// The function of a level of the stack that is shown: the innermost inlined one, or the one around
/// it.
fn shown(level: Level, inlined: bool) -> String {
    let mut functions = level.functions;
    let function = if inlined { functions.pop() } else { functions.into_iter().next() };
    function.unwrap_or_default()
}

impl fmt::Display for OfEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (samples, events) = (samples_of(self.samples), Grouped(self.events));
        writeln!(f, "# {samples} of {}, for {events} events", self.event)?;
        if self.is_at_calls {
            writeln!(f, "{AT_CALLS}")?;
        }
        let has_children = self.functions.iter().any(|of| of.own_share.is_some());
        let (share, own) = if has_children { ("Children", "    Self") } else { ("Overhead", "") };
        let program = "Command";
        let has_threads = self.functions.iter().any(|of| of.thread.is_some());
        let thread = if has_threads { "Thread  " } else { "" };
        write!(f, "{share}   95 % interval{own}  Samples  {program:<PROGRAM_COLUMNS$}  ")?;
        writeln!(f, "{thread}Symbol")?;
        let mut heads = Vec::new();
        for of in &self.functions {
            let program = of.name.rsplit('/').next().unwrap_or(&of.name);
            let command = of.thread_name.as_deref().unwrap_or(program);
            heads.push(format!(
                "{}  {}{}  {:>7}  {:<PROGRAM_COLUMNS$}  {}",
                of.share.percent(),
                of.share.interval(),
                of.own_share.map_or_else(String::new, |own| format!("{:>7.2}%", 100.0 * own)),
                Grouped(of.samples).to_string(),
                last_columns(command, PROGRAM_COLUMNS),
                of.thread.map_or_else(String::new, |thread| format!("{thread:>6}  ")),
            ));
        }
        let widest = heads.iter().map(|head| head.chars().count()).max().unwrap_or_default();
        let names: Vec<&str> = self.functions.iter().map(|of| &*of.function).collect();
        let names = short_functions(&names, output::columns().saturating_sub(widest));
        heads
            .iter()
            .zip(names)
            .try_for_each(|(head, name)| writeln!(f, "{}", format!("{head}{name}").trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording;
    use tally_abi::session::Mode;

    #[test]
    fn samples_of_ring_0_at_calls_are_said_to_be_that() {
        let text = |mode: Mode| {
            let of = recording::tests::sampled_in(mode, "cycles", [0; 16]);
            let all = by_event(&of, &Symbolizer::default(), How::default());
            all.iter().map(OfEvent::to_string).collect::<String>()
        };
        assert!([Mode::Kernel, Mode::Full].iter().all(|mode| text(*mode).contains(AT_CALLS)));
        assert!(!text(Mode::User).contains(AT_CALLS));
        assert!(text(Mode::Full).lines().all(|line| line.chars().count() <= 80));
    }
}
