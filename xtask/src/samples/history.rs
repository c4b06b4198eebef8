//! `cargo xtask report --branch-history`: the branches that were taken before samples, the most
//! frequent first: how often each was taken and mispredicted, and the cycles up to it.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::Serialize;
use tally_abi::{ExitStatus, branches::Branch, text::Grouped, trace::SampleRecord};

use super::{COLUMNS, samples_of, share::Share, short::short_function};
use crate::{
    Failure, Result,
    recording::{Recording, Symbolizer},
};

/// Branches that the text lists.
const LISTED: usize = 40;

/// The branches before all samples.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct History {
    /// Samples with branches.
    samples: u64,
    /// Branches before them.
    branches: u64,
    /// The branches by program, address and target, in decreasing order of their counts.
    list: Vec<OfBranch>,
}

/// A branch that was taken.
#[derive(Clone, Debug, Serialize)]
struct OfBranch {
    program: u32,
    from: u64,
    to: u64,
    /// The functions of the branch and of its target.
    function: String,
    target: String,
    /// How often it was taken, and the share of that.
    count: u64,
    share: f64,
    /// The share of times that it was mispredicted; `null` if the processor does not tell.
    mispredicted: Option<Share>,
    /// Mean core cycles from the branch before it to this one; `null` if they are not known.
    cycles: Option<f64>,
}

/// Sums of a branch.
#[derive(Clone, Debug, Default)]
struct Sums {
    count: u64,
    known: u64,
    wrong: u64,
    cycles: u64,
    timed: u64,
    /// By sample: times with a known prediction, and mispredictions.
    samples: BTreeMap<usize, (u64, u64)>,
}

impl Sums {
    fn add(&mut self, sample: usize, branch: &Branch) {
        self.count += 1;
        if let Some(is_wrong) = branch.mispredicted() {
            let of_sample = self.samples.entry(sample).or_default();
            of_sample.0 += 1;
            of_sample.1 += u64::from(is_wrong);
            self.known += 1;
            self.wrong += u64::from(is_wrong);
        }
        if let Some(cycles) = branch.cycles() {
            self.cycles += u64::from(cycles);
            self.timed += 1;
        }
    }

    /// The share of mispredictions. Those before one sample are not independent, so the interval is
    /// that of the number of independent branches whose share has the variance of the ratio of
    /// sums over samples (Cochran, "Sampling Techniques", 1977, section 6.3). If none or all are
    /// mispredicted, it is the number of samples.
    fn mispredicted(&self) -> Option<Share> {
        let (known, samples) = (self.known as f64, self.samples.len() as f64);
        if self.known == 0 {
            return None;
        }
        let share = self.wrong as f64 / known;
        let square = |(known, wrong): &(u64, u64)| (*wrong as f64 - share * *known as f64).powi(2);
        let squares: f64 = self.samples.values().map(square).sum();
        let variance = squares / known.powi(2) * samples / (samples - 1.0).max(1.0);
        // Otherwise the variance between samples is not known.
        let n = if self.wrong == 0 || self.wrong == self.known || samples < 2.0 {
            samples
        } else {
            share * (1.0 - share) / variance
        };
        Some(Share::of_draws(share, n.clamp(1.0, known)))
    }
}

/// The sums of each branch, by program, address and target, with one of its samples.
type AllSums<'a> = BTreeMap<(u32, u64, u64), (Sums, &'a SampleRecord)>;

/// Sums the branches before the samples of an event, or of all events; returns the number of
/// samples too. Samples of several events that were taken together have the same branches.
fn sum<'a>(of: &'a Recording, event: Option<&str>) -> (AllSums<'a>, usize) {
    let mut all = AllSums::new();
    let mut seen = BTreeSet::new();
    for sample in &of.records.samples {
        let name = of.event_name(sample.session, sample.event);
        let branches = of.branches.of_sample(sample);
        let is_wanted = event.is_none_or(|event| event == name) && !branches.is_empty();
        if !is_wanted || !seen.insert((sample.cpu, sample.tsc)) {
            continue;
        }
        let (program, _) = of.program_of(sample.session);
        for branch in branches {
            let key = (program, branch.from, branch.to);
            let (sums, _) = all.entry(key).or_insert_with(|| (Sums::default(), sample));
            sums.add(seen.len(), branch);
        }
    }
    (all, seen.len())
}

