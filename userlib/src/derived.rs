//! Readings that no counter counts: sums and differences of two events.

use tally_abi::{Reading, Value};

/// Returns the sum of two readings, or the first minus the second.
///
/// The error is the sum of both errors, in events, which is valid whatever the correlation of both:
/// the standard deviation of a sum or a difference is at most the sum of the standard deviations. A
/// negative difference is reported as 0.
pub fn reading(first: &Reading, second: &Reading, subtracts: bool) -> Reading {
    let join = |a: u64, b: u64| if subtracts { a.saturating_sub(b) } else { a.saturating_add(b) };
    let (value, is_measured) = match (first.value, second.value) {
        (Value::Exact { count: a }, Value::Exact { count: b }) => {
            (Value::Exact { count: join(a, b) }, true)
        }
        (not @ Value::NotMeasured { .. }, _) | (_, not @ Value::NotMeasured { .. }) => (not, false),
        (a, b) => {
            let ((a, a_stderr, a_half), (b, b_stderr, b_half)) = (parts(a), parts(b));
            let (stderr, half_width_95) = (a_stderr + b_stderr, a_half + b_half);
            (Value::Estimated { estimate: join(a, b), stderr, half_width_95 }, true)
        }
    };
    Reading {
        value,
        // The counts of the events give no lower bound of their difference.
        counted: if subtracts { 0 } else { first.counted.saturating_add(second.counted) },
        // Without a value of one event, the count of the other has no meaning.
        counted_cycles: if is_measured {
            first.counted_cycles.min(second.counted_cycles)
        } else {
            0
        },
        total_cycles: first.total_cycles,
        slices: first.slices.min(second.slices),
    }
}

/// Returns the count, the standard error and the half width of the interval.
fn parts(value: Value) -> (u64, f64, f64) {
    match value {
        Value::Exact { count } => (count, 0.0, 0.0),
        Value::Estimated { estimate, stderr, half_width_95 } => (estimate, stderr, half_width_95),
        Value::NotMeasured { .. } => (0, 0.0, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use tally_abi::reading::Reason;

    use super::*;

    fn of(value: Value) -> Reading {
        Reading { value, counted: 5, counted_cycles: 10, total_cycles: 20, slices: 4 }
    }

    fn estimated(estimate: u64, stderr: f64) -> Value {
        Value::Estimated { estimate, stderr, half_width_95: 2.0 * stderr }
    }

    #[test]
    fn errors_add_up() {
        let (a, b) = (of(estimated(100, 3.0)), of(estimated(40, 4.0)));
        assert_eq!(reading(&a, &b, false).value, estimated(140, 7.0));
        assert_eq!(reading(&a, &b, true).value, estimated(60, 7.0));
        assert_eq!(reading(&b, &a, true).value, estimated(0, 7.0));
        assert_eq!(reading(&a, &of(Value::Exact { count: 1 }), true).value, estimated(99, 3.0));
    }

    #[test]
    fn two_exact_counts_are_an_exact_one() {
        let (a, b) = (of(Value::Exact { count: 9 }), of(Value::Exact { count: 4 }));
        assert_eq!(reading(&a, &b, true).value, Value::Exact { count: 5 });
        assert_eq!((reading(&a, &b, false).counted, reading(&a, &b, true).counted), (10, 0));
    }

    #[test]
    fn one_that_was_not_measured_leaves_no_value() {
        let not = of(Value::NotMeasured { reason: Reason::TooFewSlices });
        let sum = reading(&of(estimated(100, 3.0)), &not, false);
        assert_eq!((sum.value, sum.counted_cycles), (not.value, 0));
    }
}
