//! Estimates with their errors, from the sums of [`crate::moments`].
//!
//! **Estimate.** Of two bases, cycles and instructions, the exact total X is known, and the part Σx
//! that passed while the event was counted. The ratio estimate of the event's total is X·Σy/Σx, by
//! the base that leaves the smaller error.
//!
//! **Error.** The uncertainty is how far the slices not counted stray from the rate: the residual e
//! = y − (Σy/Σx)·x of a slice. A group's slices are at random places in each round, so the variance
//! that matters is that of residuals *within a round*. [`crate::moments`] has sums of differences
//! between slices closer than a round (near), as they are within one, and between slices further
//! apart (far). Both estimate it; but where the near ones are lower beyond chance, they alone do.
//! And as each group has every place of the rounds equally often in a block of them, an effect of
//! the same place of every round evens out: where the sums of whole blocks differ less beyond
//! chance, they estimate the variance.
//!
//! **Few events.** Counts that happen to be all the same, such as all zero, do not show that there
//! is no spread. To the squared error of the counted slices, [`UNSEEN`] squared events are added:
//! no event then means at most three per share counted, the rule of three. Where fewer slices had
//! events than peaks are kept, it is that many of the largest of them.
//!
//! **Heavy tails.** Where the largest slice is far above the next, larger ones are likely among the
//! slices not counted, neither in the estimate nor in the spread. The gap shows how far they may
//! reach; what exceeds a normal distribution's gap widens the interval ([`TAIL`]).
//!
//! **Two bases.** Cycles and instructions of all slices are known, so it is known how far the
//! counted slices are from having the same instructions a cycle. Where the slices differ in that,
//! the regression of their events on it says how far the estimate is off (Cochran, section 7.1);
//! what exceeds the standard error widens the interval. And where they differ too little to explain
//! it, there were slices unlike all that were counted, a start-up say, whose events may be
//! [`UNMET`] times more.
//!
//! **Few slices.** The spread itself is uncertain; Student's t widens the interval accordingly.
//! With fewer than [`LEAST_SLICES`] slices there is no estimate: their residuals say next to
//! nothing.
//!
//! **Slices since the last.** The slices since the group's last one are no random sample of the
//! session yet: all of them may stray in the same direction, by the spread of one slice each
//! (`unseen`).
//!
//! Decisions 11, 18 and 20 have the mathematics, the sources and the measurements.
//!
//! Uses floating point: never in the overflow path.

use libm::{round, sqrt};
use tally_abi::{Value, reading::Reason};

use crate::moments::{
    BLOCKS, Base, EventMoments, FAR, GroupMoments, NEAR, ONE, PEAKS, Peak, PerBase, WEIGHT,
};

/// The fewest slices of which there is an estimate.
pub const LEAST_SLICES: u64 = 4;

/// Squared events that might have been seen or missed by chance in the slices counted: (3 / 1.96)².
const UNSEEN: f64 = 2.343;
/// Squared gaps between the largest residuals that are added to the squared error, and the
/// variances that a squared gap has to exceed for that: chosen by simulation, for 93 to 97 %
/// coverage of streams from a sine to Pareto's with a tail of 2.5 (`cargo xtask study estimators`).
const TAIL: f64 = 30.0;
/// See [`TAIL`].
const NORMAL_GAP: f64 = 3.0;
/// Squared standard deviations of chance beyond which a difference is significant: one difference
/// in thirteen is that large by chance.
const SIGNIFICANT: f64 = 2.0;
/// Standard deviations of chance beyond which the counted slices' instructions a cycle show that
/// there were slices unlike all of them.
const CHANCE: f64 = 2.0;
/// By how many times their relative difference in instructions such slices may differ in events.
const UNMET: f64 = 4.0;
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
    /// Slices of the session since the group's last one.
    pub unseen: u64,
    /// Of each base, for as long as the session ran: counted all the time, so exact.
    pub totals: PerBase<u64>,
}

/// The error of an estimate as the bank publishes it, to be brought up to date by its readers
/// ([`tally_abi::bank::half_width`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uncertainty {
    /// The base of the estimate.
    pub base: Base,
    /// Half the width of the 95 % interval, in events, without what slices since the last may add.
    pub half_width_95: f64,
    /// How far events of slices since the last may stray at 95 %, in events per count of the base.
    pub drift_95: f64,
    /// The share of the base in which the event was counted, 0 to 1.
    pub share: f64,
}

