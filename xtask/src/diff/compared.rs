//! The comparison of two runs, value by value.
//!
//! The errors of two runs are independent: the orders of their slices are drawn separately. So the
//! half width of a difference is the root of the sum of both squared half widths. The interval of a
//! ratio is Fieller's (*Some Problems in Interval Estimation*, 1954), in which a ratio of 1 is
//! outside exactly if the difference exceeds its half width. Changes of a program's behaviour from
//! run to run are in no interval of one run.

use std::collections::BTreeSet;

use serde::Serialize;
use tally_abi::ExitStatus;

use super::measured::{Measured, MeasuredSession, Run};
use crate::{Failure, Result};

/// Two runs and their differences.
#[derive(Debug, Serialize)]
pub struct Diff {
    /// The first run.
    pub a: Run,
    /// The second run.
    pub b: Run,
    /// The runs' sessions, in pairs.
    pub sessions: Vec<ComparedSession>,
}

/// A session of each run.
#[derive(Debug, Serialize)]
pub struct ComparedSession {
    /// The programs of the first and of the second run.
    pub programs: [String; 2],
    /// Cycles by cause; empty unless both runs have a breakdown.
    pub cycles: Vec<Compared>,
    /// Events: those of the first run in its order, then those of the second run alone.
    pub events: Vec<Compared>,
}

/// A value in both runs.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// The name.
    pub name: String,
    /// The first run's value.
    pub a: Option<Measured>,
    /// The second run's value.
    pub b: Option<Measured>,
    /// The second value less the first.
    pub difference: Option<f64>,
    /// Half the width of the difference's 95 % interval.
    pub half_width_95: Option<f64>,
    /// The second value divided by the first; `None` if the first is 0.
    pub ratio: Option<f64>,
    /// The lower end of the ratio's 95 % interval; `None` if the first value may be 0.
    pub ratio_low_95: Option<f64>,
    /// The upper end of the ratio's 95 % interval; `None` if the first value may be 0.
    pub ratio_high_95: Option<f64>,
    /// Whether the values differ.
    pub verdict: Verdict,
}

/// Whether two values differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Difference: by more than the intervals allow.
    Differs,
    /// No difference beyond the intervals.
    Within,
    /// No verdict: one of the values was not measured.
    Unknown,
}

impl Diff {
    /// Compares two runs.
    ///
    /// # Errors
    /// The runs have different numbers of sessions.
    pub fn of(a: Run, b: Run) -> Result<Diff> {
        let [in_a, in_b] = [&a, &b].map(|run| run.sessions.len());
        if in_a != in_b || in_a == 0 {
            let why = format!(
                "{} has {in_a} sessions and {} has {in_b}: compare runs with equal numbers of them",
                a.file, b.file
            );
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        let sessions = a.sessions.iter().zip(&b.sessions);
        let sessions = sessions.map(|(a, b)| ComparedSession::of(a, b)).collect();
        Ok(Diff { a, b, sessions })
    }

    fn values(&self) -> impl Iterator<Item = &Compared> {
        self.sessions.iter().flat_map(|session| session.cycles.iter().chain(&session.events))
    }

    /// The number of values that both runs have.
    pub fn compared(&self) -> usize {
        self.values().filter(|value| value.verdict != Verdict::Unknown).count()
    }

    /// The number of compared values that are estimated in one run or in both.
    pub fn estimated(&self) -> usize {
        self.values().filter(|value| value.half_width_95 > Some(0.0)).count()
    }

    /// The number of values that differ.
    pub fn differ(&self) -> usize {
        self.values().filter(|value| value.verdict == Verdict::Differs).count()
    }
}

type Named = (String, Option<Measured>);

impl ComparedSession {
    fn of(a: &MeasuredSession, b: &MeasuredSession) -> ComparedSession {
        let has_both = !a.cycles.is_empty() && !b.cycles.is_empty();
        ComparedSession {
            programs: [a, b].map(|session| session.program.clone()),
            cycles: if has_both { compared(&a.cycles, &b.cycles) } else { Vec::new() },
            events: compared(&a.events, &b.events),
        }
    }
}

/// Compares values by name: those of `a`, then those of `b` alone, each name once.
fn compared(a: &[Named], b: &[Named]) -> Vec<Compared> {
    let mut seen = BTreeSet::new();
    let names = a.iter().chain(b).map(|(name, _)| name).filter(|name| seen.insert(*name));
    let find = |of: &[Named], name: &str| of.iter().find(|(other, _)| other == name)?.1;
    names.map(|name| Compared::of(name, find(a, name), find(b, name))).collect()
}

impl Compared {
    fn of(name: &str, a: Option<Measured>, b: Option<Measured>) -> Compared {
        let both = a.zip(b);
        let difference = both.map(|(a, b)| b.estimate - a.estimate);
        let half_width_95 = both.map(|(a, b)| a.half_width_95.hypot(b.half_width_95));
        let (ratio_low_95, ratio_high_95) = both.and_then(|(a, b)| fieller(a, b)).unzip();
        Compared {
            name: name.to_owned(),
            a,
            b,
            difference,
            half_width_95,
            ratio: both.and_then(|(a, b)| (a.estimate > 0.0).then(|| b.estimate / a.estimate)),
            ratio_low_95,
            ratio_high_95,
            verdict: match difference.zip(half_width_95) {
                None => Verdict::Unknown,
                Some((by, width)) if by.abs() > width => Verdict::Differs,
                Some(_) => Verdict::Within,
            },
        }
    }

