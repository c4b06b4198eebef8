//! Adjustment of estimated parts to their whole.

/// Adjusts the parts so that they add up to `whole` and none is below 0. The difference, and the
/// amount of parts below 0, is shared by the other parts in proportion to their squared half
/// widths, so that uncertain parts change most. If all parts are exact, each changes in proportion
/// to its value.
pub(super) fn close(values: &mut [f64], squares: &[f64], whole: f64) {
    share(values, squares, whole - values.iter().sum::<f64>());
    // Each turn raises at least one part to 0, where it stays.
    for _ in 0..values.len() {
        let missing: f64 = values.iter().map(|value| (-value).max(0.0)).sum();
        values.iter_mut().for_each(|value| *value = value.max(0.0));
        let all: f64 = values.iter().sum();
        if missing == 0.0 {
            return;
        }
        if all <= missing {
            // The whole is nothing, so all parts are 0.
            return values.fill(0.0);
        }
        share(values, squares, -missing);
    }
}

/// Adds `amount` to the parts above 0, or to all parts if none is above 0.
fn share(values: &mut [f64], squares: &[f64], amount: f64) {
    let none = values.iter().all(|value| *value <= 0.0);
    let takes = |value: f64| none || value > 0.0;
    let size = |value: f64| if none { 1.0 } else { value.max(0.0) };
    let all: f64 = values.iter().map(|value| size(*value)).sum();
    let taking = values.iter().zip(squares).filter(|(value, _)| takes(**value));
    let uncertain: f64 = taking.map(|(_, square)| square).sum();
    for (value, square) in values.iter_mut().zip(squares).filter(|(value, _)| takes(**value)) {
        let part = if uncertain > 0.0 { square / uncertain } else { size(*value) / all };
        *value += amount * part;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_are_never_below_0_and_add_up(
            parts in prop::collection::vec((-10.0..100.0f64, 0.0..50.0f64), 2..12),
        ) {
            let (mut values, squares): (Vec<f64>, Vec<f64>) = parts.into_iter().unzip();
            let whole: f64 = 100.0 * values.len() as f64;
            values[0] = 50.0;
            close(&mut values, &squares, whole);
            prop_assert!(values.iter().all(|value| *value >= 0.0), "{values:?}");
            prop_assert!((values.iter().sum::<f64>() - whole).abs() < 1e-6, "{values:?}");
        }
    }

    #[test]
    fn the_uncertain_give_most_and_exact_parts_that_add_up_stay() {
        let mut values = [60.0, 50.0, -5.0];
        close(&mut values, &[9.0, 1.0, 4.0], 100.0);
        // The sum exceeds the whole by 5; then one part is 5 below 0.
        assert_eq!(values, [51.0, 49.0, 0.0]);
        // Parts without any count share the whole.
        let mut unseen = [0.0, 0.0];
        close(&mut unseen, &[0.0, 0.0], 10.0);
        assert_eq!(unseen, [5.0, 5.0]);
        let mut of_nothing = [5.0, -5.0];
        close(&mut of_nothing, &[1.0, 1.0], 0.0);
        assert_eq!(of_nothing, [0.0, 0.0]);
        let mut exact = [30.0, 70.0];
        close(&mut exact, &[0.0, 0.0], 100.0);
        assert_eq!(exact, [30.0, 70.0]);
    }
}
