//! Event counts, from which all results are computed.

/// Count of an event, with its uncertainty.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Count {
    /// Estimate, in events.
    pub estimate: f64,
    /// Half the width of the 95 % interval, in events; 0 if the count is exact.
    pub half_width_95: f64,
    /// Count of the virtual PMU, in events, if known.
    pub truth: Option<f64>,
}

/// Count of an event by its name; `None` if it was not measured.
pub type Counts<'a> = &'a dyn Fn(&str) -> Option<Count>;

/// Half the width of the 95 % interval of a weighted sum of events, where the caller of a breakdown
/// knows it better than from the half widths of the events: the errors of events counted in the
/// same slices are correlated. Returns `None` where the caller does not.
pub type SumError<'a> = &'a dyn Fn(&[(&'static str, f64)]) -> Option<f64>;

/// Error model without knowledge of sums: the errors of all events are taken as independent.
pub const INDEPENDENT: SumError<'static> = &|_| None;

/// Squared half width of a weighted sum of events.
pub(super) fn square(
    counts: Counts<'_>,
    errors: SumError<'_>,
    terms: &[(&'static str, f64)],
) -> f64 {
    if let Some(half_width) = errors(terms) {
        return half_width * half_width;
    }
    let of = |(name, factor): &(&'static str, f64)| {
        let half_width = factor * counts(name).unwrap_or_default().half_width_95;
        half_width * half_width
    };
    terms.iter().map(of).fold(0.0, |sum, square| sum + square)
}
