//! Metrics: the uses of a core's slots, which a register gives as fractions (Intel's PERF_METRICS).
//!
//! A metric takes no general counter, is counted all the time, and costs a group switch nothing:
//! the register and the counter of slots are read, and set to 0, when slices are folded outside of
//! the overflow interrupt, and when the session is read or switched out.

use tally_abi::Value;

/// Number of fractions in the register.
const FRACTIONS: usize = 8;
/// The register's value of the fraction 1.
const WHOLE: u64 = 0xff;
/// Upper bound of the slots of a cycle.
pub(crate) const MOST_SLOTS: u64 = 8;
/// Standard errors of a half width at 95 %.
const HALF_WIDTH: f64 = 1.96;

/// Metric: the slots of one use, by the place of its fraction in the register, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric(pub u8);

/// Counts of all metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    slots: u64,
    /// Slots of each use, in parts of [`WHOLE`].
    parts: [u64; FRACTIONS],
}

impl Metrics {
    /// The counts while the counter of slots counted `slots`, from 0, and the register got these
    /// fractions: the lowest byte has the first.
    pub fn new(slots: u64, fractions: u64) -> Metrics {
        Metrics { slots, parts: fractions.to_le_bytes().map(|part| slots * u64::from(part)) }
    }

    /// Adds counts.
    pub(crate) fn add(&mut self, more: &Metrics) {
        self.slots += more.slots;
        self.parts.iter_mut().zip(more.parts).for_each(|(part, more)| *part += more);
    }

    /// Counts since they were `before`.
    pub(crate) fn since(&self, before: &Metrics) -> Metrics {
        let mut since = *self;
        since.slots -= before.slots;
        since.parts.iter_mut().zip(before.parts).for_each(|(part, before)| *part -= before);
        since
    }

    /// The slots of a metric's use, rounded.
    pub(crate) fn count(&self, Metric(place): Metric) -> u64 {
        let part = self.parts.get(usize::from(place)).copied().unwrap_or_default();
        (part + WHOLE / 2) / WHOLE
    }

    /// Lower bound of a metric's slots.
    pub(crate) fn least(&self, metric: Metric) -> u64 {
        self.count(metric).saturating_sub(self.slots.div_ceil(WHOLE))
    }

    /// The value of a metric. A fraction errs by at most one unit of the register: the manual does
    /// not say whether the processor rounds or truncates it.
    pub(crate) fn value(&self, metric: Metric) -> Value {
        let half_width_95 = self.slots as f64 / WHOLE as f64;
        let stderr = half_width_95 / HALF_WIDTH;
        Value::Estimated { estimate: self.count(metric), stderr, half_width_95 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_its_fraction_of_the_slots() {
        // 40 % retiring, 20 % bad speculation, no front end, 40 % back end.
        let mut metrics = Metrics::new(1_000_000, 0x6600_3366);
        let counts = || [0, 1, 2, 3].map(Metric);
        assert_eq!(counts().map(|part| metrics.count(part)), [400_000, 200_000, 0, 400_000]);
        let before = metrics;
        metrics.add(&Metrics::new(510, 0x00ff_0000));
        assert_eq!(metrics.since(&before).count(Metric(2)), 510);
        let value = metrics.value(Metric(2));
        let half_width_95 = 1_000_510.0 / 255.0;
        assert_eq!(
            value,
            Value::Estimated { estimate: 510, stderr: half_width_95 / HALF_WIDTH, half_width_95 }
        );
        assert_eq!([0, 2].map(|place| metrics.least(Metric(place))), [400_000 - 3924, 0]);
    }
}
