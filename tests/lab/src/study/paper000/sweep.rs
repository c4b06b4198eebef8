//! Figure 6: distances over the length of slices, and over the number of groups.

use serde::Serialize;
use tally_abi::ExitStatus;
use xtask::{Failure, Result};

use super::{
    paper::TABLE_2,
    sampled::{self, Estimated, EventList, SampledRun, Sampling},
};
use crate::study::timed::{Machines, Program};

/// The figure's events, as indices in Table 2.
pub(super) const EVENTS: [usize; 3] = [3, 6, 8];
/// Lengths of slices, in percent of Table 2's, with Table 2's ratio.
const LENGTHS: [u64; 5] = [25, 50, 100, 250, 500];
/// Ratios, at the last but one of the lengths: the paper's 500,000 cycles.
const RATIOS: [usize; 5] = [2, 5, 10, 15, 20];

/// A run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Point {
    /// Length of a slice in cycles.
    pub(super) slice_cycles: u64,
    /// Slices of a round.
    pub(super) ratio: usize,
    /// The distances of the figure's events in bits, with linear scaling; `None` if an event is not
    /// significant. Empty if the program has too few such rounds.
    pub(super) scaled: Vec<Option<f64>>,
    /// The distances with predictions.
    pub(super) predicted: Vec<Option<f64>>,
}

/// Figure 6.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sweep {
    /// The program.
    pub(super) program: String,
    /// The names of the events.
    pub(super) events: [&'static str; 3],
    /// Points over the length of slices.
    pub(super) lengths: Vec<Point>,
    /// Points over the ratio.
    pub(super) ratios: Vec<Point>,
}

/// Runs the program at each point.
///
/// # Errors
/// A machine fails.
pub(super) fn run(
    machines: &Machines,
    base: Sampling,
    program: &Program,
    seed: u64,
) -> Result<Sweep> {
    let length = |percent: u64| base.slice_cycles * percent / 100;
    let of_lengths = LENGTHS.map(|percent| (length(percent), base.ratio));
    let of_ratios = RATIOS.map(|ratio| (length(LENGTHS[3]), ratio));
    let all: Vec<(u64, usize)> = of_lengths.into_iter().chain(of_ratios).collect();
    let points = machines.each("machines for Figure 6", all.len(), |number| {
        let (slice_cycles, ratio) = all[number];
        point(machines, Sampling { slice_cycles, ratio, ..base }, program, seed)
    })?;
    let (lengths, ratios) = points.split_at(LENGTHS.len());
    Ok(Sweep {
        program: program.name.clone(),
        events: EVENTS.map(|event| TABLE_2[event].name),
        lengths: lengths.to_vec(),
        ratios: ratios.to_vec(),
    })
}

fn point(machines: &Machines, sampling: Sampling, program: &Program, seed: u64) -> Result<Point> {
    let list = EventList::of(machines.pmu, sampling.ratio)?;
    let Sampling { slice_cycles, ratio, .. } = sampling;
    let run = match sampled::run(machines, &list, sampling, program, seed) {
        Ok(run) => Some(run),
        Err(Failure { status: ExitStatus::TooShort, .. }) => None,
        Err(other) => return Err(other),
    };
    let distances = |how: Estimated| {
        let of = |run: &SampledRun| EVENTS.map(|event| run.cell(event, how).distance).to_vec();
        run.as_ref().map(of).unwrap_or_default()
    };
    let [scaled, predicted] = [Estimated::Scaled, Estimated::Predicted].map(distances);
    Ok(Point { slice_cycles, ratio, scaled, predicted })
}
