//! Comparison of error bars with the truth, over seeds and programs.

use std::collections::BTreeMap;

use serde::Serialize;
use tally_breakdown::Breakdown;
use xtask::samples::breakdown::ByCode;

use super::answer::{Answer, LEAST_RIGHT};
use crate::study::seeds::CLAIMED;

/// Smallest share of the whole with which a part is judged, by the estimate or the truth: most
/// bars of smaller parts hold because estimate and truth are about 0.
pub(super) const LEAST_SHARE: f64 = 0.001;
/// Smallest share with which a function's part is judged; see [`LEAST_SHARE`].
pub(super) const LEAST_OF_FUNCTION: f64 = 0.005;
/// Distance from the truth within which shares of functions should be.
const NEAR: f64 = 0.02;
/// Kind of the whole that a row's parts belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Parts of the cycles of a run.
    Cycles,
    /// Functions.
    Functions,
    /// Parts of functions.
    OfFunctions,
}

/// A bar. All values are shares of the whole run's cycles or slots.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Judged {
    program: String,
    kind: Kind,
    name: String,
    share: f64,
    half_width: f64,
    truth: f64,
    is_within: bool,
}

/// The bars of one name, or of one program.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) judged: usize,
    /// The share of bars that contain the truth.
    pub(super) within: f64,
    /// Medians of the half widths, and of the distances from the truth.
    pub(super) median_half_width: f64,
    pub(super) median_error: f64,
    /// Number of estimates within two points of the truth.
    pub(super) near: usize,
    /// The root mean square of the distances in half widths, times 1.96: 1 if errors are normal and
    /// bars are right.
    pub(super) spread: f64,
}

/// All bars.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Study {
    pub(super) pmu: &'static str,
    pub(super) seeds: [u64; 2],
    /// Rows by kind.
    pub(super) kinds: Vec<Row>,
    pub(super) programs: Vec<Row>,
    pub(super) parts: Vec<Row>,
    /// The claimed range of each kind.
    pub(super) claimed: [f64; 2],
    /// Answers of the runs: the causes named first, compared with the program's savings.
    pub(super) answers: Vec<Answer>,
    pub(super) holds: bool,
    /// The runs that failed, each with its reason.
    pub(super) failed: Vec<String>,
    bars: Vec<Judged>,
}

impl Judged {
    /// Judges the parts of a run.
    pub(super) fn of_whole(program: &str, of: &Breakdown) -> Vec<Judged> {
        let all = of.cycles.max(1) as f64;
        let part = |part: &tally_breakdown::CyclePart| {
            let truth = part.truth?;
            let bar = [part.share, part.half_width_95 / all, truth / all];
            Some(Judged::of(program, Kind::Cycles, &part.name, bar, part.contains(truth)))
        };
        let parts = of.parts.iter().filter_map(part);
        parts.filter(|bar| bar.is_at_least(LEAST_SHARE)).collect()
    }

    /// Judges the functions of a run that are shown, and their parts.
    pub(super) fn of_functions(program: &str, by: &ByCode) -> Vec<Judged> {
        let all = by.cycles.max(1.0);
        let mut judged = Vec::new();
        for code in by.shown().0 {
            let Some(truth) = code.truth else { continue };
            let bar = [code.share, code.half_width_95, truth];
            judged.push(Judged::around(program, Kind::Functions, &code.name, bar));
            for part in &code.parts {
                let Some(truth) = part.truth else { continue };
                let bar = [part.cycles, part.half_width_95, truth].map(|cycles| cycles / all);
                judged.push(Judged::around(program, Kind::OfFunctions, &part.name, bar));
            }
        }
        judged.retain(|bar| bar.kind == Kind::Functions || bar.is_at_least(LEAST_OF_FUNCTION));
        judged
    }

    fn around(program: &str, kind: Kind, name: &str, bar: [f64; 3]) -> Judged {
        let [share, half_width, truth] = bar;
        Judged::of(program, kind, name, bar, (share - truth).abs() <= half_width)
    }

    fn of(program: &str, kind: Kind, name: &str, bar: [f64; 3], is_within: bool) -> Judged {
        let [share, half_width, truth] = bar;
        let (program, name) = (program.to_owned(), name.to_owned());
        Judged { program, kind, name, share, half_width, truth, is_within }
    }

    fn is_at_least(&self, least: f64) -> bool {
        self.share.max(self.truth) >= least
    }
}

