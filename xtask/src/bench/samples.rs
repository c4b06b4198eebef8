//! Repetitions of one measurement, and their median.

/// The results of repeated measurements; never empty.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Samples(pub(super) Vec<f64>);

impl Samples {
    /// The median: the middle value, or the mean of the two in the middle.
    pub(super) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let half = sorted.len() / 2;
        match sorted.len() % 2 {
            0 => f64::midpoint(sorted[half - 1], sorted[half]),
            _ => sorted[half],
        }
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
