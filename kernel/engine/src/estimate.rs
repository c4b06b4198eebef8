//! From the sums of [`crate::moments`] to an estimate with its error.
//!
//! **Estimate.** Of two bases, cycles and instructions, the exact total X is known, and how much of
//! it, Σx, passed while the event was counted. The ratio estimate of the event's total is X·Σy/Σx,
//! by the base that leaves the smaller error.
//!
//! **Error.** What is uncertain is how far the slices not counted stray from the rate: the residual
//! e = y − (Σy/Σx)·x of a slice. A group's slices are at random places in each round, so the variance
//! that matters is that of residuals *within a round*, between two slices that lie a third of a round
//! apart on average. [`crate::moments`] keeps the differences between slices that are further apart
//! where a group has few slices in a round. So where close pairs differ less than distant ones, the
//! measure follows a straight line back to that distance, as far as the difference is beyond chance.
//!
//! **Few events.** Counts that happen to be all the same, all zero say, do not show that there is no
//! spread. To the squared error of what was counted, [`UNSEEN`] squared events are added: nothing
//! seen then means at most three per share counted, the rule of three. Where fewer slices had events
//! than are remembered one by one, it is that many of the largest of them.
//!
//! **Heavy tails.** Where the largest slice stands far from the next, there are larger ones that
//! nobody has met, neither in the estimate nor in the spread. The gap says how far they may reach;
//! more than a normal distribution would have of it widens the interval ([`TAIL`]).
//!
//! **Few slices.** The spread itself is uncertain; Student's t widens the interval accordingly.
//!
//! Decision 11 has the mathematics, the sources and what it was measured to do.
//!
//! Uses floating point: never in the overflow path.

use libm::{round, sqrt};
use tally_abi::{Value, reading::Reason};

use crate::moments::{Base, EventMoments, GroupMoments, ONE, PEAKS, Peak, PerBase};

/// Squared events that might have been seen or missed by chance in the slices counted: (3 / 1.96)².
const UNSEEN: f64 = 2.343;
/// Squared gaps between the largest residuals that are added to the squared error, and the variances
/// that a squared gap has to exceed for that: chosen by simulation, for 93 to 97 % coverage of streams
/// from a sine to Pareto's with a tail of 2.5 (`cargo xtask study estimators`).
const TAIL: f64 = 18.0;
/// See [`TAIL`].
const NORMAL_GAP: f64 = 5.0;
/// 2⁻³².
const FRACTION: f64 = 1.0 / 4_294_967_296.0;

/// All that is known of one event.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The event's slices.
    pub event: EventMoments,
    /// Its group's.
    pub group: GroupMoments,
    /// Slices in a round.
    pub round: u64,
    /// Slices of the session so far, of whatever group.
    pub slices: u64,
    /// Of each base, for as long as the session ran: counted all the time, so exact.
    pub totals: PerBase<u64>,
}

/// Paper 000's estimate (section 3): what was counted, scaled up linearly by time. It says nothing
/// of its error. `None` before any time was counted.
pub fn by_time(sample: &Sample) -> Option<f64> {
    rate(sample, Base::Cycles).map(|rate| rate * sample.totals[Base::Cycles as usize] as f64)
}

/// The base that leaves the smaller error, or cycles before anything was counted.
pub fn best_base(sample: &Sample) -> Base {
    best(sample).map_or(Base::Cycles, |best| best.base)
}

fn best(sample: &Sample) -> Option<ByBase> {
    let by = |base| by_base(sample, base);
    Base::ALL.into_iter().filter_map(by).min_by(|a, b| a.variance.total_cmp(&b.variance))
}

/// The variance of one slice of the event, relative to the square of the mean slice: what decides how
/// many slices it needs. `None` while it is not known.
pub fn relative_spread(sample: &Sample) -> Option<f64> {
    let best = best(sample)?;
    let mean = best.estimate / sample.slices as f64;
    let slices = sample.group.slices;
    (slices >= 2 && mean > 0.0).then(|| best.squared_error / slices as f64 / (mean * mean))
}

/// The ratio estimate with its error; see the module.
pub fn estimate(sample: &Sample) -> Value {
    match best(sample) {
        Some(best) if sample.group.slices >= 2 => {
            let stderr = sqrt(best.variance);
            Value::Estimated {
                estimate: round(best.estimate) as u64,
                stderr,
                half_width_95: student_t_95(degrees(sample)) * stderr,
            }
        }
        _ => Value::NotMeasured { reason: Reason::TooFewSlices },
    }
}

struct ByBase {
    base: Base,
    estimate: f64,
    variance: f64,
    /// Of what was counted, in squared events.
    squared_error: f64,
}

