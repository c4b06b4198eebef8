//! The results: errors of profiles by instruction, and the goal.

use serde::Serialize;
use tally_model::Rule;

use super::oracle::{Oracle, Profile};

/// The goal: corrected samples have at most this share of the error of precise ones.
pub(super) const GOAL: f64 = 0.5;

/// Errors of a program's profiles on a machine: shares of time at the wrong instruction.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) program: String,
    pub(super) profile: &'static str,
    /// Number of precise samples of cycles.
    pub(super) samples: u64,
    /// Samples at the interrupt.
    pub(super) late: f64,
    /// Precise samples.
    pub(super) precise: f64,
    /// Precise samples, those behind a mispredicted branch at the branch.
    pub(super) branches: f64,
    /// Samples with branches and executions: what `annotate` prints.
    pub(super) exposed: f64,
    /// The mean error of as many samples without bias.
    pub(super) sampling: f64,
    /// Errors of samplers of every cycle.
    pub(super) next_to_retire: f64,
    pub(super) last_retired: f64,
    pub(super) dispatched: f64,
}

impl Row {
    /// Compares profiles, in the order of the fields.
    pub(super) fn of(
        program: &str,
        profile: &'static str,
        samples: u64,
        oracle: &Oracle,
        profiles: &[Profile; 4],
    ) -> Row {
        let truth = oracle.exposed();
        let [late, precise, branches, exposed] = [0, 1, 2, 3].map(|it| profiles[it].error(truth));
        let rule = |rule| oracle.of(rule).error(truth);
        Row {
            program: program.to_owned(),
            profile,
            samples,
            late,
            precise,
            branches,
            exposed,
            sampling: truth.sampling_error(samples),
            next_to_retire: rule(Rule::NextToRetire),
            last_retired: rule(Rule::LastRetired),
            dispatched: rule(Rule::Dispatched),
        }
    }
}

/// The study's result.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PreciseStudy {
    pub(super) rows: Vec<Row>,
    /// Means of the rows of each machine.
    pub(super) means: Vec<Row>,
    /// Whether each mean of `exposed` is within the goal.
    pub(super) holds: bool,
}

impl PreciseStudy {
    /// Judges the rows, which are in the order of their machines.
    pub(super) fn of(rows: Vec<Row>) -> PreciseStudy {
        let machines = rows.chunk_by(|one, other| one.profile == other.profile);
        let means: Vec<Row> = machines.map(mean).collect();
        let holds = means.iter().all(|mean| mean.exposed <= GOAL * mean.precise);
        PreciseStudy { rows, means, holds }
    }
}

/// The means of a machine's rows.
fn mean(rows: &[Row]) -> Row {
    let mean = |of: fn(&Row) -> f64| rows.iter().map(of).sum::<f64>() / rows.len() as f64;
    Row {
        program: "mean".to_owned(),
        profile: rows.first().map_or("", |row| row.profile),
        samples: rows.iter().map(|row| row.samples).sum::<u64>() / rows.len().max(1) as u64,
        late: mean(|row| row.late),
        precise: mean(|row| row.precise),
        branches: mean(|row| row.branches),
        exposed: mean(|row| row.exposed),
        sampling: mean(|row| row.sampling),
        next_to_retire: mean(|row| row.next_to_retire),
        last_retired: mean(|row| row.last_retired),
        dispatched: mean(|row| row.dispatched),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn row(precise: f64, exposed: f64) -> Row {
        Row {
            program: "lua".to_owned(),
            profile: "icelake-server",
            samples: 5_000,
            late: 0.7,
            precise,
            branches: precise,
            exposed,
            sampling: 0.05,
            next_to_retire: precise,
            last_retired: 0.5,
            dispatched: 0.6,
        }
    }

    #[test]
    fn the_goal_is_half_of_the_precise_error() {
        assert!(PreciseStudy::of(vec![row(0.4, 0.1), row(0.2, 0.2)]).holds);
        assert!(!PreciseStudy::of(vec![row(0.4, 0.2), row(0.2, 0.2)]).holds);
        let other = Row { profile: "zen4", ..row(0.4, 0.3) };
        let study = PreciseStudy::of(vec![row(0.4, 0.1), other]);
        assert!(!study.holds && study.means.len() == 2);
    }
}