/// Paper 000's estimate (section 3): linear scaling by time, without an error. `None` before any
/// time was counted.
pub fn by_time(sample: &Sample) -> Option<f64> {
    rate(sample, Base::Cycles).map(|rate| rate * sample.totals[Base::Cycles as usize] as f64)
}

/// The base that leaves the smaller error, or cycles before anything was counted.
pub fn best_base(sample: &Sample) -> Base {
    best(sample).map_or(Base::Cycles, |best| best.base)
}

fn best(sample: &Sample) -> Option<ByBase> {
    let by = |base| by_base(sample, base);
    let bases = Base::ALL.into_iter().filter_map(by);
    let best = bases.min_by(|a, b| a.variance.total_cmp(&b.variance))?;
    let variance = best.variance + imbalance(sample, &best);
    Some(ByBase { variance, ..best })
}

/// The squared error that is to be expected as the counted slices have more or fewer instructions a
/// cycle than all slices, beyond what the variance of `best` has of it already.
fn imbalance(sample: &Sample, best: &ByBase) -> f64 {
    let [cycles, instructions] = sample.group.sums.map(|sum| sum as f64);
    let [all_cycles, all_instructions] = sample.totals.map(|sum| sum as f64);
    if cycles == 0.0 || instructions == 0.0 {
        return 0.0;
    }
    let ipc = instructions / cycles;
    let missing = all_instructions - ipc * all_cycles;
    let slices = Regression::of(sample, ipc);
    // Slices like those that were counted: their events follow their instructions.
    let by_cycles = events(sample) / cycles * all_cycles;
    let regressed = slices.slope.map_or(best.estimate, |slope| by_cycles + slope * missing);
    let expected = (regressed - best.estimate).abs() - sqrt(best.variance);
    // Slices unlike any that was counted: their events may be as many times more or fewer.
    let scale = all_cycles / cycles;
    let by_chance = scale * sqrt((1.0 - 1.0 / scale).max(0.0) * slices.total_variance);
    let beyond = (missing.abs() - CHANCE * by_chance).max(0.0) / (ipc * all_cycles);
    let unmet = UNMET * beyond * best.estimate;
    expected.max(0.0) * expected.max(0.0) + unmet * unmet
}

/// How a group's slices differ in instructions, by pairs of them, and an event with that.
struct Regression {
    /// Events for each instruction more in a cycle; none where the slices do not differ.
    slope: Option<f64>,
    /// Of the instructions in all counted slices, in squared instructions.
    total_variance: f64,
}

