//! The study's results, in the form of the JSON object.

use serde::Serialize;
use tally_model::Assist;
use xtask::build::programs::benchmarks::Kind;

use super::{
    adaptive::{Adaptive, Runs},
    fit::{self, Way},
    interval::Interval,
    judge::{Judged, judge, judge_calibrated},
    phases::{Classified, classified, gain},
    structures::{Cycles, Saved, saved},
    terms::Term,
};

/// Instructions of an interval.
pub(super) const INTERVAL: u64 = 1_000_000;
/// Lengths of Figure 4, in intervals: 1, 10 and 100 million instructions.
pub(super) const LENGTHS: [usize; 3] = [1, 10, 100];
/// Index in [`LENGTHS`] of the length for which the aims are: 10 million instructions.
pub(super) const AIMED: usize = 1;

/// A program and its intervals.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// The program.
    pub(super) name: String,
    /// Command of the program.
    pub(super) command: String,
    /// Kind of arithmetic.
    pub(super) kind: Kind,
    /// Intervals of the run.
    pub(super) intervals: Vec<Interval>,
    /// Runs with perfect structures and with the table, if requested.
    pub(super) structures: Option<Structures>,
}

/// A program's runs with perfect structures and with the table of section VIII.
#[derive(Clone, Debug)]
pub(super) struct Structures {
    /// Cycles with each structure perfect.
    pub(super) cycles: Cycles,
    /// The intervals with each assist.
    pub(super) with: [Vec<Interval>; Assist::ALL.len()],
}

/// Gains by perfect structures and by the table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Worth {
    /// The saving of each structure, with its costs.
    pub(super) saved: Vec<Saved>,
    /// Gains by the table.
    pub(super) table: Adaptive,
}

/// Result of a method of finding penalties for a program.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Modelled {
    /// The method.
    pub(super) way: Way,
    /// The penalties in cycles, in the order of the terms.
    pub(super) penalties: Vec<f64>,
    /// Judgements by length; `None` if the program is shorter.
    pub(super) judged: [Option<Judged>; LENGTHS.len()],
}

/// A program's results.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ProgramResult {
    /// The program.
    pub(super) program: String,
    /// Command of the program.
    pub(super) command: String,
    /// Kind of arithmetic.
    pub(super) kind: Kind,
    /// Number of intervals of a million instructions.
    pub(super) intervals: usize,
    /// The models, in the order of [`Way::ALL`].
    pub(super) models: Vec<Modelled>,
    /// Phases by the hash, by unit.
    pub(super) hash: Vec<Classified>,
    /// Phases by the nearest centroid, by unit.
    pub(super) centroid: Vec<Classified>,
    /// Gains by structures; only with `--structures`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) structures: Option<Worth>,
    /// Gain of centroids; see [`gain`].
    pub(super) gain: Option<f64>,
    /// The costs of each interval in cycles per 1,000 instructions.
    #[serde(skip)]
    pub(super) costs: Vec<Vec<u64>>,
}

/// The study.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Study {
    /// Name of the processor.
    pub(super) pmu: &'static str,
    /// The events of the model.
    pub(super) terms: Vec<Term>,
    /// The programs.
    pub(super) programs: Vec<ProgramResult>,
}

/// Method of the costs that phases are made from: those that a program can count.
const OF_PHASES: Way = Way::Vendor;

impl Study {
    /// Makes the study from runs: each program's penalties are fitted to all others.
    pub(super) fn of(pmu: &'static str, width: u32, terms: Vec<Term>, runs: &[Run]) -> Study {
        let program = |(index, run): (usize, &Run)| {
            let others = runs.iter().enumerate().filter(|(other, _)| *other != index);
            let others: Vec<&[Interval]> = others.map(|(_, run)| &run.intervals[..]).collect();
            ProgramResult::of(width, &terms, run, &others)
        };
        let programs = runs.iter().enumerate().map(program).collect();
        Study { pmu, terms, programs }
    }

    /// The mean over the programs that are long enough, and their number.
    pub(super) fn mean(&self, way: Way, length: usize, of: fn(&Judged) -> f64) -> (f64, usize) {
        self.mean_of(None, way, length, of)
    }

    /// The mean over the programs of a kind that are long enough, and their number.
    pub(super) fn mean_of(
        &self,
        kind: Option<Kind>,
        way: Way,
        length: usize,
        of: fn(&Judged) -> f64,
    ) -> (f64, usize) {
        let judged = |program: &ProgramResult| {
            let model = program.models.iter().find(|model| model.way == way)?;
            model.judged[length].as_ref().map(of)
        };
        let of_kind = |it: &&ProgramResult| kind.is_none_or(|kind| it.kind == kind);
        let all: Vec<f64> = self.programs.iter().filter(of_kind).filter_map(judged).collect();
        (all.iter().sum::<f64>() / all.len().max(1) as f64, all.len())
    }
}

impl ProgramResult {
    fn of(width: u32, terms: &[Term], run: &Run, others: &[&[Interval]]) -> ProgramResult {
        let lengths = LENGTHS.map(|length| Interval::together(&run.intervals, length));
        let modelled = |way: Way| {
            let penalties = way.penalties(width, terms, others);
            let model = fit::model(width, terms, &penalties);
            let judged = |intervals: &Vec<Interval>| match way {
                Way::Calibrated => judge_calibrated(&model, intervals),
                _ => judge(&model, intervals),
            };
            Modelled { way, judged: lengths.each_ref().map(judged), penalties }
        };
        let models = Way::ALL.map(modelled).to_vec();
        let of_phases = &models[OF_PHASES as usize];
        let model = fit::model(width, terms, &of_phases.penalties);
        let [hash, centroid] = classified(&model, &run.intervals);
        let costs = |interval: &Interval| {
            model.vector(&interval.counted()).costs.iter().map(|cost| cost.cycles).collect()
        };
        let worth = |structures: &Structures| {
            let of = |way: Way| fit::model(width, terms, &models[way as usize].penalties);
            let all = Way::ALL.map(of);
            let runs = Runs { without: &run.intervals, with: &structures.with };
            Worth {
                saved: saved(&structures.cycles, &all, &run.intervals),
                table: Adaptive::of(&model, runs, &structures.cycles),
            }
        };
        ProgramResult {
            structures: run.structures.as_ref().map(worth),
            program: run.name.clone(),
            command: run.command.clone(),
            kind: run.kind,
            intervals: run.intervals.len(),
            models,
            gain: gain(&hash, &centroid),
            hash,
            centroid,
            costs: run.intervals.iter().map(costs).collect(),
        }
    }
}
