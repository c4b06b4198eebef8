//! The cycles that mispredicted branches cost, measured from the branches before samples.
//!
//! A branch record has the cycles since the record before it, so those behind a branch are in the
//! next records. The cost of a misprediction is what the stretch to the second record behind the
//! branch takes longer than after a right prediction, where execution went the same way: for equal
//! ways it is the pipeline that differs, which is empty behind a mispredicted branch. Over one
//! record the pipeline is not full again yet, and the more records, the fewer ways are equal. Ways
//! are equal if the branches between were predicted alike, too.
//!
//! It is what one misprediction costs beside the others. Without all of them the program can gain
//! more, since loads behind several branches would then overlap.
//!
//! Branches that were not taken are in no record. Precise samples of `branch-misses` in the same
//! recording have their mispredictions too.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use tally_abi::{branches::Branch, trace::SampleRecord};
use tally_engine::estimate::student_t_95;

use super::{
    exposed::is_cycles,
    share::{Share, Weight, Z},
};
use crate::recording::Recording;

/// Records behind a branch whose cycles are compared.
const BEHIND: usize = 2;
/// The fewest mispredictions of a branch, and the fewest samples with some, that give a cost.
const FEWEST: usize = 10;

/// Cost of the mispredictions of a branch instruction.
#[derive(Clone, Debug, Serialize)]
pub(super) struct BranchCost {
    pub(super) program: u32,
    pub(super) address: u64,
    /// Mispredictions that were compared with right predictions on the same way.
    pub(super) compared: usize,
    /// Core cycles of a misprediction, and the half width of their 95 % interval.
    pub(super) cycles: f64,
    pub(super) half_width_95: f64,
    /// The share of all cycles that the branch's mispredictions cost, and its half width; `null`
    /// without samples of cycles.
    pub(super) lost: Option<Lost>,
    /// A sample before which it was taken, for the names.
    #[serde(skip)]
    pub(super) sample: SampleRecord,
}

/// A share of the sampled cycles, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Lost {
    pub(super) share: f64,
    pub(super) half_width_95: f64,
}

/// Cycles behind a branch, with the number of the sample.
type Stretch = (usize, f64);

/// Stretches behind a branch where execution went the same way, by prediction.
#[derive(Clone, Debug, Default)]
struct Way {
    right: Vec<Stretch>,
    wrong: Vec<Stretch>,
}

/// A branch and the branches behind it, as pairs of addresses, and whether one of those before the
/// last was mispredicted.
type Path = ([(u64, u64); BEHIND + 1], bool);

/// The samples with branches of an event, or of all events, each once: those of several events that
/// were taken together have the same branches.
pub(super) fn with_branches<'a>(
    of: &'a Recording,
    event: Option<&str>,
) -> Vec<(&'a SampleRecord, &'a [Branch])> {
    let mut seen = BTreeSet::new();
    let is_wanted = |sample: &SampleRecord| {
        event.is_none_or(|event| event == of.event_name(sample.session, sample.event))
    };
    let all = of.records.samples.iter().filter(|sample| is_wanted(sample));
    let all = all.map(|sample| (sample, of.branches.of_sample(sample)));
    let mut is_first = |sample: &SampleRecord| seen.insert((sample.cpu, sample.tsc));
    all.filter(|(sample, branches)| !branches.is_empty() && is_first(sample)).collect()
}

/// The costs of branches, in decreasing order of the cycles that are lost; none if the records have
/// no cycles.
pub(super) fn costs(of: &Recording) -> Vec<BranchCost> {
    let samples = with_branches(of, None);
    let mut ways: HashMap<(u32, Path), Way> = HashMap::new();
    let mut branches: BTreeMap<(u32, u64), &SampleRecord> = BTreeMap::new();
    for (number, (sample, records)) in samples.iter().enumerate() {
        let (program, _) = of.program_of(sample.session);
        for window in records.windows(BEHIND + 1) {
            let Some((path, is_wrong, cycles)) = stretch(window) else { continue };
            branches.entry((program, path.0[0].0)).or_insert(sample);
            let way = ways.entry((program, path)).or_default();
            let stretches = if is_wrong { &mut way.wrong } else { &mut way.right };
            stretches.push((number, cycles));
        }
    }
    let mut of_branch: BTreeMap<(u32, u64), Vec<&Way>> = BTreeMap::new();
    for ((program, path), way) in &ways {
        of_branch.entry((*program, path.0[0].0)).or_default().push(way);
    }
    let lost = Losses::of(of, &samples);
    let cost = |(key, ways): (&(u32, u64), &Vec<&Way>)| {
        let (compared, cycles, half_width_95) = mean_cost(ways)?;
        let (lost, sample) = (lost.of_branch(*key, (cycles, half_width_95)), *branches[key]);
        let (program, address) = *key;
        Some(BranchCost { program, address, compared, cycles, half_width_95, lost, sample })
    };
    let mut all: Vec<BranchCost> = of_branch.iter().filter_map(cost).collect();
    let weight = |of: &BranchCost| of.lost.map_or(of.compared as f64, |lost| lost.share);
    all.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then(a.address.cmp(&b.address)));
    all
}

