//! Repetitions of one measurement, and their median.

use crate::median::median;

/// The results of repeated measurements; never empty.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Samples(pub(super) Vec<f64>);

impl Samples {
    /// The median.
    pub(super) fn median(&self) -> f64 {
        median(self.0.clone()).unwrap_or_default()
    }

    pub(super) fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(super) fn most(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_does_not_depend_on_the_order() {
        assert_eq!(Samples(vec![3.0, 1.0, 20.0]).median(), 3.0);
        assert_eq!(Samples(vec![4.0, 1.0, 2.0, 30.0]).median(), 3.0);
        let samples = Samples(vec![3.0, 1.0, 2.0]);
        assert_eq!((samples.least(), samples.most()), (1.0, 3.0));
    }
}
