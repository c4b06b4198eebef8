//! The median of measured values.

use statrs::statistics::{Data, OrderStatistics};

/// The middle value, or the mean of the two in the middle; `None` without values.
pub(crate) fn median(values: Vec<f64>) -> Option<f64> {
    (!values.is_empty()).then(|| Data::new(values).median())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(vec![7.0]), Some(7.0));
        assert_eq!(median(Vec::new()), None);
    }
}