/// The way from a branch, the last of a window, whether it was mispredicted, and the cycles up to
/// the last record; `None` where the kernel ran between, or nothing is known of the branch.
fn stretch(window: &[Branch]) -> Option<(Path, bool, f64)> {
    let is_kernels = |address: u64| address == 0 || address >> 63 == 1;
    if window.iter().any(|branch| is_kernels(branch.from) || is_kernels(branch.to)) {
        return None;
    }
    let mut path = Path::default();
    let in_order = window.iter().rev().map(|branch| (branch.from, branch.to));
    path.0.iter_mut().zip(in_order).for_each(|(place, pair)| *place = pair);
    path.1 = window[1..BEHIND].iter().any(|branch| branch.mispredicted() == Some(true));
    let behind = &window[..BEHIND];
    let cycles = behind.iter().map(|branch| f64::from(branch.cycles().unwrap_or(0))).sum();
    // Two records with no cycles at all are of a processor that does not tell them.
    let known = behind.iter().any(|branch| branch.cycles().is_some());
    known.then_some((path, window[BEHIND].mispredicted()?, cycles))
}

/// The number of compared mispredictions, their mean cost, and its half width; `None` if there are
/// too few.
///
/// The mean is that of the ways, each with the weight of its mispredictions. Stretches of a sample
/// are not independent, so the variance is that of the sums of residuals by sample (Liang and
/// Zeger, "Longitudinal data analysis using generalized linear models", 1986), each residual
/// divided by the square root of 1 − 1/n for the n stretches that its mean is of.
fn mean_cost(ways: &[&Way]) -> Option<(usize, f64, f64)> {
    let is_pair = |way: &&&Way| way.right.len() > 1 && way.wrong.len() > 1;
    let ways: Vec<&&Way> = ways.iter().filter(is_pair).collect();
    let compared: usize = ways.iter().map(|way| way.wrong.len()).sum();
    let samples: BTreeSet<usize> =
        ways.iter().flat_map(|way| &way.wrong).map(|(sample, _)| *sample).collect();
    if compared < FEWEST || samples.len() < FEWEST {
        return None;
    }
    let mean = |of: &[Stretch]| of.iter().map(|(_, cycles)| cycles).sum::<f64>() / of.len() as f64;
    let (mut cost, mut residuals) = (0.0, BTreeMap::<usize, f64>::new());
    for way in ways {
        let share = way.wrong.len() as f64 / compared as f64;
        for (stretches, sign) in [(&way.wrong, 1.0), (&way.right, -1.0)] {
            let (mean, n) = (mean(stretches), stretches.len() as f64);
            cost += sign * share * mean;
            let scale = share / (n * (n - 1.0)).sqrt();
            for (sample, cycles) in stretches {
                *residuals.entry(*sample).or_default() += sign * scale * (cycles - mean);
            }
        }
    }
    let variance: f64 = residuals.values().map(|sum| sum.powi(2)).sum();
    let degrees = (samples.len() - 1) as f64;
    Some((compared, cost, student_t_95(degrees) * variance.sqrt()))
}

/// Mispredictions in a cycle, by branch instruction: from precise samples of them if there are any,
/// or from the records.
struct Losses {
    by_branch: BTreeMap<(u32, u64), Rate>,
}

/// A mean of mispredictions in a cycle, and its variance.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    mean: f64,
    variance: f64,
}

impl Losses {
    fn of(of: &Recording, samples: &[(&SampleRecord, &[Branch])]) -> Losses {
        let by_branch = sampled_rates(of).unwrap_or_else(|| recorded_rates(of, samples));
        Losses { by_branch }
    }

    /// The share of cycles that a branch's mispredictions cost.
    fn of_branch(&self, key: (u32, u64), (cycles, half_width): (f64, f64)) -> Option<Lost> {
        let Rate { mean, variance } = *self.by_branch.get(&key)?;
        let of_rate = Z * cycles * variance.sqrt();
        let half_width_95 = (mean * half_width).hypot(of_rate);
        Some(Lost { share: cycles * mean, half_width_95 })
    }
}

/// Returns whether an event, as in a recording, is that of all mispredicted branches.
pub(crate) fn is_mispredictions(event: &str) -> bool {
    let name = event.split(':').next().unwrap_or_default();
    ["branch-misses", "BR_MISP_RETIRED.ALL_BRANCHES"].contains(&name)
}

/// The rates from precise samples of mispredicted branches, whether taken or not.
fn sampled_rates(of: &Recording) -> Option<BTreeMap<(u32, u64), Rate>> {
    let (mut at, mut cycles) = (BTreeMap::<_, Weight>::new(), Weight::default());
    for (sample, weight) in of.weighted_samples() {
        let event = of.event_name(sample.session, sample.event);
        if is_cycles(&event) {
            cycles.add(weight);
        } else if is_mispredictions(&event) && sample.precise {
            let (program, _) = of.program_of(sample.session);
            at.entry((program, sample.address)).or_default().add(weight);
        }
    }
    if at.is_empty() || cycles.events == 0 {
        return None;
    }
    let mut all = Weight::default();
    at.values().for_each(|weight| all.extend(weight));
    // Samples stand for all events of a session, so only a branch's share of them is not exact.
    let per_cycle = all.events as f64 / cycles.events as f64;
    let rate = |weight: &Weight| {
        let Share { share, low_95, high_95 } = weight.share_of(&all);
        let deviation = (high_95 - low_95) / (2.0 * Z) * per_cycle;
        Rate { mean: share * per_cycle, variance: deviation.powi(2) }
    };
    Some(at.iter().map(|(key, weight)| (*key, rate(weight))).collect())
}