impl Regression {
    /// At `ipc` instructions a cycle. A slice's cycles are its length, and instructions that come
    /// with a longer slice come in proportion: so the sums of products of both need not be known.
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

/// The variance of one slice of the event, relative to the square of the mean slice, which decides
/// how many slices it needs. `None` while it is not known.
pub fn relative_spread(sample: &Sample) -> Option<f64> {
    let best = best(sample)?;
    let mean = best.estimate / sample.slices as f64;
    let slices = sample.group.slices;
    (slices >= LEAST_SLICES && mean > 0.0)
        .then(|| best.squared_error / slices as f64 / (mean * mean))
}

/// The error of the ratio estimate, in parts. `None` while there is no estimate.
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

/// The ratio estimate with its error; see the module.
pub fn estimate(sample: &Sample) -> Value {
    match best(sample) {
        Some(best) if sample.group.slices >= LEAST_SLICES => {
            let unseen = sample.unseen as f64;
            let stderr = sqrt(best.variance + unseen * unseen * best.slice_variance);
            Value::Estimated {
                estimate: round(best.estimate) as u64,
                stderr,
                half_width_95: student_t_95(best.degrees) * stderr,
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
    /// Of the residual of one slice, in squared events.
    slice_variance: f64,
    /// Degrees of freedom of the variance.
    degrees: f64,
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
    let [of_slices, spread] = spread(sample, base, rate);
    let slices = sample.group.slices as f64;
    let squared_error = slices * spread.variance + unseen(sample, base, rate, of_slices.variance);
    // Slices that were counted at another share count for more, or less.
    let weight = in_ones(sample.group.weight()) / slices;
    Some(ByBase {
        base,
        estimate: rate * total,
        variance: scale * scale * uncounted * weight * squared_error,
        squared_error,
        slice_variance: of_slices.variance,
        degrees: spread.degrees(),
    })
}

/// The squared error of slices unlike all that were counted.
fn unseen(sample: &Sample, base: Base, rate: f64, spread: f64) -> f64 {
    let peaks = &sample.event.peaks;
    let beyond = |peak: Peak| peak.events as f64 - rate * peak.bases[base as usize] as f64;
    if peaks[PEAKS - 1].events == 0 {
        let most = peaks.map(beyond).into_iter().fold(0.0, f64::max);
        return UNSEEN * (most * most).max(1.0);
    }
    // A slice with more instructions may stray further: its excess is scaled to a mean slice.
    let mean = sample.totals[base as usize] as f64 / sample.slices.max(1) as f64;
    let size = |peak: Peak| (mean / (peak.bases[base as usize] as f64).max(1.0)).min(1.0);
    let mut beyond = peaks.map(|peak| (size(peak) * beyond(peak)).max(0.0));
    beyond.sort_by(f64::total_cmp);
    let [least, .., most] = beyond;
    let gap = (most - least) * (most - least);
    UNSEEN + TAIL * (gap - NORMAL_GAP * spread).max(0.0)
}

/// A variance of residuals, and the number of independent differences that it is worth.
#[derive(Clone, Copy)]
struct Spread {
    variance: f64,
    pairs: f64,
}

/// The variance of residuals: between slices, and the part that does not even out over blocks.
fn spread(sample: &Sample, base: Base, rate: f64) -> [Spread; 2] {
    let of = |kind| Spread::of(sample, base, rate, kind);
    let (near, far, blocks) = (of(NEAR), of(FAR), of(BLOCKS));
    // Slices that are further apart than those of a round differ more, if they do not differ less.
    let slices = near.or(far).fall_to(near);
    // An effect of the same place of every round evens out, and is not in the blocks' sums.
    [slices, slices.fall_to(blocks)]
}

impl Spread {
    fn of(sample: &Sample, base: Base, rate: f64, kind: usize) -> Spread {
        let (event, group) = (&sample.event.pairs[kind], &sample.group.pairs[kind]);
        let products = event.products[base as usize] as f64;
        let squares = group.squares[base as usize] as f64;
        let residual = event.squares as f64 - 2.0 * rate * products + rate * rate * squares;
        let (weight, squared) = (in_ones(group.weight), in_ones(group.squared_weight));
        if weight == 0.0 {
            return Spread { variance: 0.0, pairs: 0.0 };
        }
        // Of the slices of one round, all of which are paired with its first, four are worth as
        // much as any number.
        let worth = (4.0 / f64::from(sample.group.share())).min(1.0);
        let variance = residual.max(0.0) / WEIGHT as f64 / 2.0 / weight;
        Spread { variance, pairs: worth * weight * weight / squared }
    }

    /// The mean of two estimates of the same.
    fn or(self, other: Spread) -> Spread {
        let pairs = self.pairs + other.pairs;
        let sum = self.pairs * self.variance + other.pairs * other.variance;
        Spread { variance: if pairs > 0.0 { sum / pairs } else { 0.0 }, pairs }
    }

    /// `other`, if it is lower by more than chance.
    fn fall_to(self, other: Spread) -> Spread {
        let fall = self.variance - other.variance;
        // If they were the same.
        let chance = self.chance() + Spread { variance: self.variance, ..other }.chance();
        if fall > 0.0 && other.pairs > 0.0 && fall * fall > SIGNIFICANT * chance {
            other
        } else {
            self
        }
    }

    /// Its own variance: 3 / m is that of a mean square of m successive differences of a normal
    /// variable, relative to its own square (von Neumann 1941).
    fn chance(self) -> f64 {
        3.0 * self.variance * self.variance / self.pairs
    }

    /// Degrees of freedom: the variance of a mean square of successive differences is that of as
    /// many independent ones.
    fn degrees(self) -> f64 {
        let pairs = self.pairs.max(1.0);
        2.0 * pairs * pairs / (3.0 * pairs - 1.0)
    }
}

fn in_ones(sum: u64) -> f64 {
    sum as f64 / ONE as f64
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
