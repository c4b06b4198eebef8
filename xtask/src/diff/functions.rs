//! The comparison of two traces with samples, function by function, as perf diff does.
//!
//! The samples of two traces are drawn independently. The interval of the difference of two shares
//! is Newcombe's method 10 (*Interval Estimation for the Difference between Independent
//! Proportions*, 1998), from the Wilson intervals of both shares, which `report` prints.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fmt,
    path::{Path, PathBuf},
};

use serde::Serialize;
use tally_abi::{ExitStatus, text::Grouped};

use super::{
    compared::Verdict,
    matched::{Identities, Key, common_names},
};
use crate::{
    Failure, Result, code_files, project,
    recording::{Recording, Symbolizer},
    samples::{Share, Weight, report::How, samples_of, short_functions, symbolizer, weights},
    symbols::CallGraph,
    visible::visible,
};

/// Columns of the text.
const COLUMNS: usize = 80;
/// Columns of the program's name, if several programs were sampled.
const PROGRAM_COLUMNS: usize = 10;

/// Two traces and the differences of their functions.
#[derive(Debug, Serialize)]
pub struct TraceDiff {
    /// The file of the first trace.
    a: String,
    /// The file of the second trace.
    b: String,
    /// The events that both traces have samples of.
    events: Vec<OfEvent>,
}

/// The functions of an event.
#[derive(Debug, Serialize)]
struct OfEvent {
    event: String,
    a: Side,
    b: Side,
    /// The functions, the largest difference first.
    functions: Vec<OfFunction>,
}

/// Samples of one trace, and the events that they stand for.
#[derive(Clone, Copy, Debug, Serialize)]
struct Side {
    samples: u64,
    events: u64,
}

/// A function in both traces.
#[derive(Debug, Serialize)]
struct OfFunction {
    /// The program's name; empty if one program was sampled in each trace.
    program: String,
    function: String,
    a: InTrace,
    b: InTrace,
    /// The second share less the first, -1 to 1.
    difference: f64,
    /// Lower end of the difference's 95 % interval.
    low_95: f64,
    /// Upper end of the difference's 95 % interval.
    high_95: f64,
    verdict: Verdict,
}

/// A function's part of one trace.
#[derive(Clone, Copy, Debug, Serialize)]
struct InTrace {
    #[serde(flatten)]
    side: Side,
    /// The share of the event's events.
    #[serde(flatten)]
    share: Share,
}

/// The samples of a trace in each function, by event.
type Weights = BTreeMap<String, BTreeMap<Key, Weight>>;

impl TraceDiff {
    /// Reads two traces and the files that ran. A file of `symbols` is for the trace in which it
    /// ran, or if it ran in none for both, which then find it by its name.
    ///
    /// # Errors
    /// A file cannot be read, a trace has no samples, or the traces have no event in common.
    pub fn read(paths: [&Path; 2], symbols: &[PathBuf]) -> Result<TraceDiff> {
        Symbolizer::check(symbols)?;
        let [a, b] = paths.map(recording);
        let (a, b) = (a?, b?);
        let has_several = [&a, &b].into_iter().any(|of| programs(of).len() > 1);
        let (mut of_a, in_a) = functions(&a, &belonging(symbols, &a, &b)?, has_several)?;
        let (mut of_b, in_b) = functions(&b, &belonging(symbols, &b, &a)?, has_several)?;
        let [names_a, names_b] = common_names(&in_a, &in_b);
        rename(&mut of_a, &names_a);
        rename(&mut of_b, &names_b);
        let names = paths.map(|path| visible(&path.display().to_string()).into_owned());
        TraceDiff::of(names, &of_a, &of_b)
    }