/// The rates from records before samples of cycles: the mean of each sample's own rate, since a
/// sample is a draw of time.
fn recorded_rates(
    of: &Recording,
    samples: &[(&SampleRecord, &[Branch])],
) -> BTreeMap<(u32, u64), Rate> {
    let mut sums: BTreeMap<(u32, u64), (f64, f64)> = BTreeMap::new();
    let mut count = 0.0;
    for (sample, branches) in samples {
        let cycles: f64 = branches.iter().filter_map(Branch::cycles).map(f64::from).sum();
        if !is_cycles(&of.event_name(sample.session, sample.event)) || cycles == 0.0 {
            continue;
        }
        count += 1.0;
        let mut wrong: BTreeMap<u64, f64> = BTreeMap::new();
        for branch in branches.iter().filter(|branch| branch.mispredicted() == Some(true)) {
            *wrong.entry(branch.from).or_default() += 1.0 / cycles;
        }
        let (program, _) = of.program_of(sample.session);
        for (from, rate) in wrong {
            let (sum, squares) = sums.entry((program, from)).or_default();
            (*sum, *squares) = (*sum + rate, *squares + rate.powi(2));
        }
    }
    let rate = |(sum, squares): (f64, f64)| {
        let mean = sum / count;
        let variance = (squares / count - mean.powi(2)) / (count - 1.0).max(1.0);
        Rate { mean, variance: variance.max(0.0) }
    };
    sums.into_iter().map(|(key, of)| (key, rate(of))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A linear congruence, as a share from 0 to 1.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 40) as f64 / f64::from(1 << 24)
        }
    }

    /// Ways behind a branch in so many samples. A misprediction costs 20 cycles, and is rare on the
    /// short way and frequent on the long one. Each sample has a time of its own, by which all of
    /// its stretches are longer.
    fn ways(samples: usize, random: &mut Random) -> [Way; 2] {
        let mut ways = [Way::default(), Way::default()];
        for sample in 0..samples {
            let shared = 10.0 * random.next();
            for _ in 0..8 {
                let is_long = random.next() < 0.5;
                let is_wrong = random.next() < if is_long { 0.8 } else { 0.1 };
                let own = if is_long { 100.0 } else { 5.0 } + 5.0 * random.next();
                let cycles = own + shared + if is_wrong { 20.0 } else { 0.0 };
                let way = &mut ways[usize::from(is_long)];
                let stretches = if is_wrong { &mut way.wrong } else { &mut way.right };
                stretches.push((sample, cycles));
            }
        }
        ways
    }

    #[test]
    fn intervals_hold_the_cost_whatever_the_ways_are() {
        let mut random = Random(7);
        let runs = 2_000;
        let within = (0..runs).filter(|_| {
            let ways = ways(60, &mut random);
            let (_, cost, half) = mean_cost(&ways.each_ref()).unwrap();
            (cost - 20.0).abs() <= half
        });
        let share = within.count() as f64 / f64::from(runs);
        assert!((0.93..0.97).contains(&share), "{share}");
    }

    #[test]
    fn few_mispredictions_give_no_cost() {
        let mut random = Random(1);
        let mut few = ways(60, &mut random);
        few.iter_mut().for_each(|way| way.wrong.truncate(4));
        assert_eq!(mean_cost(&few.each_ref()), None);
        assert_eq!(mean_cost(&[]), None);
    }

    #[test]
    fn a_stretch_is_of_one_program_and_has_the_cycles_behind_its_branch() {
        use tally_abi::branches::BranchType;
        let branch =
            |from, wrong, cycles| Branch::new([from, from + 8], BranchType::Unknown, wrong, cycles);
        let window = [branch(3, Some(false), 5), branch(2, None, 4), branch(1, Some(true), 90)];
        let path = ([(1, 9), (2, 10), (3, 11)], false);
        assert_eq!(stretch(&window), Some((path, true, 9.0)));
        let twice = [window[0], branch(2, Some(true), 4), window[2]];
        assert_eq!(stretch(&twice), Some(((path.0, true), true, 9.0)));
        let from_kernel = [branch(3, Some(false), 5), branch(1 << 63, None, 4), window[2]];
        assert_eq!(stretch(&from_kernel), None);
        let unknown = [window[0], window[1], branch(1, None, 90)];
        assert_eq!(stretch(&unknown), None);
        let without_cycles = [branch(3, None, 0), branch(2, None, 0), window[2]];
        assert_eq!(stretch(&without_cycles), None);
    }
}
