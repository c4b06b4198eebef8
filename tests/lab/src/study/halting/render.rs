//! The study's tables: the paper's three, and the classes of every event.

use std::collections::BTreeMap;

use tally_abi::text::{Grouped, percent};

use super::{
    experiment::{LINES, Varied},
    identity,
    paper::{BY_FREQUENCY, FINDINGS, Finding},
    results::{EventResult, HaltingStudy, LineResult},
    statistics::{Class, largest},
    traced,
};
use crate::median::median;

/// Renders Tables I and II: the experiments; III: the paper's events with ours; then every event.
pub(super) fn render(study: &HaltingStudy) -> String {
    let mut text = String::new();
    if !study.programs.is_empty() {
        text += &conditions(study);
        text += &findings(study);
        for varied in [Varied::Length, Varied::Frequency] {
            text += &classes(study, varied);
        }
    }
    if !study.same_places.is_empty() {
        text += &identity::render(&study.same_places);
    }
    text + &traced::render(&study.traced)
}

/// Tables I and II of the paper, in cycles.
fn conditions(study: &HaltingStudy) -> String {
    let mut text = format!(
        "Tables I and II: {} programs, {} seeds; a second of the paper's is {} cycles; footprint {} \
         bytes\n",
        study.programs.len(),
        study.seeds,
        Grouped(study.scale.second_cycles),
        study.scale.footprint_bytes
    );
    for line in &LINES {
        let halts = study.scale.halts(line);
        let list = |of: fn(&tally_abi::halt::Halts) -> u64| {
            halts.iter().map(|halts| Grouped(of(halts)).to_string()).collect::<Vec<_>>().join("  ")
        };
        text += &match line.varied {
            Varied::Length => format!(
                "every {:>9} cycles, for  {}\n",
                Grouped(halts[0].period_cycles).to_string(),
                list(|halts| halts.length_cycles)
            ),
            Varied::Frequency => format!(
                "for   {:>9} cycles, every {}\n",
                Grouped(halts[0].length_cycles).to_string(),
                list(|halts| halts.period_cycles)
            ),
        };
    }
    text
}

/// The lines of all programs in which this quantity is varied.
fn lines(study: &HaltingStudy, varied: Varied) -> impl Iterator<Item = &LineResult> {
    let all = study.programs.iter().flat_map(|program| &program.lines);
    all.filter(move |line| line.varied == varied)
}

/// The results of an event in these lines.
fn results<'a>(study: &'a HaltingStudy, varied: Varied, event: &str) -> Vec<&'a EventResult> {
    let of = |line: &'a LineResult| line.events.iter().find(|it| it.event == event);
    lines(study, varied).filter_map(of).collect()
}

/// The number of results of each class, as `none/step/linear/saturating`.
fn tally(results: &[&EventResult]) -> String {
    let count = |class: &Class| results.iter().filter(|it| it.class == *class).count();
    Class::ALL.map(|class| format!("{:>3}", count(&class))).concat()
}

/// The differences of the conditions, relative to the unhalted count.
fn relative(results: &[&EventResult]) -> impl Iterator<Item = f64> {
    let of = |result: &&EventResult| {
        let unhalted = result.unhalted;
        result.points.iter().map(move |point| point.difference.mean / unhalted).collect::<Vec<_>>()
    };
    results.iter().flat_map(of)
}

/// The longest period with a clear difference, in seconds of the paper.
fn threshold(study: &HaltingStudy, results: &[&EventResult]) -> Option<f64> {
    let affected = results.iter().filter(|result| result.class != Class::None);
    let clear = affected.flat_map(|result| &result.points).filter(|it| it.difference.is_clear());
    let longest = clear.map(|point| point.period_cycles).max()?;
    Some(longest as f64 / study.scale.second_cycles as f64)
}

/// Table III of the paper: its events, its findings and ours.
fn findings(study: &HaltingStudy) -> String {
    let vendor = usize::from(study.pmu.starts_with("zen"));
    let mut text = format!(
        "{:<35}{:<9}{:<48}{:>12}{:>9}  {:<9}{:>12}{:>9}{:>7}\n",
        "Table III: event of the paper",
        "by length",
        "  ours",
        "n  s  l  sat",
        "most",
        "by freq.",
        "n  s  l  sat",
        "most",
        "below"
    );
    for Finding { name, ours, by_length } in &FINDINGS {
        let event = ours[vendor];
        text += &format!("{name:<35}{by_length:<9}  ");
        if event.is_empty() {
            text += &format!("{:<46}\n", "no such event");
            continue;
        }
        let [length, frequency] =
            [Varied::Length, Varied::Frequency].map(|varied| results(study, varied, event));
        let most = |results: &[&EventResult]| {
            largest(relative(results)).map_or_else(|| "-".into(), |share| percent(share, true))
        };
        let below = threshold(study, &frequency);
        text += &format!(
            "{event:<46}{:>12}{:>9}  {BY_FREQUENCY:<9}{:>12}{:>9}{:>7}\n",
            tally(&length),
            most(&length),
            tally(&frequency),
            most(&frequency),
            below.map_or_else(|| "-".into(), |seconds| format!("{seconds} s")),
        );
    }
    text + "n s l sat: programs and lines without effect, with a step, linear, saturating; below: the \
            longest period with an effect, in seconds of the paper's\n"
}

/// Every event with its classes, the most affected first; those without effect share one line.
fn classes(study: &HaltingStudy, varied: Varied) -> String {
    let (what, per) = match varied {
        Varied::Length => ("length", "per 1,000 cycles"),
        Varied::Frequency => ("frequency", "per halt"),
    };
    let unit = if varied == Varied::Length { 1_000.0 } else { 1.0 };
    let mut by_event: BTreeMap<&str, Vec<&EventResult>> = BTreeMap::new();
    for result in lines(study, varied).flat_map(|line| &line.events) {
        by_event.entry(&result.event).or_default().push(result);
    }
    let affected = |results: &[&EventResult]| {
        results.iter().filter(|result| result.class != Class::None).count()
    };
    let all = by_event.len();
    let mut rows: Vec<_> = by_event.into_iter().filter(|(_, it)| affected(it) > 0).collect();
    rows.sort_by_key(|(_, results)| std::cmp::Reverse(affected(results)));
    let mut text = format!(
        "{:<54}{:>12}{:>9}{:>26}\n",
        format!("by {what}: event"),
        "n  s  l  sat",
        "most",
        format!("median {per}")
    );
    for (event, results) in &rows {
        let most =
            largest(relative(results)).map_or_else(|| "-".into(), |share| percent(share, true));
        let slopes = results.iter().map(|result| unit * result.effect.slope.mean);
        let median = median(slopes.collect()).unwrap_or_default();
        text += &format!("{event:<54}{:>12}{most:>9}{median:>26.3}\n", tally(results));
    }
    text + &format!("without effect in every program: {} of {all} events\n", all - rows.len())
}
