//! Sums of one event's counts over the visits of a region, or the stretches of a part, and the
//! estimate of its whole count.
//!
//! An event that shares counters is on a counter in some slices, which the engine draws at random.
//! Its estimate is the count in the parts of the visits that are in these slices times the region's
//! cycles divided by the cycles of these parts, or the same by instructions: a ratio estimate over
//! slices as clusters (Cochran, *Sampling Techniques*, 3rd edition, chapter 6). Therefore a region
//! has its own rate, independent of the rest of the program. Visits within a slice are one cluster:
//! all of them are counted, or none. A run of visits in which the event was on a counter all the
//! time is taken for a slice. Of the two estimates the one with the smaller error is taken. If they
//! differ by more than the error of the other, some parts of the visits that were not counted are
//! unlike all that were, and the interval contains both.

use tally_abi::{
    Reading, Value,
    reading::Reason,
    thread::{
        COUNTED_CYCLES, COUNTED_INSTRUCTIONS, CYCLES, EVENT_WORDS, EVENTS, HEADER_WORDS,
        INSTRUCTIONS,
    },
};

/// Minimum number of runs, or of slices of a longer visit, for an estimate.
const LEAST: u64 = 4;
/// Cycles of a slice of the session of regions.
pub(crate) const SLICE_CYCLES: u64 = 200_000;

/// Cycles and instructions.
pub(crate) type Bases = [u64; 2];

/// Sums over the visits of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    events: u64,
    /// Cycles and instructions for which the event was on a counter.
    counted: Bases,
    /// Number of runs of visits that have ended.
    runs: u64,
    /// Sum of events² over these runs.
    squared_events: f64,
    /// By base, sums over these runs: events · base, base².
    squares: [[f64; 2]; 2],
    /// Events and bases of the run that has not ended.
    run: (u64, Bases),
}

/// Adds bases.
pub(crate) fn add(sum: &mut Bases, more: Bases) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// Adds a visit to the sums of all events. `since` returns a word's growth during the visit
/// ([`tally_abi::thread`]). Returns the visit's bases.
pub(crate) fn visit(all: &mut [Sums], since: impl Fn(usize) -> u64) -> Bases {
    let bases = [CYCLES, INSTRUCTIONS].map(&since);
    for (event, sums) in all.iter_mut().enumerate() {
        let first = HEADER_WORDS + event * EVENT_WORDS;
        let counted = [COUNTED_CYCLES, COUNTED_INSTRUCTIONS].map(|word| since(first + word));
        sums.visit(since(first + EVENTS), counted, bases[0]);
    }
    bases
}

/// Values of the whole session: its cycles, and the values of the event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    pub(crate) cycles: u64,
    /// Best value of the event.
    pub(crate) value: Value,
    /// Value by cycles alone, as for parts of the session.
    pub(crate) by_cycles: Value,
}

impl Sums {
    /// Adds a visit of `cycles` cycles, in which the event was on a counter for `counted`.
    fn visit(&mut self, events: u64, counted: Bases, cycles: u64) {
        self.events += events;
        add(&mut self.counted, counted);
        let is_long = cycles >= SLICE_CYCLES;
        if is_long {
            self.end_run();
        }
        let is_first = self.run == (0, [0; 2]);
        self.run.0 += events;
        add(&mut self.run.1, counted);
        // The event was on a counter before the visit and not to its end, or not at all. A long
        // visit has slices of its own.
        if is_long || counted[0] < cycles && (!is_first || counted[0] == 0) {
            self.end_run();
        }
    }

    /// Ends the run of visits, if there is one.
    fn end_run(&mut self) {
        let (events, counted) = core::mem::take(&mut self.run);
        let y = events as f64;
        self.squared_events += y * y;
        for (sums, x) in self.squares.iter_mut().zip(counted) {
            let x = x as f64;
            *sums = [sums[0] + y * x, sums[1] + x * x];
        }
        self.runs += u64::from(counted[0] > 0);
    }

