//! The results of the study, and their computation from runs.

use serde::Serialize;
use tally_abi::halt::Halts;

use super::{
    experiment::{Counted, Line, Scale, Varied},
    identity::Compared,
    statistics::{Class, Effect, Mean, classify},
    traced::Traced,
};

/// The runs of a condition compared with the unhalted ones of the same seeds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Point {
    pub(super) length_cycles: u64,
    pub(super) period_cycles: u64,
    /// The mean number of halts per run.
    pub(super) halts: f64,
    /// The mean difference, in events.
    pub(super) difference: Mean,
}

/// Result of a line of the experiment for an event of a program.
#[derive(Clone, Debug, Serialize)]
pub(super) struct EventResult {
    pub(super) event: String,
    /// The mean count of unhalted runs.
    pub(super) unhalted: f64,
    pub(super) points: Vec<Point>,
    pub(super) effect: Effect,
    pub(super) class: Class,
}

/// A line of the experiment.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LineResult {
    pub(super) varied: Varied,
    /// The constant period in cycles, if lengths are varied; otherwise the constant length.
    pub(super) held_cycles: u64,
    pub(super) events: Vec<EventResult>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct ProgramResult {
    pub(super) program: String,
    pub(super) lines: Vec<LineResult>,
}

/// The results.
#[derive(Clone, Debug, Serialize)]
pub(super) struct HaltingStudy {
    pub(super) pmu: &'static str,
    /// The number of seeds, and the first of them.
    pub(super) seeds: usize,
    pub(super) first_seed: u64,
    #[serde(flatten)]
    pub(super) scale: Scale,
    pub(super) programs: Vec<ProgramResult>,
    /// Results of halts at the same places.
    pub(super) same_places: Vec<Compared>,
    /// Results of traces that halt.
    pub(super) traced: Vec<Traced>,
}

/// The runs of a line: for each seed the unhalted run and those of all halts. `places` are the
/// indices of the line's halts among these.
struct Runs<'a> {
    varied: Varied,
    halts: Vec<Halts>,
    places: Vec<usize>,
    by_seed: &'a [&'a [Counted]],
}

impl Runs<'_> {
    /// The mean over the seeds.
    fn mean(&self, of: impl Fn(&[Counted]) -> f64) -> f64 {
        self.by_seed.iter().map(|runs| of(runs)).sum::<f64>() / self.by_seed.len() as f64
    }

    fn effect(&self, event: &str) -> Effect {
        let point = |runs: &[Counted], place: usize| {
            let abscissa = match self.varied {
                Varied::Length => runs[place].mean_cycles,
                Varied::Frequency => runs[place].halts as f64,
            };
            (abscissa, difference(runs, place, event))
        };
        let points = |runs: &&[Counted]| self.places.iter().map(|at| point(runs, *at)).collect();
        Effect::of(&self.by_seed.iter().map(points).collect::<Vec<_>>())
    }

    fn points(&self, event: &str) -> Vec<Point> {
        let point = |(halts, place): (&Halts, &usize)| {
            let differences = self.by_seed.iter().map(|runs| difference(runs, *place, event));
            Point {
                length_cycles: halts.length_cycles,
                period_cycles: halts.period_cycles,
                halts: self.mean(|runs| runs[*place].halts as f64),
                difference: Mean::of(&differences.collect::<Vec<_>>()),
            }
        };
        self.halts.iter().zip(&self.places).map(point).collect()
    }
}

fn count(run: &Counted, event: &str) -> f64 {
    run.events.get(event).copied().unwrap_or_default() as f64
}

/// The events of a run less those of the unhalted run of the same seed, which is the first.
fn difference(runs: &[Counted], place: usize, event: &str) -> f64 {
    count(&runs[place], event) - count(&runs[0], event)
}

/// Compares the runs of a line. The runs of each seed are the unhalted one and those of `all`
/// halts.
pub(super) fn compare(
    line: &Line,
    scale: Scale,
    all: &[Halts],
    by_seed: &[&[Counted]],
) -> LineResult {
    let halts = scale.halts(line);
    let place = |wanted: &Halts| all.iter().position(|halts| halts == wanted);
    let places = halts.iter().filter_map(place).map(|place| place + 1).collect();
    let held_cycles = match line.varied {
        Varied::Length => halts[0].period_cycles,
        Varied::Frequency => halts[0].length_cycles,
    };
    let runs = Runs { varied: line.varied, halts, places, by_seed };
    let names: Vec<&String> = by_seed[0][0].events.keys().collect();
    let effects: Vec<Effect> = names.iter().map(|name| runs.effect(name)).collect();
    let classes = classify(&effects);
    let event = |((name, effect), class): ((&&String, Effect), Class)| EventResult {
        event: (*name).clone(),
        unhalted: runs.mean(|runs| count(&runs[0], name)),
        points: runs.points(name),
        effect,
        class,
    };
    let events = names.iter().zip(effects).zip(classes).map(event).collect();
    LineResult { varied: line.varied, held_cycles, events }
}
