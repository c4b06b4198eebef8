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
