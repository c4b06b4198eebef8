//! What the visits of a region, or the stretches of a part, counted of one event, and the estimate
//! of its whole count.
//!
//! An event that shares counters is on a counter in some parts of some visits, which the engine
//! draws at random. Its count is that of these parts times the region's cycles over the cycles of
//! these parts: a ratio estimate over visits as clusters (Cochran, *Sampling Techniques*, 3rd
//! edition, chapter 6). So a region has its own rate, however different from that of
//! the rest of the program.

use tally_abi::{Reading, Value, reading::Reason};

/// Visits, and slices of a longer visit, that an estimate needs.
const LEAST: u64 = 4;
/// Cycles of a slice of the session of regions.
pub(crate) const SLICE_CYCLES: u64 = 200_000;

/// Sums over the visits of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    events: u64,
    /// Cycles for which the event was on a counter.
    counted: u64,
    /// Visits in which it was on a counter.
    visits: u64,
    /// Of these visits: events², events · cycles, cycles².
    squares: [f64; 3],
}

/// The whole session: cycles, and what is known of the event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    pub(crate) cycles: u64,
    pub(crate) value: Value,
}

impl Sums {
    /// Adds a visit.
    pub(crate) fn visit(&mut self, events: u64, counted: u64) {
        let (y, x) = (events as f64, counted as f64);
        let added = [y * y, y * x, x * x];
        let visits = u64::from(counted > 0);
        self.add(&Sums { events, counted, visits, squares: added });
    }

    /// Adds the visits of another thread.
    pub(crate) fn add(&mut self, other: &Sums) {
        self.events += other.events;
        self.counted += other.counted;
        self.visits += other.visits;
        for (sum, square) in self.squares.iter_mut().zip(other.squares) {
            *sum += square;
        }
    }

    /// The count in a region of `cycles` cycles.
    pub(crate) fn reading(&self, cycles: u64, whole: Whole) -> Reading {
        let value = if self.counted >= cycles {
            Value::Exact { count: self.events }
        } else {
            self.estimate(cycles, whole)
                .unwrap_or(Value::NotMeasured { reason: Reason::TooFewSlices })
        };
        let (counted, counted_cycles, slices) = (self.events, self.counted, self.visits);
        Reading { value, counted, counted_cycles, total_cycles: cycles, slices }
    }

    fn estimate(&self, cycles: u64, whole: Whole) -> Option<Value> {
        if self.counted == 0 {
            return None;
        }
        let (events, expansion) = (self.events as f64, cycles as f64 / self.counted as f64);
        let (stderr, half_width) = if self.visits >= LEAST {
            self.spread(expansion)
        } else {
            self.share_of(cycles, whole)?
        };
        let estimate = (events * expansion + 0.5) as u64;
        Some(Value::Estimated { estimate, stderr, half_width_95: half_width })
    }

    /// Standard error and half width by the spread between visits.
    fn spread(&self, expansion: f64) -> (f64, f64) {
        let (n, rate) = (self.visits as f64, self.events as f64 / self.counted as f64);
        let [yy, yx, xx] = self.squares;
        let squares = (yy - 2.0 * rate * yx + rate * rate * xx) * n / (n - 2.0);
        // One degree of freedom is the rate's; the other corrects that a ratio of few visits fits
        // them too well. Equal visits do not show how the parts that were not counted differ:
        // events that come independently of each other vary by their number, and none seen may be
        // one missed.
        let squares = squares.max(self.events as f64).max(1.0);
        let stderr = libm::sqrt(squares * (1.0 - 1.0 / expansion)) * expansion;
        (stderr, stderr * student(n - 2.0))
    }

    /// Standard error and half width of a few long visits: those of the whole session, of which a
    /// part has the error that grows with the root of its cycles.
    fn share_of(&self, cycles: u64, whole: Whole) -> Option<(f64, f64)> {
        let Value::Estimated { stderr, half_width_95, .. } = whole.value else { return None };
        if self.counted < LEAST * SLICE_CYCLES || whole.cycles == 0 {
            return None;
        }
        let share = libm::sqrt(cycles as f64 / whole.cycles as f64);
        Some((stderr * share, half_width_95 * share))
    }
}

/// The 97.5 % quantile of Student's t with at least two degrees of freedom, to 1 %: the expansion
/// of Cornish and Fisher (Abramowitz and Stegun, 26.7.5).
fn student(freedom: f64) -> f64 {
    let f = 1.0 / freedom;
    1.96 + f * (2.372 + f * (2.823 + f * (2.556 + f * 1.59)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNKNOWN: Whole =
        Whole { cycles: 0, value: Value::NotMeasured { reason: Reason::NotStarted } };

    fn sums(visits: impl IntoIterator<Item = (u64, u64)>) -> Sums {
        let mut sums = Sums::default();
        visits.into_iter().for_each(|(events, counted)| sums.visit(events, counted));
        sums
    }

    #[test]
    fn what_was_counted_all_the_time_is_exact() {
        let reading = sums([(7, 100), (8, 120)]).reading(220, UNKNOWN);
        assert_eq!(reading.value, Value::Exact { count: 15 });
        assert_eq!(sums([]).reading(0, UNKNOWN).value, Value::Exact { count: 0 });
    }

    #[test]
    fn few_short_visits_have_no_value() {
        let few = sums([(7, 100), (0, 0), (5, 100), (3, 100)]);
        let reason = Reason::TooFewSlices;
        assert_eq!(few.reading(900, UNKNOWN).value, Value::NotMeasured { reason });
        assert_eq!(sums([(0, 0); 9]).reading(900, UNKNOWN).value, Value::NotMeasured { reason });
    }

    #[test]
    fn a_long_visit_has_the_error_of_its_share_of_the_session() {
        let value = Value::Estimated { estimate: 9000, stderr: 100.0, half_width_95: 200.0 };
        let whole = Whole { cycles: 64_000_000, value };
        let expected = Value::Estimated { estimate: 4000, stderr: 50.0, half_width_95: 100.0 };
        assert_eq!(sums([(1000, 4_000_000)]).reading(16_000_000, whole).value, expected);
    }

    /// Over many samples of a population with a known sum, the intervals contain it in 94 % or
    /// more.
    #[test]
    fn intervals_contain_the_count_of_regions_with_their_own_rate() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let (mut inside, mut samples) = (0, 0);
        for _ in 0..2000 {
            let (mut sums, mut truth, mut cycles) = (Sums::default(), 0, 0);
            for _ in 0..40 {
                let length = 1000 + random(4000);
                let events = length / 10 + random(length / 5);
                let is_counted = random(4) == 0;
                (truth, cycles) = (truth + events, cycles + length);
                sums.visit(events * u64::from(is_counted), length * u64::from(is_counted));
            }
            if let Value::Estimated { estimate, half_width_95, .. } =
                sums.reading(cycles, UNKNOWN).value
            {
                samples += 1;
                inside += u64::from(estimate.abs_diff(truth) as f64 <= half_width_95);
            }
        }
        assert!(samples > 1900 && inside * 100 >= samples * 94, "{inside} of {samples}");
    }

    #[test]
    fn quantiles_of_student_s_t_are_those_of_tables() {
        for (freedom, table) in
            [(2.0, 4.303), (3.0, 3.182), (5.0, 2.571), (10.0, 2.228), (1e6, 1.960)]
        {
            let relative = student(freedom) / table - 1.0;
            assert!(relative.abs() < 0.01, "{freedom}: {}", student(freedom));
        }
    }
}
