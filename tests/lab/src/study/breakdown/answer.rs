//! Comparison of the cause that a breakdown names first with the program's savings without it.

use serde::Serialize;
use tally_breakdown::{Breakdown, CyclePart};
use xtask::report::{AS_GOOD, WhatIf};

/// Smallest share of the runs in which the cause that is named first must be right.
pub(super) const LEAST_RIGHT: f64 = 0.9;

/// Parts of the tree, and the group of causes whose removal they are compared with. Retiring is
/// excluded: it is the part that no removal reduces.
const GROUPS: [(&[&str], &str); 4] = [
    (&["mispredicted branches", "refill behind mispredictions"], "branches"),
    (&["fetch latency", "instruction fetch", "fetch bandwidth"], "code"),
    (&["memory"], "data"),
    (&["core"], "units"),
];

/// Answer of a run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Answer {
    pub(super) program: String,
    pub(super) pipeline: String,
    /// The groups of the parts that may be the largest loss, the largest first; empty if unknown.
    pub(super) named: Vec<&'static str>,
    /// The group whose removal saves most.
    pub(super) largest: &'static str,
    /// By group: its parts' share, and the program's saving without it.
    pub(super) groups: Vec<(&'static str, f64, f64)>,
    /// Whether a named group saves most, or nearly most; `None` if none is named.
    pub(super) is_right: Option<bool>,
    /// The truth of each part of the first level, as a share of the cycles.
    pub(super) level_1: Vec<(String, f64)>,
}

impl Answer {
    pub(super) fn of(
        program: &str,
        pipeline: &str,
        breakdown: &Breakdown,
        what_if: &WhatIf,
    ) -> Answer {
        let share = |names: &[&str]| {
            let own = breakdown.leaves().filter(|part| names.contains(&&*part.name));
            own.map(|part| part.share).sum::<f64>()
        };
        let groups: Vec<_> =
            GROUPS.iter().map(|(names, name)| (*name, share(names), what_if.alone(name))).collect();
        let group = |part: &CyclePart| {
            let found = GROUPS.iter().find(|(names, _)| names.contains(&&*part.name));
            found.map_or("other", |(_, name)| *name)
        };
        let named: Vec<_> = breakdown.named_losses().into_iter().map(group).collect();
        let all = breakdown.cycles.max(1) as f64;
        let roots = breakdown.parts.iter().filter(|part| part.level == 1);
        let level_1 = roots.filter_map(|part| Some((part.name.to_string(), part.truth? / all)));
        Answer {
            pipeline: pipeline.to_owned(),
            level_1: level_1.collect(),
            ..Answer::among(program, named, groups)
        }
    }

    /// The first-level part that differs most from the same program's in another pipeline, and the
    /// difference.
    pub(super) fn furthest(&self, other: &Answer) -> Option<(&str, f64)> {
        let distance = |(name, share): &'_ (String, f64)| {
            let (_, of_other) = other.level_1.iter().find(|(its, _)| its == name)?;
            Some((share - of_other).abs())
        };
        let all = self.level_1.iter().filter_map(|part| Some((&*part.0, distance(part)?)));
        all.max_by(|one, other| one.1.total_cmp(&other.1))
    }

    fn among(
        program: &str,
        mut named: Vec<&'static str>,
        groups: Vec<(&'static str, f64, f64)>,
    ) -> Answer {
        named.dedup();
        let most = groups.iter().max_by(|one, other| one.2.total_cmp(&other.2));
        let (largest, most) = most.map_or(("none", 0.0), |(name, _, saved)| (*name, *saved));
        let near =
            |(name, _, saved): &(&str, f64, f64)| named.contains(name) && *saved >= most - AS_GOOD;
        let is_right = (!named.is_empty()).then(|| groups.iter().any(near));
        let (program, pipeline, level_1) = (program.to_owned(), String::new(), Vec::new());
        Answer { program, pipeline, named, largest, groups, is_right, level_1 }
    }

    #[cfg(test)]
    pub(super) fn made_up(is_right: bool) -> Answer {
        let groups = vec![("branches", 0.3, 0.28), ("data", 0.2, if is_right { 0.1 } else { 0.4 })];
        Answer::among("p", vec!["branches"], groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_right_if_nothing_saves_clearly_more() {
        for (saved, right) in [([0.30, 0.10], true), ([0.30, 0.31], true), ([0.30, 0.33], false)] {
            let groups = vec![("branches", 0.4, saved[0]), ("data", 0.2, saved[1])];
            let answer = Answer::among("p", vec!["branches"], groups.clone());
            assert_eq!(answer.is_right, Some(right), "{answer:?}");
            let either = Answer::among("p", vec!["branches", "data"], groups.clone());
            assert_eq!(either.is_right, Some(true), "{either:?}");
            assert_eq!(Answer::among("p", Vec::new(), groups).is_right, None);
        }
        let other = Answer::among("p", vec!["other"], vec![("data", 0.1, 0.2)]);
        assert_eq!(other.is_right, Some(false));
    }
}
