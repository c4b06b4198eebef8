//! The study's results, in the form of the JSON object.

use serde::Serialize;

use super::{
    distance::Sample,
    grid::{Cell, Grid, Row},
    over_time::OverTimeStudy,
    paper::{PaperEvent, TABLE_2},
    sampled::{Estimated, OverTime, SampledRun, Sampling},
    stalls::StallStudy,
    sweep::Sweep,
};
use crate::study::overhead;

/// The events of Figure 5, as indices in Table 2.
pub(super) const FIGURE_5: [usize; 2] = [0, 3];

/// Rounds of an interval with short slices.
const SHORT: usize = 10;

/// The parts of the study that were run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Results {
    /// The processor.
    pub(super) pmu: &'static str,
    /// Requested instructions of each program, in user mode.
    pub(super) instructions: u64,
    /// The programs of the tables.
    pub(super) programs: Vec<ProgramResult>,
    /// The seeds of Table 2; the other parts have the first.
    pub(super) seeds: [u64; 2],
    /// Length of a slice in cycles.
    pub(super) slice_cycles: u64,
    /// Slices of a round.
    pub(super) ratio: usize,
    /// The pipeline of all parts except Table 3, which uses the one that distinguishes causes.
    pub(super) pipeline: &'static str,
    /// Table 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) table_2: Option<Table2>,
    /// Figure 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) figure_5: Option<Figure5>,
    /// Figure 6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) figure_6: Option<Sweep>,
    /// Figure 7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) figure_7: Option<OverTimeStudy>,
    /// Table 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) table_3: Option<StallStudy>,
    /// Table 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) table_4: Option<Vec<overhead::Machine>>,
}

/// Table 2.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Table2 {
    /// With linear scaling.
    pub(super) scaled: Grid,
    /// With predictions.
    pub(super) predicted: Grid,
    /// With linear scaling, and slices of a tenth.
    pub(super) short_scaled: Grid,
    /// With predictions, and slices of a tenth.
    pub(super) short_predicted: Grid,
    /// Cycles of the overflow handlers per cycle of the session, 0 to 1: the least and the most of
    /// the runs with long and with short slices.
    pub(super) handlers: [[f64; 2]; 2],
}

/// A program.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ProgramResult {
    /// Name of the program.
    pub(super) name: String,
    /// Command of the program.
    pub(super) command: String,
    /// Instructions of the program in Table 2's first run; `None` without that run.
    pub(super) instructions: Option<u64>,
    /// Rounds of the program in that run.
    pub(super) rounds: Option<usize>,
}

/// Figure 5: two events of a program, by round.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figure5 {
    /// The program.
    pub(super) program: String,
    /// Core cycles of the session from its start to the middle of each round.
    pub(super) middle_cycles: Vec<u64>,
    /// Two events.
    pub(super) events: Vec<RateOverTime>,
}

/// An event's rate by round.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RateOverTime {
    /// Name of the event.
    pub(super) name: &'static str,
    /// Events per cycle by the full count.
    pub(super) full: Vec<f64>,
    /// Events per cycle of the round's sampled slice.
    pub(super) sampled: Vec<f64>,
    /// Events per cycle with predictions.
    pub(super) predicted: Vec<f64>,
}

impl Table2 {
    /// Makes the table from the runs of each program, one for each seed, and those with short
    /// slices.
    pub(super) fn of(
        programs: &[ProgramResult],
        runs: &[&[SampledRun]],
        short: &[&[SampledRun]],
    ) -> Table2 {
        Table2 {
            scaled: grid(programs, runs, Estimated::Scaled),
            predicted: grid(programs, runs, Estimated::Predicted),
            short_scaled: grid(programs, short, Estimated::Scaled),
            short_predicted: grid(programs, short, Estimated::Predicted),
            handlers: [runs, short].map(|runs| {
                let shares = || runs.iter().copied().flatten().map(|run| run.handlers);
                [shares().fold(1.0, f64::min), shares().fold(0.0, f64::max)]
            }),
        }
    }
}

fn grid(programs: &[ProgramResult], runs: &[&[SampledRun]], how: Estimated) -> Grid {
    let row = |(index, event): (usize, &PaperEvent)| Row {
        name: event.name.to_owned(),
        cells: runs.iter().map(|runs| mean(runs.iter().map(|run| run.cell(index, how)))).collect(),
    };
    Grid {
        programs: programs.iter().map(|program| program.name.clone()).collect(),
        rows: TABLE_2.iter().enumerate().map(row).collect(),
    }
}

/// The mean of the significant cells; frequent if all are.
fn mean(cells: impl Iterator<Item = Cell>) -> Cell {
    let cells: Vec<Cell> = cells.collect();
    let known: Vec<f64> = cells.iter().filter_map(|cell| cell.distance).collect();
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    Cell {
        distance: (!known.is_empty()).then_some(mean),
        is_frequent: cells.iter().all(|cell| cell.is_frequent),
    }
}

impl Figure5 {
    /// Makes the figure from a program's run.
    pub(super) fn of(program: &str, run: &SampledRun) -> Figure5 {
        let rate = |event: usize| {
            let OverTime { full, sampled, predicted } = &run.events[event];
            let whole = || run.intervals.iter().map(|(_, cycles)| *cycles as f64);
            let of = |sample: &Sample| sample.scaled() / sample.whole.max(1) as f64;
            RateOverTime {
                name: TABLE_2[event].name,
                full: full.iter().zip(whole()).map(|(full, all)| *full as f64 / all).collect(),
                sampled: sampled.iter().map(of).collect(),
                predicted: predicted.iter().zip(whole()).map(|(count, all)| count / all).collect(),
            }
        };
        Figure5 {
            program: program.to_owned(),
            middle_cycles: run.intervals.iter().map(|(start, cycles)| start + cycles / 2).collect(),
            events: FIGURE_5.iter().map(|event| rate(*event)).collect(),
        }
    }
}

impl Results {
    /// Parameters of sampling.
    pub(super) fn sampling(&self) -> Sampling {
        let Results { slice_cycles, ratio, pipeline, .. } = *self;
        Sampling { slice_cycles, ratio, rounds: 1, pipeline }
    }

    /// Parameters for intervals of as many cycles, with slices of a tenth.
    pub(super) fn short_sampling(&self) -> Sampling {
        let sampling = self.sampling();
        Sampling { slice_cycles: sampling.slice_cycles / SHORT as u64, rounds: SHORT, ..sampling }
    }
}
