//! `cargo xtask report --branch-history`: the branches that were taken before samples, the most
//! frequent first: how often each was taken and mispredicted, and the cycles up to it.

use std::{cmp::Reverse, collections::BTreeMap, fmt};

use serde::Serialize;
use tally_abi::{ExitStatus, branches::Branch, text::Grouped, trace::SampleRecord};

use super::{
    COLUMNS,
    branch_cost::{BranchCost, costs, is_mispredictions, with_branches},
    samples_of,
    share::Share,
    short::short_function,
};
use crate::{
    Failure, Result,
    recording::{Recording, Symbolizer},
};

/// Branches that the text lists.
const LISTED: usize = 40;
/// Branches of which the text lists the costs.
const LISTED_COSTS: usize = 12;

/// The branches before all samples.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct History {
    /// Samples with branches.
    samples: u64,
    /// Branches before them.
    branches: u64,
    /// The branches by program, address and target, in decreasing order of their counts.
    list: Vec<OfBranch>,
    /// Costs of mispredictions by branch, where the records have cycles.
    costs: Vec<NamedCost>,
    /// Whether only mispredictions of branches that were taken are known.
    taken_alone: bool,
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

/// Cost of the mispredictions of a branch, with its place.
#[derive(Clone, Debug, Serialize)]
struct NamedCost {
    #[serde(flatten)]
    of: BranchCost,
    function: String,
    file: Option<String>,
    line: Option<u32>,
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
/// samples too.
fn sum<'a>(of: &'a Recording, event: Option<&str>) -> (AllSums<'a>, usize) {
    let (mut all, samples) = (AllSums::new(), with_branches(of, event));
    for (number, (sample, branches)) in samples.iter().enumerate() {
        let (program, _) = of.program_of(sample.session);
        for branch in *branches {
            let key = (program, branch.from, branch.to);
            let (sums, _) = all.entry(key).or_insert_with(|| (Sums::default(), *sample));
            sums.add(number, branch);
        }
    }
    (all, samples.len())
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
    let at = |sample: &SampleRecord, address: u64| {
        let user = address >> 63 == 0;
        SampleRecord { address, user, precise: true, ..*sample }
    };
    let function = |sample: &SampleRecord, address: u64| {
        let level = symbolizer.level(of, &at(sample, address));
        level.functions.into_iter().next().unwrap_or_default()
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
    let named = |cost: BranchCost| {
        let at = at(&cost.sample, cost.address);
        let place = symbolizer.place(of, &at);
        NamedCost {
            function: symbolizer.function(of, &at),
            file: place.as_ref().and_then(|place| place.file.clone()),
            line: place.and_then(|place| place.line),
            of: cost,
        }
    };
    let costs = costs(of).into_iter().map(named).collect();
    let taken_alone = !of.sampled_events().iter().any(|event| is_mispredictions(event));
    Ok(History { samples: samples as u64, branches, list, costs, taken_alone })
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
        if let Some(rest @ 1..) = self.list.len().checked_sub(LISTED) {
            writeln!(f, "# and {} others", Grouped(rest as u64))?;
        }
        self.write_costs(f)
    }
}

impl History {
    fn write_costs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.costs.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "\n# Mispredictions, by the cycles that they cost: what the way to the second"
        )?;
        writeln!(f, "# branch behind takes longer than after a right prediction")?;
        if self.taken_alone {
            writeln!(
                f,
                "# Of branches that were taken; add `-e branch-misses:P` for the others too"
            )?;
        }
        writeln!(f, "   Lost   ± 95 %  Each   ± 95 %  Branch, function, line")?;
        self.costs.iter().take(LISTED_COSTS).try_for_each(|cost| writeln!(f, "{cost}"))
    }
}

impl fmt::Display for NamedCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost = self.of.lost.map_or_else(
            || format!("{:>7}{:>9}", "?", ""),
            |lost| {
                let [share, half] = [lost.share, lost.half_width_95].map(|of| 100.0 * of);
                format!("{share:>6.1}%{half:>8.1}%")
            },
        );
        let BranchCost { cycles, half_width_95, address, .. } = self.of;
        let head = format!("{lost}{cycles:>6.1}{half_width_95:>9.1}  {address:x} ");
        let line = match (&self.file, self.line) {
            (Some(file), Some(line)) => {
                format!(" {}:{line}", file.rsplit('/').next().unwrap_or_default())
            }
            _ => String::new(),
        };
        let left = COLUMNS.saturating_sub(head.chars().count() + line.chars().count());
        write!(f, "{head}{}{line}", short_function(&self.function, left))
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
