//! The likely additions of a session's own interrupts to its counts: they evict cache lines and
//! entries (decision 83).

use tally_abi::{Mode, SessionStats};

use super::{estimate::Estimate, event::EventReport};
use crate::machine::EventReading;

/// Maximum events that the interrupts of a session of ring 3 are likely to have added; `None` if
/// that is not known.
pub(super) fn likely_added(event: &EventReading, stats: &SessionStats) -> Option<f64> {
    let name = event.native.as_deref().unwrap_or(&event.name);
    tally_breakdown::likely_added(name, stats.overflow_interrupts())
        .filter(|_| event.mode == Mode::User)
}

impl EventReport {
    /// Likely maximum of the events that interrupts added, as a part of the estimate up to 1;
    /// `None` if it is negligible.
    pub(crate) fn added_share(&self) -> Option<f64> {
        tally_breakdown::added_share(self.likely_added?, self.estimate? as f64)
    }

    /// Converts a number that was extrapolated from slices of two lengths to the number without
    /// interrupts. If interrupts add nothing, it is the estimate itself. Otherwise its interval is
    /// at least as wide as the estimate's, as the slices are the same. The interval extends down to
    /// the estimate less all that interrupts have likely added: a longer slice can contain more of
    /// that than a shorter one.
    pub(super) fn without_interrupts(&self, extrapolated: Estimate) -> Estimate {
        let (Some(estimate), Some(added)) = (self.estimate, self.likely_added) else {
            return extrapolated.at_least(self.half_width_95.unwrap_or_default());
        };
        let (estimate, half_width) = (estimate as f64, self.half_width_95.unwrap_or_default());
        if added == 0.0 {
            return Estimate::of(estimate, half_width);
        }
        extrapolated.at_least(half_width).down_to(estimate - added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_abi::{Reading, Value};

    /// An estimate of 1,000 ± 50 events, to which interrupts are likely to have added these.
    fn estimated(likely_added: Option<f64>) -> EventReport {
        let value = Value::Estimated { estimate: 1_000, stderr: 25.0, half_width_95: 50.0 };
        let reading = Reading { value, counted: 0, counted_cycles: 1, total_cycles: 4, slices: 9 };
        EventReport { likely_added, ..EventReport::of("E", &reading, None) }
    }

    #[test]
    fn a_number_without_interrupts_is_not_better_known_than_the_estimate() {
        let of = |added, estimate, half_width| {
            let value = estimated(added).without_interrupts(Estimate::of(estimate, half_width));
            [value.estimate, value.half_width_95, value.low_95, value.high_95]
        };
        assert_eq!(of(None, 900.0, 80.0), [900.0, 80.0, 820.0, 980.0]);
        assert_eq!(of(None, 900.0, 20.0), [900.0, 50.0, 850.0, 950.0]);
        assert_eq!(of(Some(0.0), 900.0, 80.0), [1_000.0, 50.0, 950.0, 1_050.0]);
        assert_eq!(of(Some(300.0), 900.0, 80.0), [900.0, 80.0, 700.0, 980.0]);
        assert_eq!(of(Some(100.0), 900.0, 80.0), [900.0, 80.0, 820.0, 980.0]);
        assert_eq!(of(Some(5_000.0), 900.0, 80.0)[2], 0.0);
    }
}
