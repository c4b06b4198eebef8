//! The tail of an event's distribution beyond the counted slices.

use crate::moments::PEAKS;

/// Squared events that the counted slices may have missed by chance: (3 / 1.96)².
pub(super) const UNSEEN: f64 = 2.343;
/// Factor of the squared gap between the largest residuals in the squared error, and the number of
/// variances ([`NORMAL_GAP`]) that a squared gap must exceed: chosen by simulation, for 93 to 97 %
/// coverage of streams from a sine to Pareto's with a tail of 2.5 (`cargo xtask study estimators`).
const TAIL: f64 = 22.0;
/// See [`TAIL`].
const NORMAL_GAP: f64 = 3.0;
/// Ratio of the relative difference in events to that in instructions that slices unlike all
/// counted ones may have.
pub(super) const UNMET: f64 = 4.0;

/// The squared error of slices larger than the largest counted ones, whose residuals are `beyond`;
/// `variance` is that of one slice.
pub(super) fn tail(beyond: [f64; PEAKS], variance: f64) -> f64 {
    let mut beyond = beyond.map(|residual| residual.max(0.0));
    beyond.sort_by(f64::total_cmp);
    let [least, .., most] = beyond;
    let gap = (most - least) * (most - least);
    TAIL * (gap - NORMAL_GAP * variance).max(0.0)
}
