//! Estimates with their errors, from the sums of [`crate::moments`].
//!
//! **Estimate.** For each of two bases, cycles and instructions, the exact total X is known, and
//! the part Σx that passed while the event was counted. The ratio estimate of the event's total is
//! X·Σy/Σx. The base with the smaller error is used.
//!
//! **Error.** The uncertainty is the deviation of uncounted slices from the rate: the residual e =
//! y − (Σy/Σx)·x of a slice. A group's slices are at random places in each round, so the relevant
//! variance is that of residuals *within a round*. [`crate::moments`] has sums of differences
//! between slices closer than a round (near), which are as far apart as slices of one round, and
//! between slices further apart (far). Near and far pairs both estimate this variance. If the near
//! pairs' estimate is significantly smaller, it is used alone. Each group has every place of the
//! rounds equally often in a block of them, so an effect of the place in the round evens out over a
//! block: if the sums of whole blocks differ significantly less, they estimate the variance.
//!
//! **Few events.** Counts that happen to be all equal, such as all zero, do not prove that there is
//! no spread. So [`UNSEEN`] squared events are added to the squared error of the counted slices: a
//! count of zero then means at most three events, scaled up by the share counted (the rule of
//! three). If fewer slices than the number of kept peaks had events, the addition is as many
//! squares of a *batch*, as rare events often come many at once. The size of a batch is the largest
//! count of a slice; the fewer slices had events, the nearer it is to the middle, on a logarithmic
//! scale, between one event and one event per cycle.
//!
//! **Heavy tails.** If the largest slice is far above the next, the uncounted slices probably
//! contain larger ones, which are neither in the estimate nor in the spread. The gap indicates how
//! large; its excess over a normal distribution's gap widens the interval (`tails`).
//!
//! **Two bases.** Cycles and instructions of all slices are known, so the difference between the
//! counted slices' instructions per cycle (IPC) and that of all slices is known. If slices vary in
//! IPC, the regression of their events on it predicts the estimate's error (Cochran, section 7.1);
//! its excess over the standard error widens the interval. If counted slices vary too little in IPC
//! to explain the gap, some uncounted slices (start-up code, for example) behave unlike any counted
//! one; their events may be [`UNMET`] times as many.
//!
//! **Strata.** A session whose rows are folded outside of the overflow interrupt also has the sums
//! of its slices by IPC. If the estimate by these strata has a smaller error, it is used
//! (`stratified`).
//!
//! **Few slices.** The spread itself is uncertain; Student's t widens the interval accordingly. The
//! sums of squares keep their largest term. If it dominates its sum, the sum has few degrees of
//! freedom, however many pairs there are: for example when a program has a few long phases and only
//! the pairs of slices across their ends differ. With fewer than [`LEAST_SLICES`] slices there is
//! no estimate: their residuals have next to no information.
//!
//! **Slices since the last.** The slices since the group's last one are not yet a random sample of
//! the session: all of them may deviate in the same direction, by the spread of one slice each
//! (`unseen`). A program that was steady for n slices changes its behaviour in the next one with a
//! probability of 1/n (the rule of succession); then its rates may change by their own size.
//!
//! Decision 78 has the whole mathematics; 11, 18, 20, 28 and 72 the reasons and the measurements.
//!
//! Uses floating point: never in the overflow path.

mod sample;
mod spread;
mod stratified;
mod tails;

use libm::{pow, round, sqrt};
use tally_abi::{Value, reading::Reason};

pub use self::{sample::Sample, spread::student_t_95};
use self::{
    sample::in_ones,
    spread::spread,
    stratified::{Stratified, stratified},
    tails::{UNMET, UNSEEN, tail},
};
use crate::{
    moments::{Base, FAR, NEAR, PEAKS, Peak, WEIGHT},
    strata::Strata,
};

/// Minimum number of slices for an estimate.
pub const LEAST_SLICES: u64 = 4;

/// Standard deviations by which the counted slices' IPC must differ from that of all slices to show
/// that some slices were unlike all counted ones.
const CHANCE: f64 = 2.0;
/// 2⁻³².
const FRACTION: f64 = 1.0 / 4_294_967_296.0;

/// The error of an estimate as the bank publishes it; readers update it to the present count
/// ([`tally_abi::bank::half_width`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uncertainty {
    /// The base of the estimate.
    pub base: Base,
    /// Half the width of the 95 % interval, in events, without the error of slices since the last.
    pub half_width_95: f64,
    /// Bound at 95 % on the deviation of events in slices since the last, in events per count of
    /// the base.
    pub drift_95: f64,
    /// The share of the base in which the event was counted, 0 to 1.
    pub share: f64,
}

/// Paper 000's estimate (section 3): linear scaling by time, without an error. `None` before
/// anything was counted.
pub fn by_time(sample: &Sample) -> Option<f64> {
    rate(sample, Base::Cycles).map(|rate| rate * sample.totals[Base::Cycles as usize] as f64)
}

/// The base with the smaller error; cycles before anything was counted.
pub fn best_base(sample: &Sample) -> Base {
    best(sample).map_or(Base::Cycles, |best| best.base)
}