/// Σy, at the share of now.
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
    let spread = spread(sample, base, rate);
    let slices = sample.group.slices as f64;
    let squared_error = slices * spread + unseen(sample, base, rate, spread);
    // Slices that were counted at another share count for more, or less.
    let weight = in_ones(sample.group.weight()) / slices;
    Some(ByBase {
        base,
        estimate: rate * total,
        variance: scale * scale * uncounted * weight * squared_error,
        squared_error,
    })
}

/// The squared error that may be in slices of which nothing like them was seen.
fn unseen(sample: &Sample, base: Base, rate: f64, spread: f64) -> f64 {
    let peaks = &sample.event.peaks;
    let beyond = |peak: Peak| peak.events as f64 - rate * peak.bases[base as usize] as f64;
    let mut beyond = peaks.map(|peak| beyond(peak).max(0.0));
    beyond.sort_by(f64::total_cmp);
    let [least, .., most] = beyond;
    if peaks[PEAKS - 1].events == 0 {
        return UNSEEN * (most * most).max(1.0);
    }
    let gap = (most - least) * (most - least);
    UNSEEN + TAIL * (gap - NORMAL_GAP * spread).max(0.0)
}

/// The variance of residuals within a round.
fn spread(sample: &Sample, base: Base, rate: f64) -> f64 {
    let [near, far] = [0, 1].map(|distance| {
        let (event, group) = (&sample.event.pairs[distance], &sample.group.pairs[distance]);
        let products = event.products[base as usize] as f64;
        let squares = group.squares[base as usize] as f64;
        let residual = event.squares as f64 - 2.0 * rate * products + rate * rate * squares;
        let (pairs, distance) = (in_ones(group.pairs), in_ones(group.distance));
        Half { pairs, distance, sum: residual.max(0.0) / 2.0 }
    });
    let pairs = near.pairs + far.pairs;
    let mean = if pairs > 0.0 { (near.sum + far.sum) / pairs } else { 0.0 };
    if near.pairs == 0.0 || far.pairs == 0.0 {
        return mean;
    }
    let apart = far.distance / far.pairs - near.distance / near.pairs;
    let within = (sample.round as f64 + 1.0) / 3.0;
    let back = ((near.distance + far.distance) / pairs - within).max(0.0);
    let reach = back / apart;
    let fall = (far.sum / far.pairs - near.sum / near.pairs) * reach;
    // The variance of `fall` if distance did not matter: 3 / m is that of a mean square of m
    // successive differences of a normal variable, relative to its own square (von Neumann 1941).
    let chance = 3.0 * (mean * reach) * (mean * reach) * (1.0 / near.pairs + 1.0 / far.pairs);
    let beyond_chance = if fall > 0.0 { (fall - chance / fall).max(0.0) } else { 0.0 };
    // A line through the origin is as steep as it gets.
    let least = mean * (1.0 - back / (back + within));
    (mean - beyond_chance).max(least)
}

struct Half {
    pairs: f64,
    distance: f64,
    /// Σ of half the squared differences.
    sum: f64,
}

fn in_ones(sum: u64) -> f64 {
    sum as f64 / ONE as f64
}

/// The degrees of freedom of the spread: those of a mean square of successive differences (von
/// Neumann 1941: its variance is that of as many independent ones). Of the slices of one round, all
/// of which are set against its first, four are worth as much as any number.
fn degrees(sample: &Sample) -> f64 {
    let share = f64::from(sample.group.share());
    let n = (sample.group.slices as f64 * (4.0 / share).min(1.0)).max(2.0);
    2.0 * (n - 1.0) * (n - 1.0) / (3.0 * n - 4.0)
}

/// The 97.5 % quantile of Student's t.
fn student_t_95(degrees: f64) -> f64 {
    /// Of 1/degrees and quantile; between them the quantile is close to linear.
    const TABLE: [(f64, f64); 12] = [
        (0.0, 1.960),
        (1.0 / 60.0, 2.000),
        (1.0 / 30.0, 2.042),
        (1.0 / 20.0, 2.086),
        (1.0 / 12.0, 2.179),
        (1.0 / 8.0, 2.306),
        (1.0 / 6.0, 2.447),
        (1.0 / 5.0, 2.571),
        (1.0 / 4.0, 2.776),
        (1.0 / 3.0, 3.182),
        (1.0 / 2.0, 4.303),
        (1.0, 12.706),
    ];
    let x = (1.0 / degrees.max(1.0)).clamp(0.0, 1.0);
    let mut spans = TABLE.windows(2).filter_map(|span| <[_; 2]>::try_from(span).ok());
    let span = spans.find(|[_, (upper, _)]| x <= *upper);
    span.map_or(12.706, |[(x0, t0), (x1, t1)]| t0 + (t1 - t0) * (x - x0) / (x1 - x0))
}