    /// Adds the visits of another thread.
    pub(crate) fn add(&mut self, other: &Sums) {
        let mut other = *other;
        self.end_run();
        other.end_run();
        self.events += other.events;
        add(&mut self.counted, other.counted);
        self.runs += other.runs;
        self.squared_events += other.squared_events;
        for (sums, other) in self.squares.iter_mut().zip(other.squares) {
            *sums = [sums[0] + other[0], sums[1] + other[1]];
        }
    }

    /// Returns the count in a region of these cycles and instructions.
    pub(crate) fn reading(mut self, bases: Bases, whole: Whole) -> Reading {
        self.end_run();
        let value = if self.counted[0] >= bases[0] {
            Value::Exact { count: self.events }
        } else {
            self.estimate(bases, whole)
                .unwrap_or(Value::NotMeasured { reason: Reason::TooFewSlices })
        };
        let (counted, counted_cycles, slices) = (self.events, self.counted[0], self.runs);
        Reading { value, counted, counted_cycles, total_cycles: bases[0], slices }
    }

    fn estimate(&self, bases: Bases, whole: Whole) -> Option<Value> {
        let by_cycles = self.scaled(bases, 0)?;
        let by_instructions = self.scaled(bases, 1);
        let (estimate, [stderr, half_width_95]) = if self.runs >= LEAST {
            let by_cycles = (by_cycles, self.spread(bases, 0));
            let by_instructions = by_instructions.map(|by| (by, self.spread(bases, 1)));
            by_instructions.map_or(by_cycles, |other| better(by_cycles, other))
        } else {
            let by = self.share_of(bases[0], by_cycles, whole)?;
            let apart = by_instructions.map_or(0.0, |other| (other - by_cycles).abs());
            unlike(by, apart, by.1[1])
        };
        let estimate = (estimate + 0.5) as u64;
        Some(Value::Estimated { estimate, stderr, half_width_95 })
    }

    /// Returns the estimate by a base; `None` if nothing of it was counted.
    fn scaled(&self, bases: Bases, base: usize) -> Option<f64> {
        let expansion = bases[base] as f64 / self.counted[base] as f64;
        (self.counted[base] > 0).then_some(self.events as f64 * expansion)
    }

    /// Returns standard error and half width by a base, from the spread between runs.
    fn spread(&self, bases: Bases, base: usize) -> [f64; 2] {
        let (counted, [yx, xx]) = (self.counted[base] as f64, self.squares[base]);
        let (n, rate) = (self.runs as f64, self.events as f64 / counted);
        let expansion = bases[base] as f64 / counted;
        let squares = self.squared_events - 2.0 * rate * yx + rate * rate * xx;
        // One degree of freedom is used by the rate. The other corrects the bias that a ratio of
        // few runs fits them too well. Equal runs give no information on how the parts that
        // were not counted differ: independent events vary by their number, and zero events seen
        // may be one missed.
        let squares = (squares * n / (n - 2.0)).max(self.events as f64).max(1.0);
        let stderr = libm::sqrt(squares * (1.0 - 1.0 / expansion).max(0.0)) * expansion;
        [stderr, stderr * student(n - 2.0)]
    }

    /// Returns the count of a few long visits, with its standard error and half width. There are
    /// two estimates, of which the one with the smaller half width is used. (1) `scaled`, by
    /// cycles: its error is that of the session's value by cycles times the root of the visits'
    /// share of the cycles. (2) The session's best value minus the rest by cycles: its error is
    /// larger by the full size of the rest, and by the difference of `scaled` from the session's
    /// value by cycles. The part is not corrected in proportion to the session's two values,
    /// because their whole difference may lie in the rest.
    fn share_of(&self, cycles: u64, scaled: f64, whole: Whole) -> Option<Estimate> {
        let ((best, best_errors), (by_cycles, errors)) =
            (estimated(whole.value)?, estimated(whole.by_cycles)?);
        if self.counted[0] < LEAST * SLICE_CYCLES || whole.cycles == 0 {
            return None;
        }
        let share = (cycles as f64 / whole.cycles as f64).min(1.0);
        let alone = (scaled, errors.map(|error| error * libm::sqrt(share)));
        let rest = by_cycles * (1.0 - share);
        let rest_error = rest + (by_cycles - scaled).abs();
        let of_session =
            ((best - rest).max(self.events as f64), best_errors.map(|error| error + rest_error));
        let half_width = |(_, [_, half_width]): &(f64, [f64; 2])| *half_width;
        Some(if half_width(&of_session) < half_width(&alone) { of_session } else { alone })
    }
}

