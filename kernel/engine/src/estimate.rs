//! From the sums of [`crate::moments`] to an estimate with its error.
//!
//! Uses floating point: never in the overflow path.

use libm::sqrt;
use tally_abi::{Value, reading::Reason};

use crate::moments::{Base, EventMoments, GroupMoments, PerBase};

/// All that is known of one event.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The event's slices.
    pub event: EventMoments,
    /// Its group's.
    pub group: GroupMoments,
    /// Of each base, for as long as the session ran: counted all the time, so exact.
    pub totals: PerBase<u64>,
}

/// Paper 000's estimate (section 3): what was counted, scaled up linearly by time. It says nothing
/// of its error. `None` before any time was counted.
pub fn by_time(sample: &Sample) -> Option<f64> {
    rate(sample, Base::Cycles).map(|rate| rate * sample.totals[Base::Cycles as usize] as f64)
}

/// The ratio estimate: the event's rate by the better of the two bases, times the base's exact
/// total.
pub fn estimate(sample: &Sample) -> Value {
    if sample.group.slices < 2 {
        return Value::NotMeasured { reason: Reason::TooFewSlices };
    }
    let by = |base| by_base(sample, base);
    let best =
        Base::ALL.into_iter().filter_map(by).min_by(|a, b| a.variance.total_cmp(&b.variance));
    let Some(best) = best else {
        return Value::NotMeasured { reason: Reason::TooFewSlices };
    };
    let stderr = sqrt(best.variance);
    Value::Estimated {
        estimate: libm::round(best.estimate) as u64,
        stderr,
        half_width_95: 1.96 * stderr,
    }
}

struct ByBase {
    estimate: f64,
    variance: f64,
}

fn rate(sample: &Sample, base: Base) -> Option<f64> {
    let x = sample.group.sums[base as usize];
    (x > 0).then(|| sample.event.events as f64 / x as f64)
}

fn by_base(sample: &Sample, base: Base) -> Option<ByBase> {
    let rate = rate(sample, base)?;
    let (event, group) = (&sample.event, &sample.group);
    let total = sample.totals[base as usize] as f64;
    let counted = group.sums[base as usize] as f64;
    let products = event.products[base as usize] as f64;
    let squares = group.squares[base as usize] as f64;
    let residual = event.squares as f64 - 2.0 * rate * products + rate * rate * squares;
    let n = group.slices as f64;
    let spread = residual.max(0.0) / (2.0 * (n - 1.0));
    let scale = total / counted;
    let uncounted = (1.0 - counted / total).max(0.0);
    Some(ByBase { estimate: rate * total, variance: scale * scale * uncounted * n * spread })
}
