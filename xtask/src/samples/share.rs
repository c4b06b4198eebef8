//! The share of the events that samples stand for, with its 95 % interval.

use serde::Serialize;

/// The 97.5 % quantile of the normal distribution.
pub(super) const Z: f64 = 1.959_964;

/// Samples and the events that they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Weight {
    /// Number of samples.
    pub(crate) samples: u64,
    /// Number of events.
    pub(crate) events: u64,
    /// The sum of the squares of each sample's events.
    squares: f64,
}

impl Weight {
    /// Adds a sample that stands for `events` events.
    pub(crate) fn add(&mut self, events: u64) {
        self.samples += 1;
        self.events += events;
        self.squares += (events as f64).powi(2);
    }

    /// Adds the samples of another weight.
    pub(crate) fn extend(&mut self, other: &Weight) {
        self.samples += other.samples;
        self.events += other.events;
        self.squares += other.squares;
    }

    /// The share of these samples among `all`.
    ///
    /// The interval is Wilson's score interval ("Probable inference, the law of succession, and
    /// statistical inference", 1927), which stays between 0 and 1, for Kish's effective number of
    /// samples ("Survey Sampling", 1965), as samples stand for different numbers of events. Samples
    /// are treated as independent draws. The interval does not include skid, which
    /// [`Self::share_with_skid`] adds.
    pub(crate) fn share_of(&self, all: &Weight) -> Share {
        let total = all.events as f64;
        if all.events == 0 {
            return Share { share: 0.0, low_95: 0.0, high_95: 1.0 };
        }
        let share = self.events as f64 / total;
        Share::of_draws(share, all.draws())
    }

    /// Kish's effective number of samples: so many samples of equal events are worth as much.
    pub(crate) fn draws(&self) -> f64 {
        (self.events as f64).powi(2) / self.squares
    }
}

impl Weight {
    /// Share as of [`Self::share_of`], with an interval from the share without the samples
    /// `leaving` these, whose events can have happened elsewhere, to the share with the samples
    /// `coming` here, whose events can have happened here: the address of a sample is some
    /// instructions late.
    pub(crate) fn share_with_skid(&self, leaving: &Weight, coming: &Weight, all: &Weight) -> Share {
        let staying = Weight {
            samples: self.samples - leaving.samples,
            events: self.events - leaving.events,
            squares: self.squares - leaving.squares,
        };
        let mut most = *self;
        most.extend(coming);
        let (low_95, high_95) = (staying.share_of(all).low_95, most.share_of(all).high_95);
        Share { low_95, high_95, ..self.share_of(all) }
    }
}

/// A share, 0 to 1, and the ends of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Share {
    pub(crate) share: f64,
    pub(crate) low_95: f64,
    pub(crate) high_95: f64,
}

impl Share {
    /// A share among `n` independent draws, with Wilson's interval ([`Weight::share_of`]).
    pub(crate) fn of_draws(share: f64, n: f64) -> Share {
        let (center, z2) = (share + Z * Z / (2.0 * n), Z * Z / n);
        let half = Z * (share * (1.0 - share) / n + z2 / (4.0 * n)).sqrt();
        Share {
            share,
            low_95: ((center - half) / (1.0 + z2)).clamp(0.0, share),
            high_95: ((center + half) / (1.0 + z2)).clamp(share, 1.0),
        }
    }

    /// The share as text of 8 columns, as perf prints it.
    pub(crate) fn percent(&self) -> String {
        format!("{:>7.2}%", 100.0 * self.share)
    }

    /// The interval as text of 14 columns.
    pub(crate) fn interval(&self) -> String {
        format!("{:>5.1} – {:>5.1}%", 100.0 * self.low_95, 100.0 * self.high_95)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(samples: u64) -> Weight {
        let mut weight = Weight::default();
        (0..samples).for_each(|_| weight.add(1000));
        weight
    }

    /// Example of Newcombe, "Two-sided confidence intervals for the single proportion" (1998),
    /// table I: 81 of 263 have the interval 0.2553 to 0.3662.
    #[test]
    fn equal_samples_have_wilson_s_interval() {
        let share = equal(81).share_of(&equal(263));
        assert!((share.low_95 - 0.2553).abs() < 1e-4, "{share:?}");
        assert!((share.high_95 - 0.3662).abs() < 1e-4, "{share:?}");
    }

    #[test]
    fn unequal_samples_are_worth_fewer() {
        let mut uneven = equal(100);
        uneven.add(900_000);
        let (even, uneven) = (equal(50).share_of(&equal(100)), equal(100).share_of(&uneven));
        assert!(uneven.high_95 - uneven.low_95 > 2.0 * (even.high_95 - even.low_95));
    }

    #[test]
    fn skid_widens_the_interval_by_the_samples_that_can_be_elsewhere() {
        let (own, all) = (equal(30), equal(100));
        let still = own.share_with_skid(&equal(0), &equal(0), &all);
        assert_eq!(still, own.share_of(&all));
        let moved = own.share_with_skid(&equal(20), &equal(10), &all);
        assert_eq!(moved.share, 0.3);
        assert_eq!(moved.low_95, equal(10).share_of(&all).low_95);
        assert_eq!(moved.high_95, equal(40).share_of(&all).high_95);
    }

    #[test]
    fn intervals_stay_between_none_and_all() {
        let none = Weight::default().share_of(&equal(3));
        assert!(none.low_95 == 0.0 && none.share == 0.0 && none.high_95 > 0.5);
        let all = equal(3).share_of(&equal(3));
        assert!(all.high_95 == 1.0 && all.share == 1.0 && all.low_95 < 0.5);
        let unknown = Weight::default().share_of(&Weight::default());
        assert_eq!((unknown.low_95, unknown.high_95), (0.0, 1.0));
    }
}