fn best(sample: &Sample) -> Option<ByBase> {
    best_of(sample, &Base::ALL)
}

/// Returns the estimate by the one of `bases` with the smallest error.
fn best_of(sample: &Sample, bases: &[Base]) -> Option<ByBase> {
    let by = |base: &Base| by_base(sample, *base);
    let bases = bases.iter().filter_map(by);
    let best = bases.min_by(|a, b| a.variance.total_cmp(&b.variance))?;
    let variance = best.variance + best.batches + imbalance(sample, &best);
    Some(ByBase { variance, ..best })
}

/// Expected squared error from the difference in IPC between the counted slices and all slices,
/// beyond what the variance of `best` already covers.
fn imbalance(sample: &Sample, best: &ByBase) -> f64 {
    let [cycles, instructions] = sample.group.sums.map(|sum| sum as f64);
    let [all_cycles, all_instructions] = sample.totals.map(|sum| sum as f64);
    if cycles == 0.0 || instructions == 0.0 {
        return 0.0;
    }
    let ipc = instructions / cycles;
    let missing = all_instructions - ipc * all_cycles;
    let slices = Regression::of(sample, ipc);
    // Slices like the counted ones: their events follow their instructions.
    let by_cycles = events(sample) / cycles * all_cycles;
    let regressed = slices.slope.map_or(best.estimate, |slope| by_cycles + slope * missing);
    let expected = (regressed - best.estimate).abs() - sqrt(best.variance);
    // Slices unlike any counted one: their events may differ by this factor.
    let scale = all_cycles / cycles;
    let by_chance = scale * sqrt((1.0 - 1.0 / scale).max(0.0) * slices.total_variance);
    let beyond = (missing.abs() - CHANCE * by_chance).max(0.0) / (ipc * all_cycles);
    let unmet = UNMET * beyond * best.estimate;
    expected.max(0.0) * expected.max(0.0) + unmet * unmet
}

/// Regression of a group's events on instructions at equal cycles, from pairs of slices.
struct Regression {
    /// Events per additional instruction at equal cycles; `None` if the slices do not differ.
    slope: Option<f64>,
    /// Variance of the instructions in all counted slices, in squared instructions.
    total_variance: f64,
}

impl Regression {
    /// Computes the regression at `ipc` instructions per cycle. Slices differ in cycles only by
    /// their length, with instructions in proportion, so the sums of products of both are not
    /// needed.
    fn of(sample: &Sample, ipc: f64) -> Regression {
        let (mut weight, mut squares, mut products) = (0.0, 0.0, 0.0);
        for kind in [NEAR, FAR] {
            let (event, group) = (&sample.event.pairs[kind], &sample.group.pairs[kind]);
            weight += in_ones(group.weight);
            let [of_cycles, of_instructions] = group.squares.map(|sum| sum as f64);
            squares += of_instructions - ipc * ipc * of_cycles;
            let [with_cycles, with_instructions] = event.products.map(|sum| sum as f64);
            products += with_instructions - ipc * with_cycles;
        }
        if squares <= 0.0 || weight == 0.0 {
            return Regression { slope: None, total_variance: 0.0 };
        }
        let variance = squares / WEIGHT as f64 / 2.0 / weight;
        let slices = sample.group.slices as f64;
        Regression { slope: Some(products / squares), total_variance: slices * variance }
    }
}

/// Variance of the event's count in one slice, relative to the square of the mean slice. It
/// determines how many slices the event needs. `None` while it is not known.
pub fn relative_spread(sample: &Sample) -> Option<f64> {
    let best = best(sample)?;
    let mean = best.estimate / sample.slices as f64;
    let slices = sample.group.slices;
    (slices >= LEAST_SLICES && mean > 0.0)
        .then(|| best.squared_error / slices as f64 / (mean * mean))
}

/// The error of the ratio estimate, in its parts. `None` while there is no estimate.
pub fn uncertainty(sample: &Sample) -> Option<Uncertainty> {
    let best = best(sample).filter(|_| sample.group.slices >= LEAST_SLICES)?;
    let (counted, total) =
        (sample.group.sums[best.base as usize], sample.totals[best.base as usize]);
    let slice = total as f64 / sample.slices.max(1) as f64;
    let t = student_t_95(best.degrees);
    Some(Uncertainty {
        base: best.base,
        half_width_95: t * sqrt(best.variance),
        drift_95: t * sqrt(best.slice_variance) / slice,
        share: counted as f64 / total as f64,
    })
}

/// Method of computing a value from counts.
#[derive(Clone, Copy, Debug)]
pub enum Scaling<'a> {
    /// The method with the smallest error: by cycles, by instructions, or by the strata if there
    /// are any.
    Best(Option<&'a Strata>),
    /// By cycles alone, the method for parts of a session, whose values then add up.
    ByCycles,
}

/// The estimate with its error by the cycles of the slices alone; see the module documentation.
pub fn by_cycles(sample: &Sample) -> Value {
    let by = best_of(sample, &[Base::Cycles]);
    let Some(by) = by.filter(|_| sample.group.slices >= LEAST_SLICES) else {
        return Value::NotMeasured { reason: Reason::TooFewSlices };
    };
    estimated(sample, by.estimate, by.variance, student_t_95(by.degrees), by.slice_variance)
}

