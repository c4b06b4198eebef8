//! Judgement of many 95 % intervals at once.
//!
//! One interval in twenty misses the truth, by any distance where events come in bursts, so that no
//! limit on one error holds for every seed and every layout of the kernel. Values that are wrong,
//! of another group, another scale or another session, miss most of their intervals.

use xtask::report::{EventReport, Kind};

/// Share of the values that may lie outside before the number of values is considered: three times
/// that of 95 % intervals, because errors of one run are correlated.
const OUTSIDE: f64 = 0.15;
/// Probability that intervals with that share fail the judgement.
const FALSE_ALARM: f64 = 1e-4;
/// Fewest values of which the judgement can fail by a clear majority.
const FEWEST: usize = 8;

/// Panics if more values lie outside their 95 % intervals than chance explains. `outside` are the
/// descriptions of those.
pub fn assert_hold(judged: usize, outside: &[String]) {
    assert!(judged >= FEWEST, "{judged} values are too few to judge");
    let most = most_outside(judged);
    let lines = outside.join("\n");
    assert!(outside.len() <= most, "{} of {judged} outside, most {most}:\n{lines}", outside.len());
}

/// Panics if more of these errors, in half widths, are outside than chance explains, or if they are
/// fewer than `least`.
pub fn assert_errors_hold(errors: &[f64], least: usize) {
    assert!(errors.len() >= least, "{errors:?}");
    let outside = errors.iter().filter(|error| error.abs() > 1.0);
    assert_hold(errors.len(), &outside.map(f64::to_string).collect::<Vec<_>>());
}

/// Panics if more estimates miss the truth than chance explains.
pub fn assert_estimates_hold<'a>(events: impl IntoIterator<Item = &'a EventReport>) {
    let estimated = |event: &&EventReport| event.kind == Kind::Estimated;
    let events: Vec<_> = events.into_iter().filter(estimated).collect();
    let misses = events.iter().filter(|event| event.is_within() != Some(true));
    let misses: Vec<String> = misses.map(|event| format!("{event:?}")).collect();
    assert_hold(events.len(), &misses);
}

/// Largest number of `judged` values that may lie outside.
fn most_outside(judged: usize) -> usize {
    // Terms of the binomial distribution, each from the one before.
    let mut term = (1.0 - OUTSIDE).powi(judged as i32);
    let mut up_to = 0.0;
    for outside in 0..judged {
        up_to += term;
        if 1.0 - up_to < FALSE_ALARM {
            return outside;
        }
        term *= (judged - outside) as f64 / (outside + 1) as f64 * OUTSIDE / (1.0 - OUTSIDE);
    }
    judged
}

/// Limits from tables of the binomial distribution, and far from all values.
#[test]
fn the_limit_is_that_of_the_binomial_distribution() {
    assert_eq!([8, 20, 100].map(most_outside), [6, 10, 30]);
}
