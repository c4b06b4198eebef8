//! What slices that were not counted may have beyond those that were.

use crate::moments::PEAKS;

/// Squared events that might have been seen or missed by chance in the slices counted: (3 / 1.96)².
pub(super) const UNSEEN: f64 = 2.343;
/// Squared gaps between the largest residuals that are added to the squared error, and the
/// variances that a squared gap has to exceed for that: chosen by simulation, for 93 to 97 %
/// coverage of streams from a sine to Pareto's with a tail of 2.5 (`cargo xtask study estimators`).
const TAIL: f64 = 22.0;
/// See [`TAIL`].
const NORMAL_GAP: f64 = 3.0;
/// By how many times their relative difference in instructions slices unlike all that were counted
/// may differ in events.
pub(super) const UNMET: f64 = 4.0;

/// The squared error of slices larger than the largest, whose residuals are `beyond`, where a slice
/// has this variance.
pub(super) fn tail(beyond: [f64; PEAKS], variance: f64) -> f64 {
    let mut beyond = beyond.map(|residual| residual.max(0.0));
    beyond.sort_by(f64::total_cmp);
    let [least, .., most] = beyond;
    let gap = (most - least) * (most - least);
    TAIL * (gap - NORMAL_GAP * variance).max(0.0)
}