    fn of([a, b]: [String; 2], of_a: &Weights, of_b: &Weights) -> Result<TraceDiff> {
        let both = of_a.iter().filter_map(|(event, a)| Some((event, a, of_b.get(event)?)));
        let events: Vec<OfEvent> = both.map(|(event, a, b)| OfEvent::of(event, a, b)).collect();
        if events.is_empty() {
            let [in_a, in_b] =
                [of_a, of_b].map(|of| of.keys().map(String::as_str).collect::<Vec<_>>().join(", "));
            let why = format!(
                "{a} has samples of {in_a}, {b} of {in_b}: record the same event (`record -e`)"
            );
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        Ok(TraceDiff { a, b, events })
    }
}

/// Reads a trace with samples.
fn recording(path: &Path) -> Result<Recording> {
    let recording = Recording::read(path)?;
    recording.has_samples().map_err(|Failure { status, message }| {
        Failure::new(status, format!("{}: {message}", path.display()))
    })?;
    Ok(recording)
}

/// The names of the sampled programs, without their folders.
fn programs(of: &Recording) -> BTreeSet<&str> {
    let samples = of.records.samples.iter();
    samples.map(|sample| short_program(of.program_of(sample.session).1)).collect()
}

fn short_program(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The files of `--symbols` for a trace: all but those that ran only in the other one.
fn belonging(symbols: &[PathBuf], of: &Recording, other: &Recording) -> Result<Vec<PathBuf>> {
    let ran = |of: &Recording, identity: &str| {
        let kernel = of.run.kernel.iter().map(|file| &file.identity);
        of.run.code_files.iter().map(|file| &file.identity).chain(kernel).any(|it| it == identity)
    };
    let mut belonging = Vec::new();
    for path in symbols {
        let identity = code_files::identity(&project::read(path)?);
        if ran(of, &identity) || !ran(other, &identity) {
            belonging.push(path.clone());
        }
    }
    Ok(belonging)
}

/// The functions of a trace with their samples, and their identities.
fn functions(
    of: &Recording,
    symbols: &[PathBuf],
    has_several: bool,
) -> Result<(Weights, Identities)> {
    let symbolizer = symbolizer(of, symbols, CallGraph::default())?;
    let program_of =
        |name: &str| if has_several { short_program(name).to_owned() } else { String::new() };
    let mut events = Weights::new();
    for (event, functions) in weights(of, &symbolizer, How::default()) {
        let all = events.entry(event).or_default();
        for ((program, _, function), weight) in functions {
            let program = program_of(&of.program_name(program));
            all.entry((program, function)).or_default().extend(&weight.own);
        }
    }
    let mut identities = Identities::new();
    for sample in &of.records.samples {
        let function = symbolizer.level(of, sample).functions.into_iter().next();
        let key = (program_of(of.program_of(sample.session).1), function.unwrap_or_default());
        if let Entry::Vacant(new) = identities.entry(key)
            && let Some(identity) = symbolizer.identity(of, sample)
        {
            new.insert(identity);
        }
    }
    Ok((events, identities))
}

/// Gives functions the names that they have in both traces.
fn rename(events: &mut Weights, names: &BTreeMap<Key, Key>) {
    for functions in events.values_mut() {
        let renamed = std::mem::take(functions).into_iter();
        let renamed = renamed.map(|(key, of)| (names.get(&key).cloned().unwrap_or(key), of));
        *functions = renamed.collect();
    }
}

impl OfEvent {
    fn of(event: &str, a: &BTreeMap<Key, Weight>, b: &BTreeMap<Key, Weight>) -> OfEvent {
        let all = [a, b].map(|functions| {
            let mut all = Weight::default();
            functions.values().for_each(|weight| all.extend(weight));
            all
        });
        let keys: BTreeSet<&Key> = a.keys().chain(b.keys()).collect();
        let function = |key: &Key| {
            let [in_a, in_b] = [a, b].map(|of| of.get(key).copied().unwrap_or_default());
            OfFunction::of(key, InTrace::of(&in_a, &all[0]), InTrace::of(&in_b, &all[1]))
        };
        let mut functions: Vec<OfFunction> = keys.into_iter().map(function).collect();
        functions.sort_by(|a, b| b.difference.abs().total_cmp(&a.difference.abs()));
        let [a, b] = all.map(|all| Side::of(&all));
        OfEvent { event: event.to_owned(), a, b, functions }
    }

    fn differ(&self) -> usize {
        self.functions.iter().filter(|of| of.verdict == Verdict::Differs).count()
    }
}

impl Side {
    fn of(weight: &Weight) -> Side {
        Side { samples: weight.samples, events: weight.events }
    }
}

impl InTrace {
    fn of(weight: &Weight, all: &Weight) -> InTrace {
        InTrace { side: Side::of(weight), share: weight.share_of(all) }
    }
}

impl OfFunction {
    fn of((program, function): &Key, a: InTrace, b: InTrace) -> OfFunction {
        let difference = b.share.share - a.share.share;
        let below = |share: &Share| share.share - share.low_95;
        let above = |share: &Share| share.high_95 - share.share;
        let low_95 = difference - below(&b.share).hypot(above(&a.share));
        let high_95 = difference + above(&b.share).hypot(below(&a.share));
        let differs = low_95 > 0.0 || high_95 < 0.0;
        OfFunction {
            program: program.clone(),
            function: function.clone(),
            a,
            b,
            difference,
            low_95,
            high_95,
            verdict: if differs { Verdict::Differs } else { Verdict::Within },
        }
    }

    /// The numbers of the function's row.
    fn head(&self, has_programs: bool) -> String {
        let percent = |share: f64| 100.0 * share;
        let mark = if self.verdict == Verdict::Differs { "*" } else { " " };
        let [a, b] = [&self.a, &self.b].map(|of| of.share.percent());
        let interval = format!("{:+.1} – {:+.1}%", percent(self.low_95), percent(self.high_95));
        let program = if has_programs {
            format!("{:<PROGRAM_COLUMNS$.PROGRAM_COLUMNS$}  ", self.program)
        } else {
            String::new()
        };
        format!("{a} {b} {:>+7.2}% {interval:>16}{mark} {program}", percent(self.difference))
    }
}

impl fmt::Display for TraceDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "A: {}\nB: {}", self.a, self.b)?;
        for of in &self.events {
            writeln!(f)?;
            for (name, side) in [("A", of.a), ("B", of.b)] {
                let (samples, events) = (samples_of(side.samples), Grouped(side.events));
                writeln!(f, "# {name}: {samples} of {}, for {events} events", of.event)?;
            }
            let has_programs = of.functions.iter().any(|of| !of.program.is_empty());
            let program = if has_programs { "Command     " } else { "" };
            writeln!(f, "       A        B      B-A    95 % interval  {program}Symbol")?;
            let heads: Vec<String> = of.functions.iter().map(|of| of.head(has_programs)).collect();
            let longest = heads.iter().map(|head| head.chars().count()).max().unwrap_or_default();
            let names: Vec<&str> = of.functions.iter().map(|of| of.function.as_str()).collect();
            let names = short_functions(&names, COLUMNS.saturating_sub(longest));
            for (head, name) in heads.iter().zip(names) {
                writeln!(f, "{}", format!("{head}{name}").trim_end())?;
            }
            let (differ, all) = (of.differ(), of.functions.len());
            writeln!(f, "{differ} of {all} shares differ by more than the intervals allow: *")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn weight(samples: u64) -> Weight {
        let mut weight = Weight::default();
        (0..samples).for_each(|_| weight.add(1_000));
        weight
    }

    fn trace(functions: &[(&str, &str, u64)]) -> Weights {
        let function = |(program, function, samples): &(&str, &str, u64)| {
            (((*program).to_owned(), (*function).to_owned()), weight(*samples))
        };
        [("cycles".to_owned(), functions.iter().map(function).collect())].into()
    }

    fn diff(a: &[(&str, &str, u64)], b: &[(&str, &str, u64)]) -> TraceDiff {
        let files = ["old.trace", "new.trace"].map(str::to_owned);
        TraceDiff::of(files, &trace(a), &trace(b)).unwrap()
    }

    /// Example (a) of Newcombe's paper, table II: 56 of 70 and 48 of 80 differ by 0.2, with method
    /// 10 by 0.0524 to 0.3339.
    #[test]
    fn the_interval_of_a_difference_is_newcombe_s() {
        let diff = diff(&[("", "f", 48), ("", "g", 32)], &[("", "f", 56), ("", "g", 14)]);
        let of = diff.events[0].functions.iter().find(|of| of.function == "f").unwrap();
        assert!((of.difference - 0.2).abs() < 1e-9, "{of:?}");
        assert!((of.low_95 - 0.0524).abs() < 1e-4 && (of.high_95 - 0.3339).abs() < 1e-4, "{of:?}");
        assert_eq!(of.verdict, Verdict::Differs);
    }

    #[test]
    fn functions_come_by_the_size_of_their_difference() {
        let long = "std::vector<int, std::allocator<int> >::push_back(int const&)";
        let a = [("", "main", 600), ("", long, 390), ("", "gone", 10)];
        let b = [("", "main", 700), ("", long, 290), ("", "fresh", 10)];
        let text = diff(&a, &b).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        expect![[r#"
            A: old.trace
            B: new.trace

            # A: 1,000 samples of cycles, for 1,000,000 events
            # B: 1,000 samples of cycles, for 1,000,000 events
                   A        B      B-A    95 % interval  Symbol
              39.00%   29.00%  -10.00%    -14.1 – -5.9%* std::vector<…>::push_back
              60.00%   70.00%  +10.00%    +5.8 – +14.1%* main
               0.00%    1.00%   +1.00%     +0.4 – +1.8%* fresh
               1.00%    0.00%   -1.00%     -1.8 – -0.4%* gone
            4 of 4 shares differ by more than the intervals allow: *
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn several_programs_are_told_apart() {
        let text = diff(&[("p", "f", 9), ("q", "f", 9)], &[("p", "f", 9), ("q", "f", 8)]);
        let text = text.to_string();
        assert!(text.contains("Command     Symbol") && text.contains(" q           f"), "{text}");
        assert!(text.contains("0 of 2 shares differ"), "{text}");
    }

    #[test]
    fn functions_whose_short_names_are_alike_are_told_apart() {
        let name =
            |argument: &str| format!("double fold<Matrix<double, {argument}, 8>>(int, long)");
        let [first, second] = ["true", "false"].map(name);
        let all = [("", first.as_str(), 9), ("", second.as_str(), 9)];
        let text = diff(&all, &all).to_string();
        let row = |argument| text.lines().filter(|line| line.contains(argument)).count();
        assert_eq!((row("true"), row("false")), (1, 1), "{text}");
    }

    #[test]
    fn traces_without_a_common_event_are_refused() {
        let other = [("misses".to_owned(), BTreeMap::new())].into();
        let files = ["a", "b"].map(str::to_owned);
        let refused = TraceDiff::of(files, &trace(&[("", "f", 1)]), &other).unwrap_err();
        assert!(refused.message.starts_with("a has samples of cycles, b of misses"), "{refused}");
    }
}