/// The branches before the samples of an event, or of all events.
///
/// # Errors
/// The trace has no branches.
pub(crate) fn history(
    of: &Recording,
    symbolizer: &Symbolizer,
    event: Option<&str>,
) -> Result<History> {
    let (all, samples) = sum(of, event);
    if all.is_empty() {
        let why = "--branch-history: the trace has no branches: record them with `record -b`";
        return Err(Failure::new(ExitStatus::BadTrace, why));
    }
    let branches: u64 = all.values().map(|(sums, _)| sums.count).sum();
    let function = |sample: &SampleRecord, address: u64| {
        let user = address >> 63 == 0;
        let at = SampleRecord { address, user, precise: true, ..*sample };
        symbolizer.level(of, &at).functions.into_iter().next().unwrap_or_default()
    };
    let listed = |((program, from, to), (sums, sample)): (_, (Sums, &SampleRecord))| OfBranch {
        program,
        from,
        to,
        function: function(sample, from),
        target: function(sample, to),
        count: sums.count,
        share: sums.count as f64 / branches as f64,
        mispredicted: sums.mispredicted(),
        cycles: (sums.timed > 0).then(|| sums.cycles as f64 / sums.count as f64),
    };
    let mut list: Vec<OfBranch> = all.into_iter().map(listed).collect();
    list.sort_by_key(|of| Reverse(of.count));
    Ok(History { samples: samples as u64, branches, list })
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (samples, branches) = (samples_of(self.samples), Grouped(self.branches));
        writeln!(f, "# {samples} with {branches} taken branches before them")?;
        writeln!(f, "   Share   Missed   95 % interval  Cycles  Branch, target, functions")?;
        for of in self.list.iter().take(LISTED) {
            let missed = of.mispredicted.map_or_else(
                || format!("{:>7}  {:>15}", "?", ""),
                |share| format!("{}{}", share.percent(), share.interval()),
            );
            let cycles = of.cycles.map_or_else(|| "?".to_owned(), |cycles| format!("{cycles:.1}"));
            let head = format!("{:>7.2}% {missed}{cycles:>8}  ", 100.0 * of.share);
            let head = format!("{head}{:x} {:x} ", of.from, of.to);
            let names = if of.function == of.target {
                of.function.clone()
            } else {
                format!("{} > {}", of.function, of.target)
            };
            let left = COLUMNS.saturating_sub(head.chars().count());
            writeln!(f, "{}", format!("{head}{}", short_function(&names, left)).trim_end())?;
        }
        match self.list.len().checked_sub(LISTED) {
            Some(rest @ 1..) => writeln!(f, "# and {} others", Grouped(rest as u64)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tally_abi::branches::BranchType;

    use super::*;

    /// Sums of samples with so many right predictions and wrong ones each.
    fn sums(samples: &[(u64, u64)]) -> Sums {
        let mut sums = Sums::default();
        for (sample, (right, wrong)) in samples.iter().enumerate() {
            let kinds = [(*right, false), (*wrong, true)];
            for (count, is_wrong) in kinds {
                let branch = Branch::new([1, 2], BranchType::Unknown, Some(is_wrong), 3);
                (0..count).for_each(|_| sums.add(sample, &branch));
            }
        }
        sums
    }

    fn width(samples: &[(u64, u64)]) -> (f64, f64) {
        let share = sums(samples).mispredicted().unwrap();
        (share.share, share.high_95 - share.low_95)
    }

    #[test]
    fn an_interval_is_as_wide_as_samples_differ() {
        let alike = [(9, 1); 100];
        let apart: Vec<_> =
            (0..100).map(|at| if at % 10 == 0 { (0, 10) } else { (10, 0) }).collect();
        let (independent, clustered) = (width(&alike), width(&apart));
        assert_eq!((independent.0, clustered.0), (0.1, 0.1));
        // Ten branches of a sample that are all the same are worth one.
        assert!((0.10..0.14).contains(&clustered.1), "{clustered:?}");
        assert!(independent.1 < clustered.1 / 2.0, "{independent:?}");
        let never = sums(&[(10, 0); 50]).mispredicted().unwrap();
        assert!(never.low_95 == 0.0 && (0.05..0.10).contains(&never.high_95), "{never:?}");
        assert!(Sums::default().mispredicted().is_none());
    }
}
