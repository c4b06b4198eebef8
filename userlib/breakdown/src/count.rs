//! The counts that everything here is computed from.

/// An event's count, as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Count {
    /// In events.
    pub estimate: f64,
    /// Half the width of the 95 % interval, in events; 0 if the count is exact.
    pub half_width_95: f64,
    /// The virtual PMU's, in events, if it is known.
    pub truth: Option<f64>,
}

/// The count of an event by its name; none if it was not measured.
pub type Counts<'a> = &'a dyn Fn(&str) -> Option<Count>;

/// Half the width of the 95 % interval of a sum of events, each times its factor, where it is known
/// better than from the events' own: events that were counted in the same slices err together. The
/// caller of a breakdown says how.
pub type SumError<'a> = &'a dyn Fn(&[(&'static str, f64)]) -> Option<f64>;

/// Nothing is known of sums: the errors of all events are taken as independent.
pub const INDEPENDENT: SumError<'static> = &|_| None;

/// The squared half width of a sum of events, each times its factor.
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