/// The estimate with its error; see the module documentation. `strata` has the slices of the event
/// on a counter of a group, if the session keeps slices by their IPC.
pub fn estimate(sample: &Sample, strata: Option<(&Strata, (u16, u8))>) -> Value {
    let Some(best) = best(sample).filter(|_| sample.group.slices >= LEAST_SLICES) else {
        return Value::NotMeasured { reason: Reason::TooFewSlices };
    };
    let t = student_t_95(best.degrees);
    let by_strata = strata.and_then(|(strata, place)| stratified(strata, place, sample));
    let half_width = t * sqrt(best.variance);
    // An estimate by strata outside the interval of the other one shows a program that changed
    // within a stratum.
    let agrees = |by: &Stratified| (by.estimate - best.estimate).abs() <= half_width;
    let better = by_strata.filter(|by| by.half_width_95 < half_width && agrees(by));
    let (estimate, variance, t) =
        better.map_or((best.estimate, best.variance, t), |by| (by.estimate, by.variance, by.t));
    estimated(sample, estimate, variance, t, best.slice_variance)
}

/// The value, with the error of the slices since the group's last one.
fn estimated(sample: &Sample, estimate: f64, variance: f64, t: f64, slice_variance: f64) -> Value {
    let unseen = sample.unseen as f64;
    let stderr = sqrt(variance + unseen * unseen * slice_variance);
    Value::Estimated { estimate: round(estimate) as u64, stderr, half_width_95: t * stderr }
}

struct ByBase {
    base: Base,
    estimate: f64,
    variance: f64,
    /// Addition to the variance for batches of events that few or no counted slices contained.
    batches: f64,
    /// Squared error of the counted slices, in squared events.
    squared_error: f64,
    /// Variance of the residual of one slice, in squared events.
    slice_variance: f64,
    /// Degrees of freedom of the variance.
    degrees: f64,
}

/// Σy, stated for the present share.
fn events(sample: &Sample) -> f64 {
    sample.event.events as f64 + FRACTION * f64::from(sample.event.fraction)
}

fn rate(sample: &Sample, base: Base) -> Option<f64> {
    let x = sample.group.sums[base as usize];
    (x > 0).then(|| events(sample) / x as f64)
}

fn by_base(sample: &Sample, base: Base) -> Option<ByBase> {
    let rate = rate(sample, base)?;
    let total = sample.totals[base as usize] as f64;
    let counted = sample.group.sums[base as usize] as f64;
    let scale = total / counted;
    let uncounted = (1.0 - counted / total).max(0.0);
    let [of_slices, spread] = spread(sample, base, rate);
    let slices = sample.group.slices as f64;
    let squared_error = slices * spread.variance + unseen(sample, base, rate, of_slices.variance);
    // Slices that were counted at another share have another weight.
    let weight = in_ones(sample.group.weight()) / slices;
    let scaled = scale * scale * uncounted * weight;
    Some(ByBase {
        base,
        estimate: rate * total,
        variance: scaled * squared_error,
        batches: scaled * batches(sample),
        squared_error,
        slice_variance: of_slices.variance.max(change(sample, rate * total)),
        degrees: spread.degrees(),
    })
}

/// The squared error of batches of events, if few or no slices had any.
fn batches(sample: &Sample) -> f64 {
    let sizes = sample.event.peaks.map(|peak| peak.events as f64);
    let met = sizes.iter().filter(|size| **size > 0.0).count();
    let slice = sample.totals[Base::Cycles as usize] as f64 / sample.slices.max(1) as f64;
    let evidence = met as f64 / PEAKS as f64;
    let batch = pow(sizes[0].max(1.0), evidence) * pow(slice.max(1.0), (1.0 - evidence) / 2.0);
    if met < PEAKS { UNSEEN * batch * batch } else { 0.0 }
}

/// Variance of one slice if the program enters another phase, by the rule of succession: each slice
/// of a round is equally likely to be that phase's first.
fn change(sample: &Sample, estimate: f64) -> f64 {
    let slices = sample.slices.max(1) as f64;
    let mean = estimate / slices;
    mean * mean * (sample.round as f64 / 3.0 / slices).min(1.0)
}

/// The squared error of slices unlike all counted ones.
fn unseen(sample: &Sample, base: Base, rate: f64, spread: f64) -> f64 {
    let peaks = &sample.event.peaks;
    let beyond = |peak: Peak| peak.events as f64 - rate * peak.bases[base as usize] as f64;
    if peaks[PEAKS - 1].events == 0 {
        let most = peaks.map(beyond).into_iter().fold(0.0, f64::max);
        return UNSEEN * (most * most).max(1.0);
    }
    // A slice with more instructions may deviate further: its excess is scaled to a mean slice.
    let mean = sample.totals[base as usize] as f64 / sample.slices.max(1) as f64;
    let size = |peak: Peak| (mean / (peak.bases[base as usize] as f64).max(1.0)).min(1.0);
    UNSEEN + tail(peaks.map(|peak| size(peak) * beyond(peak)), spread)
}
