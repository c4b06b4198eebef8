//! The results: cycles of both pipelines, errors, and the goal.

use std::collections::BTreeMap;

use serde::Serialize;
use tally_abi::truth::Region;
use xtask::{
    Result,
    build::programs::benchmarks::Kind,
    shadows::{cycles, instructions, wrong},
};

/// The largest mean of absolute errors (issue 16).
pub(super) const MEAN: f64 = 0.10;
/// The largest absolute error of a program (issue 16).
pub(super) const LARGEST: f64 = 0.25;
/// Prefix of the names of stall causes.
const CAUSE: &str = "tally.stall.";

/// A program of the study.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Whether pipeline `interval` may be tuned with the program; the others judge.
    pub(super) tunes: bool,
    pub(super) command: Vec<String>,
}

/// Result of a pipeline, in ring 3.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Cycles {
    pub(super) instructions: u64,
    pub(super) cycles: u64,
    /// Cycles without retirement, by cause.
    pub(super) causes: BTreeMap<String, u64>,
}

impl Cycles {
    /// Reads the cycles from a region of the truth.
    ///
    /// # Errors
    /// The truth lacks an event.
    pub(super) fn of(region: &Region) -> Result<Cycles> {
        let causes = region
            .events
            .iter()
            .filter_map(|(name, count)| Some((name.strip_prefix(CAUSE)?.to_owned(), count.user)));
        let (instructions, cycles) = (instructions(region)?, cycles(region)?);
        Ok(Cycles { instructions, cycles, causes: causes.collect() })
    }
}

/// A program on one vendor's machine.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) program: String,
    pub(super) kind: Kind,
    /// Whether `interval` may be tuned with the program.
    pub(super) tunes: bool,
    pub(super) profile: &'static str,
    pub(super) interval: Cycles,
    pub(super) ooo: Cycles,
    /// The error of `interval`'s cycles, relative to those of `ooo`.
    pub(super) error: f64,
}

impl Row {
    /// # Errors
    /// The pipelines executed different instructions, or none.
    pub(super) fn of(
        program: &Program,
        profile: &'static str,
        interval: Cycles,
        ooo: Cycles,
    ) -> Result<Row> {
        let Program { name, kind, tunes, .. } = program;
        if interval.instructions != ooo.instructions || ooo.cycles == 0 {
            return Err(wrong(format!("{name} ran differently on the pipelines of {profile}")));
        }
        let error = interval.cycles as f64 / ooo.cycles as f64 - 1.0;
        let (program, kind, tunes) = (name.clone(), *kind, *tunes);
        Ok(Row { program, kind, tunes, profile, interval, ooo, error })
    }
}

/// Absolute errors of some rows.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Errors {
    pub(super) rows: usize,
    pub(super) mean: f64,
    pub(super) largest: f64,
    /// The program and the profile with the largest error.
    pub(super) of: String,
}

impl Errors {
    /// Computes the errors; `None` without rows.
    fn of(rows: &[&Row]) -> Option<Errors> {
        let sum: f64 = rows.iter().map(|row| row.error.abs()).sum();
        let worst = rows.iter().max_by(|a, b| a.error.abs().total_cmp(&b.error.abs()))?;
        Some(Errors {
            rows: rows.len(),
            mean: sum / rows.len() as f64,
            largest: worst.error.abs(),
            of: format!("{} on {}", worst.program, worst.profile),
        })
    }

    fn are_within(&self) -> bool {
        self.mean <= MEAN && self.largest <= LARGEST
    }
}

/// The study's result.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PipelinesStudy {
    pub(super) rows: Vec<Row>,
    /// Errors of the programs with which `interval` may be tuned, and of those that judge.
    pub(super) tuning: Option<Errors>,
    pub(super) judging: Option<Errors>,
    pub(super) all: Option<Errors>,
    /// Whether all errors together, and those of the programs that judge, are within the goal.
    pub(super) holds: bool,
}

impl PipelinesStudy {
    pub(super) fn of(rows: Vec<Row>) -> PipelinesStudy {
        let of = |is_wanted: fn(&Row) -> bool| {
            let wanted: Vec<&Row> = rows.iter().filter(|row| is_wanted(row)).collect();
            Errors::of(&wanted)
        };
        let (tuning, judging, all) = (of(|row| row.tunes), of(|row| !row.tunes), of(|_| true));
        let holds = [&judging, &all].into_iter().flatten().all(Errors::are_within);
        PipelinesStudy { tuning, judging, all, holds, rows }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn cycles_of(cycles: u64, chain: u64) -> Cycles {
        let causes = BTreeMap::from([("chain".to_owned(), chain)]);
        Cycles { instructions: 1_000, cycles, causes }
    }

    pub(in super::super) fn row(name: &str, tunes: bool, interval: u64, ooo: u64) -> Row {
        let program =
            Program { name: name.to_owned(), kind: Kind::Integer, tunes, command: Vec::new() };
        Row::of(&program, "zen4", cycles_of(interval, interval / 2), cycles_of(ooo, 0)).unwrap()
    }

    #[test]
    fn the_goal_is_of_the_mean_and_of_the_largest() {
        let good = PipelinesStudy::of(vec![row("a", true, 900, 1_000), row("b", false, 1, 1)]);
        assert!(good.holds);
        let all = good.all.unwrap();
        assert!((all.mean - 0.05).abs() < 1e-9 && (all.largest - 0.1).abs() < 1e-9, "{all:?}");
        assert_eq!(all.of, "a on zen4");
        // The mean is within the goal, the largest is not.
        let rows = (0..9).map(|_| row("b", false, 1, 1)).chain([row("a", false, 73, 100)]);
        assert!(!PipelinesStudy::of(rows.collect()).holds);
        // The largest is within the goal, the mean is not.
        let rows = vec![row("a", false, 120, 100), row("b", false, 85, 100)];
        assert!(!PipelinesStudy::of(rows).holds);
        // Programs that tune do not compensate for those that judge.
        let rows = (0..9).map(|_| row("b", true, 1, 1)).chain([row("a", false, 115, 100)]);
        assert!(!PipelinesStudy::of(rows.collect()).holds);
    }

    #[test]
    fn programs_that_ran_differently_are_not_compared() {
        let program =
            Program { name: "a".into(), kind: Kind::Integer, tunes: true, command: Vec::new() };
        let other = Cycles { instructions: 999, ..cycles_of(1, 0) };
        assert!(Row::of(&program, "zen3", cycles_of(1, 0), other).is_err());
    }
}
