//! Table 3: whether stalls remain at the same instructions if instructions retire one by one, or in
//! order (paper 000, section 6.3). It compares the truth in four modes, aligned by instructions.

use serde::Serialize;
use tally_abi::ExitStatus;
use xtask::{Failure, Result};

use super::{
    distance,
    grid::{Cell, Grid, Row},
    paper::{Charging, PaperCause, TABLE_3},
};
use crate::study::timed::{self, Machines, Program, Recorded};

/// The pipeline's modes. The paper's processor retires bundles of five instructions; today's
/// processors retire instructions individually.
const MODES: [&str; 4] = ["bundles:5", "real", "single", "inorder"];
const BUNDLES: usize = 0;
const REAL: usize = 1;
/// Indices of the modes that are compared with the first two.
const RESTRICTED: [usize; 2] = [2, 3];
/// Rows of the series in an interval, whose bounds lie between rows.
const ROWS_OF_AN_INTERVAL: u64 = 10;
/// The fewest intervals for a meaningful distance.
const FEWEST_INTERVALS: u64 = 4;

/// Stalls over time.
struct Stalls {
    instructions: u64,
    /// Cycles by method of charging, cause and interval.
    causes: [Vec<Vec<u64>>; 2],
}

/// Table 3.
#[derive(Clone, Debug, Serialize)]
pub(super) struct StallStudy {
    /// Instructions of an interval.
    pub(super) interval_instructions: u64,
    /// Distances of one instruction at a time from bundles.
    pub(super) single: Grid,
    /// Distances of instructions in order from bundles.
    pub(super) inorder: Grid,
    /// Distances of one instruction at a time from individual retirement.
    pub(super) single_from_real: Grid,
    /// Distances of instructions in order from individual retirement.
    pub(super) inorder_from_real: Grid,
    /// Distances of one instruction at a time from individual retirement, of stalls charged to
    /// steps.
    pub(super) single_by_steps: Grid,
    /// Distances of instructions in order from individual retirement, of stalls charged to steps.
    pub(super) inorder_by_steps: Grid,
}

/// Runs each program in each mode.
///
/// # Errors
/// A machine fails, a program is too short, or it executes other instructions in another mode.
pub(super) fn run(
    machines: &Machines,
    programs: &[Program],
    interval_instructions: u64,
    seed: u64,
) -> Result<StallStudy> {
    let runs = machines.each("machines for Table 3", programs.len() * MODES.len(), |number| {
        let (program, mode) = (&programs[number / MODES.len()], MODES[number % MODES.len()]);
        stalls(machines, program, mode, interval_instructions, seed)
    })?;
    let by_program: Vec<&[Stalls]> = runs.chunks(MODES.len()).collect();
    by_program.iter().zip(programs).try_for_each(|(runs, program)| check_aligned(program, runs))?;
    let grid = |charging: usize, from: usize, mode: usize| {
        let of = |runs: &[Stalls], cause: usize| {
            let [from, other] = [from, mode].map(|mode| &runs[mode].causes[charging][cause]);
            cell(from, other, runs[0].instructions)
        };
        let row = |(index, cause): (usize, &PaperCause)| Row {
            name: cause.name.to_owned(),
            cells: by_program.iter().map(|runs| of(runs, index)).collect(),
        };
        Grid {
            programs: programs.iter().map(|program| program.name.clone()).collect(),
            rows: TABLE_3.iter().enumerate().map(row).collect(),
        }
    };
    let [single, inorder] = RESTRICTED.map(|mode| grid(0, BUNDLES, mode));
    let [single_from_real, inorder_from_real] = RESTRICTED.map(|mode| grid(0, REAL, mode));
    let [single_by_steps, inorder_by_steps] = RESTRICTED.map(|mode| grid(1, REAL, mode));
    Ok(StallStudy {
        interval_instructions,
        single,
        inorder,
        single_from_real,
        inorder_from_real,
        single_by_steps,
        inorder_by_steps,
    })
}

/// Checks that a program executed the same number of instructions in each mode.
fn check_aligned(program: &Program, runs: &[Stalls]) -> Result<()> {
    let first = runs[0].instructions;
    let Some(other) = runs.iter().find(|run| run.instructions != first) else { return Ok(()) };
    let why = format!(
        "{} executes {first} instructions in one mode and {} in another: intervals are not aligned",
        program.name, other.instructions
    );
    Err(Failure::new(ExitStatus::CheckFailed, why))
}

fn stalls(
    machines: &Machines,
    program: &Program,
    mode: &str,
    interval_instructions: u64,
    seed: u64,
) -> Result<Stalls> {
    let row_instructions = interval_instructions / ROWS_OF_AN_INTERVAL;
    let recorded = Recorded {
        clock: "Instructions",
        vpmu: vec![
            "pipeline=ooo".into(),
            format!("mode={mode}"),
            "columns=signals".into(),
            format!("every={row_instructions}i"),
        ],
        beside: Vec::new(),
    };
    let series = machines.run(&timed::plain_job(seed), &program.command, &recorded)?.series;
    let intervals = series.end() / interval_instructions;
    if intervals < FEWEST_INTERVALS {
        let why = format!(
            "{}: {intervals} intervals of {interval_instructions} instructions, and \
             {FEWEST_INTERVALS} are needed: use more --instructions",
            program.name
        );
        return Err(Failure::new(ExitStatus::TooShort, why));
    }
    let cycles = |charging, cause: &PaperCause, interval: u64| {
        let from = interval * interval_instructions;
        let of = |column: String| series.between(&column, from, from + interval_instructions);
        cause.columns(charging).map(of).sum::<Option<u64>>()
    };
    let over_time = |charging, cause: &PaperCause| -> Option<Vec<u64>> {
        (0..intervals).map(|interval| cycles(charging, cause, interval)).collect()
    };
    let causes = |charging| -> Result<Vec<Vec<u64>>> {
        let all: Option<_> = TABLE_3.iter().map(|cause| over_time(charging, cause)).collect();
        all.ok_or_else(|| {
            let why = "the virtual PMU's series lacks a cause of stalls";
            Failure::new(ExitStatus::CheckFailed, why)
        })
    };
    let causes = [causes(Charging::Resumption)?, causes(Charging::Steps)?];
    Ok(Stalls { instructions: series.end(), causes })
}

/// The distance of a cause's stalls in another mode from those in `from`, by interval, for a run of
/// `instructions` instructions.
fn cell(from: &[u64], other: &[u64], instructions: u64) -> Cell {
    let other: Vec<f64> = other.iter().map(|cycles| *cycles as f64).collect();
    let distance = distance::is_significant(from.iter().sum(), instructions)
        .then(|| distance::of_estimates(from, &other))
        .flatten();
    Cell { distance, is_frequent: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rare_cause_has_no_distance_and_a_cause_that_moved_has_one() {
        let of = |real: &[u64], other: &[u64]| cell(real, other, 1_000_000).distance;
        assert_eq!(of(&[99, 0], &[0, 99]), None);
        assert_eq!(of(&[500, 500], &[5_000, 5_000]), Some(0.0));
        let moved = of(&[500, 500], &[900, 100]);
        assert!(moved > Some(0.5), "{moved:?}");
    }
}