    /// Returns whether both values are exact.
    pub fn is_exact(&self) -> bool {
        self.half_width_95 == Some(0.0)
    }
}

/// The interval of b / a: the ratios r for which b - r a is within its half width. `None` if `a`
/// may be 0, as any ratio is possible then.
fn fieller(a: Measured, b: Measured) -> Option<(f64, f64)> {
    // (a² - h²) r² - 2 a b r + (b² - k²) = 0 with the half widths h of a and k of b.
    let square = |value: Measured| value.estimate.powi(2) - value.half_width_95.powi(2);
    let (first, product, last) = (square(a), a.estimate * b.estimate, square(b));
    if first <= 0.0 {
        return None;
    }
    let root = (product * product - first * last).max(0.0).sqrt();
    Some((((product - root) / first).max(0.0), (product + root) / first))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn measured(estimate: f64, half_width_95: f64) -> Option<Measured> {
        Some(Measured { estimate, half_width_95 })
    }

    #[test]
    fn intervals_of_differences_and_ratios_are_of_both() {
        let of = Compared::of("E", measured(1_000.0, 30.0), measured(1_100.0, 40.0));
        assert_eq!((of.difference, of.half_width_95), (Some(100.0), Some(50.0)));
        assert_eq!((of.ratio, of.verdict), (Some(1.1), Verdict::Differs));
        let (low, high) = (of.ratio_low_95.unwrap(), of.ratio_high_95.unwrap());
        assert!((low - 1.0492).abs() < 1e-3 && (high - 1.1528).abs() < 1e-3, "{low} {high}");
        let within = Compared::of("E", measured(1_000.0, 30.0), measured(1_049.0, 40.0));
        assert_eq!(within.verdict, Verdict::Within);
        let exact = |b| Compared::of("E", measured(7.0, 0.0), measured(b, 0.0)).verdict;
        assert_eq!([7.0, 8.0].map(exact), [Verdict::Within, Verdict::Differs]);
    }

    #[test]
    fn what_is_not_known_is_not_compared() {
        let of = Compared::of("E", None, measured(1.0, 0.0));
        assert_eq!((of.verdict, of.ratio, of.difference), (Verdict::Unknown, None, None));
        let zero = Compared::of("E", measured(0.0, 5.0), measured(9.0, 1.0));
        assert_eq!((zero.ratio, zero.ratio_high_95, zero.verdict), (None, None, Verdict::Differs));
        let names = |of: &[&str]| of.iter().map(|name| ((*name).to_owned(), None)).collect();
        let (a, b): (Vec<Named>, Vec<Named>) = (names(&["X", "Y", "X"]), names(&["Z", "Y"]));
        let found: Vec<String> = compared(&a, &b).into_iter().map(|of| of.name).collect();
        assert_eq!(found, ["X", "Y", "Z"]);
    }

    proptest! {
        #[test]
        fn a_ratio_of_1_is_outside_if_the_difference_is(
            a in 1.0..1e9, b in 0.0..1e9, wide in 0.001..0.99, narrow in 0.001..0.5,
        ) {
            let of = Compared::of("E", measured(a, a * wide), measured(b, a * narrow));
            let (low, high) = (of.ratio_low_95.unwrap(), of.ratio_high_95.unwrap());
            prop_assert!(low <= of.ratio.unwrap() && of.ratio.unwrap() <= high);
            let beyond = of.difference.unwrap().abs() / of.half_width_95.unwrap();
            if (beyond - 1.0).abs() > 1e-6 {
                prop_assert_eq!(!(low..=high).contains(&1.0), of.verdict == Verdict::Differs);
            }
        }
    }
}