/// An estimate, with its standard error and half width.
type Estimate = (f64, [f64; 2]);

/// Returns the estimate with the smaller error.
fn better(one: Estimate, other: Estimate) -> Estimate {
    let apart = (one.0 - other.0).abs();
    let (best, worse) = if other.1[1] < one.1[1] { (other, one) } else { (one, other) };
    unlike(best, apart, worse.1[1])
}

/// Widens an estimate's errors if another one is further `apart` than its own half width explains.
fn unlike((estimate, errors): Estimate, apart: f64, half_width: f64) -> Estimate {
    let more = if apart > half_width { apart } else { 0.0 };
    (estimate, [errors[0] + more / 2.0, errors[1] + more])
}

/// Returns the value of an estimate, with its standard error and half width.
fn estimated(value: Value) -> Option<Estimate> {
    let Value::Estimated { estimate, stderr, half_width_95 } = value else { return None };
    Some((estimate as f64, [stderr, half_width_95]))
}

/// Returns the 97.5 % quantile of Student's t with at least two degrees of freedom, to 1 %, by the
/// expansion of Cornish and Fisher (Abramowitz and Stegun, 26.7.5).
fn student(freedom: f64) -> f64 {
    let f = 1.0 / freedom;
    1.96 + f * (2.372 + f * (2.823 + f * (2.556 + f * 1.59)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_STARTED: Value = Value::NotMeasured { reason: Reason::NotStarted };
    const UNKNOWN: Whole = Whole { cycles: 0, value: NOT_STARTED, by_cycles: NOT_STARTED };

    /// Makes sums of visits, each of which is a run.
    fn sums(runs: impl IntoIterator<Item = (u64, u64)>) -> Sums {
        let mut sums = Sums::default();
        for (events, counted) in runs {
            sums.visit(events, [counted; 2], counted);
            sums.end_run();
        }
        sums
    }

    #[test]
    fn what_was_counted_all_the_time_is_exact() {
        let reading = sums([(7, 100), (8, 120)]).reading([220; 2], UNKNOWN);
        assert_eq!(reading.value, Value::Exact { count: 15 });
        assert_eq!(sums([]).reading([0; 2], UNKNOWN).value, Value::Exact { count: 0 });
    }

    /// Visits in a slice are counted together, so that their number says nothing about the others.
    #[test]
    fn visits_in_a_slice_are_one_run() {
        let mut sums = Sums::default();
        let visits = [(3, 40, 50), (7, 50, 50), (9, 50, 50), (1, 10, 50), (0, 0, 50), (2, 20, 50)];
        visits
            .into_iter()
            .for_each(|(events, counted, cycles)| sums.visit(events, [counted; 2], cycles));
        assert_eq!((sums.runs, sums.squared_events, sums.run), (1, 400.0, (2, [20; 2])));
        sums.visit(900, [3 * SLICE_CYCLES; 2], 9 * SLICE_CYCLES);
        assert_eq!((sums.runs, sums.squared_events, sums.run), (3, 810_404.0, (0, [0; 2])));
        assert_eq!(sums.reading([99; 2], UNKNOWN).slices, 3);
    }

    #[test]
    fn few_short_visits_have_no_value() {
        let few = sums([(7, 100), (0, 0), (5, 100), (3, 100)]);
        let reason = Reason::TooFewSlices;
        assert_eq!(few.reading([900; 2], UNKNOWN).value, Value::NotMeasured { reason });
        assert_eq!(
            sums([(0, 0); 9]).reading([900; 2], UNKNOWN).value,
            Value::NotMeasured { reason }
        );
    }

    /// Makes a session of 64 million cycles with these values, each ± a half width.
    fn whole((best, best_half): (u64, f64), (by_cycles, half): (u64, f64)) -> Whole {
        let value = |estimate, half_width_95| Value::Estimated {
            estimate,
            stderr: half_width_95 / 2.0,
            half_width_95,
        };
        Whole {
            cycles: 64_000_000,
            value: value(best, best_half),
            by_cycles: value(by_cycles, half),
        }
    }

    /// Returns the estimate and the half width of a single visit.
    fn of_visit((events, counted): (u64, u64), cycles: u64, whole: Whole) -> (u64, f64) {
        match sums([(events, counted)]).reading([cycles; 2], whole).value {
            Value::Estimated { estimate, half_width_95, .. } => (estimate, half_width_95),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_long_visit_has_the_error_of_its_share_of_the_session() {
        let whole = whole((9000, 200.0), (9000, 200.0));
        assert_eq!(of_visit((1000, 4_000_000), 16_000_000, whole), (4000, 100.0));
    }

    /// The value is by cycles, and so is its error, however good the session's best value is.
    #[test]
    fn a_long_visit_by_cycles_has_no_better_error_than_the_session_by_cycles() {
        let whole = whole((9000, 20.0), (9500, 800.0));
        assert_eq!(of_visit((1000, 4_000_000), 16_000_000, whole), (4000, 400.0));
    }

    #[test]
    fn a_visit_that_is_the_whole_session_has_its_best_value_and_error() {
        let whole = whole((9500, 100.0), (9000, 500.0));
        assert_eq!(of_visit((4500, 32_000_000), 64_000_000, whole), (9500, 100.0));
        // After the session has continued for 1 % more: an estimated 90 events in the rest, which
        // may have none.
        let (count, half_width) = of_visit((4456, 31_680_000), 63_360_000, whole);
        assert_eq!(count, 9410);
        assert!((half_width - (100.0 + 90.0 + 88.0)).abs() < 1e-6, "{half_width}");
    }

    /// After a start-up of a tenth, in which too much was counted, a steady loop follows: the whole
    /// difference of the session's values is due to the start-up.
    #[test]
    fn a_steady_loop_is_not_corrected_for_what_ran_before() {
        let whole = whole((9000, 100.0), (9500, 800.0));
        let (count, half_width) = of_visit((4050, 28_800_000), 57_600_000, whole);
        assert!(count == 8100 && half_width > 700.0, "{count} {half_width}");
    }

    #[test]
    fn no_estimate_is_below_what_was_counted() {
        let whole = whole((9000, 100.0), (9900, 5000.0));
        assert_eq!(of_visit((9500, 63_000_000), 64_000_000, whole).0, 9500);
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
                let is_counted = u64::from(random(4) == 0);
                (truth, cycles) = (truth + events, cycles + length);
                sums.visit(events * is_counted, [length * is_counted; 2], length);
                sums.end_run();
            }
            if let Value::Estimated { estimate, half_width_95, .. } =
                sums.reading([cycles; 2], UNKNOWN).value
            {
                samples += 1;
                inside += u64::from(estimate.abs_diff(truth) as f64 <= half_width_95);
            }
        }
        assert!(samples > 1900 && inside * 100 >= samples * 94, "{inside} of {samples}");
    }

    /// Ten runs of a loop have the same rates per cycle and per instruction; one that was not
    /// counted executes twice as many instructions a cycle. What the events follow is not known.
    #[test]
    fn a_part_unlike_all_counted_ones_is_in_the_interval() {
        let mut sums = Sums::default();
        for _ in 0..10 {
            sums.visit(1_000, [1_000, 2_000], 1_000);
            sums.end_run();
        }
        let reading = sums.reading([20_000, 42_000], UNKNOWN);
        let Value::Estimated { estimate, half_width_95, .. } = reading.value else { panic!() };
        for truth in [20_000, 21_000] {
            assert!(estimate.abs_diff(truth) as f64 <= half_width_95, "{truth}: {reading:?}");
        }
        // Rates per instruction that are the same everywhere explain what cycles do not.
        let mut sums = Sums::default();
        for cycles in [900, 1_000, 1_100, 950, 1_050, 1_000] {
            sums.visit(1_000, [cycles, 2_000], cycles);
            sums.end_run();
        }
        let reading = sums.reading([12_100, 24_000], UNKNOWN);
        let Value::Estimated { estimate, half_width_95, .. } = reading.value else { panic!() };
        assert!(estimate == 12_000 && half_width_95 < 500.0, "{reading:?}");
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
