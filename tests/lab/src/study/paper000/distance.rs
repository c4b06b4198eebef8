//! The Kullback-Leibler distance of two distributions over time (paper 000, section 6.2).
//!
//! The paper does not say how it treats an interval in which the sampled slice has no event and the
//! full count has some: its distance would be infinite. Here such a slice counts as half an event,
//! as in the estimate of Krichevsky and Trofimov, *The performance of universal encoding* (1981);
//! so does an estimate below that.

/// Count of a sampled interval without an event, in events.
const NONE_SAMPLED: f64 = 0.5;
/// Cycles or instructions per event or cause up to which it is significant; rarer ones are the
/// paper's N/A.
const SIGNIFICANT: u64 = 10_000;

/// Counts of a part of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// Number of events.
    pub(super) events: u64,
    /// Cycles of the part.
    pub(super) part: u64,
    /// Cycles of the interval.
    pub(super) whole: u64,
}

impl Sample {
    /// The part's count in the whole interval, by linear scaling.
    pub(super) fn scaled(self) -> f64 {
        self.scale(self.events as f64)
    }

    /// The scaled count for a distribution, in which no interval has probability 0.
    fn possible(self) -> f64 {
        self.scale((self.events as f64).max(NONE_SAMPLED))
    }

    fn scale(self, events: f64) -> f64 {
        events * self.whole as f64 / self.part.max(1) as f64
    }
}

/// The distance of sampled counts from full ones, in bits; `None` without an event.
pub(super) fn of_samples(full: &[u64], sampled: &[Sample]) -> Option<f64> {
    distance(full, sampled.iter().map(|sample| sample.possible()))
}

/// The distance of estimates, or of other full counts, from full ones, in bits; `None` without an
/// event.
pub(super) fn of_estimates(full: &[u64], other: &[f64]) -> Option<f64> {
    distance(full, other.iter().map(|count| count.max(NONE_SAMPLED)))
}

/// Σ P log₂(P/P′) over intervals, each of which has a count above 0 in P′.
fn distance(full: &[u64], other: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let sum = full.iter().sum::<u64>() as f64;
    let other_sum: f64 = other.clone().sum();
    let term = |(full, other): (&u64, f64)| {
        let (p, q) = (*full as f64 / sum, other / other_sum);
        if p > 0.0 { p * (p / q).log2() } else { 0.0 }
    };
    // The sum is not below 0 (Gibbs' inequality), but rounding can make it so.
    (sum > 0.0).then(|| full.iter().zip(other).map(term).sum::<f64>().max(0.0))
}

/// Returns whether `count` events in `of` cycles or instructions are significant.
pub(super) fn is_significant(count: u64, of: u64) -> bool {
    count.saturating_mul(SIGNIFICANT) >= of && count > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_distributions_have_no_distance_whatever_their_sums() {
        assert_eq!(of_estimates(&[10, 20, 30], &[1.0, 2.0, 3.0]), Some(0.0));
        let sampled = [10, 20, 30].map(|events| Sample { events, part: 1, whole: 10 });
        assert_eq!(of_samples(&[100, 200, 300], &sampled), Some(0.0));
        assert_eq!(of_estimates(&[0, 0], &[1.0, 2.0]), None);
    }

    #[test]
    fn the_distance_is_in_bits() {
        // Twice as much in one half of the time: 2/3 log2(4/3) + 1/3 log2(2/3).
        let expected = 2.0 / 3.0 * (4.0_f64 / 3.0).log2() + 1.0 / 3.0 * (2.0_f64 / 3.0).log2();
        let got = of_estimates(&[200, 100], &[50.0, 50.0]).unwrap();
        assert!((got - expected).abs() < 1e-12, "{got}");
        // All in one of four intervals, and P′ is even: two bits.
        assert!((of_estimates(&[0, 8, 0, 0], &[5.0; 4]).unwrap() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn an_interval_without_a_sampled_event_counts_as_half_an_event() {
        let of = |events| Sample { events, part: 10, whole: 100 };
        let got = of_samples(&[5, 5], &[of(0), of(1)]).unwrap();
        let expected = 0.5 * (0.5 * 3.0_f64).log2() + 0.5 * (0.5 * 1.5_f64).log2();
        assert!((got - expected).abs() < 1e-12, "{got}");
        assert_eq!((of(0).scaled(), of(3).scaled()), (0.0, 30.0));
    }

    #[test]
    fn rare_events_are_not_significant() {
        assert!(is_significant(100, 1_000_000) && !is_significant(99, 1_000_000));
        assert!(!is_significant(0, 0));
    }
}