impl Row {
    fn of(kind: Kind, name: &str, bars: &[&Judged]) -> Row {
        let median = |of: fn(&Judged) -> f64| {
            let mut values: Vec<f64> = bars.iter().map(|bar| of(bar)).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or_default()
        };
        let error = |bar: &Judged| (bar.share - bar.truth).abs();
        let number = bars.len().max(1) as f64;
        let squares = bars.iter().filter(|bar| bar.half_width > 0.0);
        let squares = squares.map(|bar| (1.96 * error(bar) / bar.half_width).powi(2));
        Row {
            kind,
            name: name.to_owned(),
            judged: bars.len(),
            within: bars.iter().filter(|bar| bar.is_within).count() as f64 / number,
            near: bars.iter().filter(|bar| error(bar) <= NEAR).count(),
            median_half_width: median(|bar| bar.half_width),
            median_error: median(|bar| (bar.share - bar.truth).abs()),
            spread: (squares.sum::<f64>() / number).sqrt(),
        }
    }
}

impl Study {
    pub(super) fn of(
        pmu: &'static str,
        seeds: &[u64],
        bars: Vec<Judged>,
        answers: Vec<Answer>,
    ) -> Study {
        let rows = |key: fn(&Judged) -> &str| {
            let mut by: BTreeMap<(Kind, &str), Vec<&Judged>> = BTreeMap::new();
            for bar in &bars {
                by.entry((bar.kind, key(bar))).or_default().push(bar);
            }
            by.iter().map(|((kind, name), bars)| Row::of(*kind, name, bars)).collect::<Vec<_>>()
        };
        let kinds = rows(|_| "all");
        let right = answers.iter().filter(|answer| answer.is_right == Some(true)).count() as f64;
        let told = answers.iter().filter(|answer| answer.is_right.is_some()).count() as f64;
        let holds = !kinds.is_empty()
            && kinds.iter().all(|kind| CLAIMED.contains(&kind.within))
            && right >= LEAST_RIGHT * told;
        let parts = rows(|bar| if bar.kind == Kind::Functions { "functions" } else { &bar.name });
        Study {
            pmu,
            seeds: [seeds.first(), seeds.last()].map(|seed| seed.copied().unwrap_or_default()),
            programs: rows(|bar| &bar.program),
            parts,
            kinds,
            answers,
            claimed: [*CLAIMED.start(), *CLAIMED.end()],
            holds,
            failed: Vec::new(),
            bars,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, kind: Kind, error: f64) -> Judged {
        Judged::around("p", kind, name, [0.5 + error, 0.1, 0.5])
    }

    #[test]
    fn each_kind_is_judged_by_itself_and_all_have_to_hold() {
        let of = |kind, held: usize| {
            (0..100).map(move |at| bar("a", kind, if at < held { 0.05 } else { -0.2 }))
        };
        let study = |[cycles, slots]: [usize; 2]| {
            let bars = of(Kind::Cycles, cycles).chain(of(Kind::Functions, slots)).collect();
            Study::of("p", &[3, 4], bars, Vec::new())
        };
        for (held, holds) in [([95, 95], true), ([99, 95], false), ([95, 92], false)] {
            let study = study(held);
            assert_eq!(study.holds, holds, "{held:?}");
            let within: Vec<f64> = study.kinds.iter().map(|kind| kind.within).collect();
            assert_eq!(within, held.map(|held| held as f64 / 100.0));
            assert_eq!((study.seeds, study.programs.len()), ([3, 4], 2));
        }
        assert!(!Study::of("p", &[1], Vec::new(), Vec::new()).holds);
        let wrong = |wrong: usize| {
            let answers = (0..10).map(|at| Answer::made_up(at >= wrong)).collect();
            Study::of("p", &[1], of(Kind::Cycles, 95).collect(), answers).holds
        };
        assert_eq!([wrong(1), wrong(2)], [true, false]);
    }

    #[test]
    fn the_spread_of_right_bars_is_1() {
        let row = Row::of(Kind::Cycles, "a", &[&bar("a", Kind::Cycles, 0.1 / 1.96)]);
        assert!((row.spread - 1.0).abs() < 1e-9, "{row:?}");
        assert!(bar("a", Kind::Cycles, 0.0).is_at_least(LEAST_SHARE));
        let none = Judged::around("p", Kind::Cycles, "a", [0.0, 0.1, 0.0004]);
        assert!(none.is_within && !none.is_at_least(LEAST_SHARE));
    }
}
