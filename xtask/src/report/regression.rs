//! Sums of a session's events, estimated from its slices' cycles and instructions (decision 69).
//!
//! Cycles and instructions are known for all slices. In those in which an event was counted, its
//! counts are fitted by a·cycles + b·instructions; the estimate is the value of the fit for all
//! cycles and instructions (generalized regression estimator, Särndal, Swensson and Wretman 1992,
//! section 6.4). A slice's weight is one over its cycles, so that its residuals sum to 0 and the
//! estimate has no bias for what the fit does not explain.
//!
//! **Error.** A slice of a rare kind draws the fit to itself, so that its residual is too small:
//! each residual is divided by the share of it that a fit to the other slices leaves, as in the
//! jackknife. Slices like the one with the largest residual may be among those that were not
//! counted: its square counts [`LARGEST`] more times. Sums of events of one group are fitted as a
//! sum, so that correlated errors cancel.

use tally_abi::trace::SliceRecord;
use tally_engine::{Plan, estimate::student_t_95, plan::CounterAssignment};

use super::{
    estimate::{UNSEEN, degrees},
    slices::{self, Slice},
};

/// The fewest slices of a group. The error bar of a sum is computed if the sum is not 0 in as many
/// slices; for rarer events, the engine's error bars are more reliable.
const LEAST_SLICES: usize = 16;
/// Additional weight of the largest square: chosen on seeds 1 to 6 of `study breakdown`.
const LARGEST: f64 = 2.0;
/// Smallest share of a residual that the fit of the other slices is assumed to leave.
const LEAST_LEFT: f64 = 0.2;
/// Bound of the squared relative variation of instructions per cycle below which slices are alike,
/// so that their instructions explain nothing.
const ALIKE: f64 = 1e-6;

/// The slices of a session.
#[derive(Debug)]
pub(super) struct Regression {
    slices: Vec<Slice>,
    /// By event of the list: its group and its place there, if it was counted part of the time.
    places: Vec<Option<(u16, usize)>>,
}

/// A slice: cycles, instructions, events.
type Point = [f64; 3];

/// A plane through the slices' points, without a constant.
#[derive(Clone, Copy, Debug)]
struct Fit {
    /// Events per cycle and per instruction.
    rates: [f64; 2],
    /// Weighted sums of squares of cycles, of products, and of squares of instructions.
    squares: [f64; 3],
    /// Whether instructions are used in the fit.
    has_both: bool,
}

impl Fit {
    fn of(points: &[Point]) -> Fit {
        let sum = |of: fn(&Point) -> f64| points.iter().map(of).sum::<f64>();
        let squares = [sum(|[c, ..]| *c), sum(|[_, i, _]| *i), sum(|[c, i, _]| i * i / c)];
        let [cc, ci, ii] = squares;
        let (with_cycles, with_instructions) = (sum(|[.., y]| *y), sum(|[c, i, y]| i * y / c));
        let determinant = cc * ii - ci * ci;
        let has_both = determinant > ALIKE * cc * ii;
        let rates = if has_both {
            let of_cycles = (with_cycles * ii - with_instructions * ci) / determinant;
            [of_cycles, (cc * with_instructions - ci * with_cycles) / determinant]
        } else {
            [with_cycles / cc, 0.0]
        };
        Fit { rates, squares, has_both }
    }

    fn at(&self, cycles: f64, instructions: f64) -> f64 {
        self.rates[0] * cycles + self.rates[1] * instructions
    }

    /// The residual of a slice from the fit of the other slices.
    fn residual(&self, [cycles, instructions, events]: Point) -> f64 {
        let [cc, ci, ii] = self.squares;
        let drawn = if self.has_both {
            let form = cycles * cycles * ii - 2.0 * cycles * instructions * ci
                + instructions * instructions * cc;
            form / (cc * ii - ci * ci) / cycles
        } else {
            cycles / cc
        };
        (events - self.at(cycles, instructions)) / (1.0 - drawn).max(LEAST_LEFT)
    }
}

impl Regression {
    /// Makes the regression from all records of a session's slices, in the order of time.
    pub(super) fn of(records: &[SliceRecord], plan: &Plan) -> Regression {
        let place = |assigned: &CounterAssignment| slices::place(plan, *assigned);
        let places = plan.assignments.iter().map(place).collect();
        Regression { slices: slices::all(records), places }
    }

    /// The estimate of the event with this index in the session's list, and half the width of its
    /// 95 % interval if it is known; `None` if the event was counted all the time, or in too few
    /// slices.
    pub(super) fn event(&self, event: usize) -> Option<(f64, Option<f64>)> {
        let (group, place) = self.places.get(event).copied().flatten()?;
        self.sum(group, &[(place, 1.0)])
    }

    /// Half the width of the 95 % interval of the sum of the events at these places of the group,
    /// each times its factor, if it is known.
    pub(super) fn error(&self, group: u16, places: &[(usize, f64)]) -> Option<f64> {
        self.sum(group, places)?.1
    }

    fn sum(&self, group: u16, places: &[(usize, f64)]) -> Option<(f64, Option<f64>)> {
        let events = |slice: &Slice| {
            let of =
                |(place, by): &(usize, f64)| by * *slice.events.get(*place).unwrap_or(&0) as f64;
            places.iter().map(of).sum::<f64>()
        };
        let point = |slice: &Slice| [slice.cycles as f64, slice.instructions as f64, events(slice)];
        let is_own = |slice: &&Slice| slice.group == group && slice.cycles > 0;
        let points: Vec<Point> = self.slices.iter().filter(is_own).map(point).collect();
        if points.len() < LEAST_SLICES {
            return None;
        }
        let all = |of: fn(&Slice) -> u64| self.slices.iter().map(|it| of(it) as f64).sum::<f64>();
        let (cycles, instructions) = (all(|it| it.cycles), all(|it| it.instructions));
        let fit = Fit::of(&points);
        let estimate = fit.at(cycles, instructions);
        if points.iter().filter(|[.., events]| *events != 0.0).count() < LEAST_SLICES {
            return Some((estimate, None));
        }
        let squares: Vec<f64> = points.iter().map(|point| fit.residual(*point).powi(2)).collect();
        let largest = squares.iter().copied().fold(0.0, f64::max);
        let unseen = UNSEEN * places.iter().map(|(_, by)| by * by).sum::<f64>();
        let counted: f64 = points.iter().map(|[cycles, ..]| cycles).sum();
        let scale = cycles / counted;
        let square = squares.iter().sum::<f64>() + LARGEST * largest + unseen;
        let deviation = (scale * (scale - 1.0).max(0.0) * square).sqrt();
        let degrees = (degrees(&squares).min(points.len() as f64 - 1.0) - 1.0).max(1.0);
        Some((estimate, Some(student_t_95(degrees) * deviation)))
    }
}

#[cfg(test)]
mod tests {
    use tally_abi::trace::End;

    use super::*;
    use crate::report::slices::made_up::{GROUPS, Random, four_groups, record};

    /// Events that follow instructions, with some variation, in slices of very different
    /// instructions per cycle; and the number of the second group's events.
    fn program(random: &mut Random, slices: u64) -> (Vec<SliceRecord>, f64) {
        let mut truth = 0;
        let slice = |at: u64| {
            let group = random.below(GROUPS.into()) as u16;
            let instructions = (40_000.0 * random.uniform()) as u64;
            let events = instructions / 4 + (2_000.0 * random.uniform()) as u64 + at % 7;
            truth += events;
            record(group, End::Overflow, [20_000, instructions, events])
        };
        let records = (0..slices).map(slice).collect();
        (records, truth as f64)
    }

    #[test]
    fn bars_hold_and_are_a_fraction_of_those_of_a_ratio() {
        let (mut held, mut judged, mut widest) = (0, 0, 0.0_f64);
        for seed in 0..400 {
            let (records, truth) = program(&mut Random(0xba5 << 32 | seed), 200);
            let found = Regression::of(&records, &four_groups()).event(1);
            let Some((estimate, Some(half_width))) = found else { continue };
            judged += 1;
            held += u32::from((estimate - truth).abs() <= half_width);
            widest = widest.max(half_width / truth);
        }
        // The error of a ratio to the cycles would be a tenth.
        assert!(judged > 390 && widest < 0.05, "{judged} {widest}");
        let share = f64::from(held) / f64::from(judged);
        assert!((0.93..=0.99).contains(&share), "{share}");
    }

    #[test]
    fn what_follows_exactly_is_known_and_of_rare_events_no_bar_is() {
        let of = |events: fn(u64) -> u64, slices: u64| {
            let slice = |at: u64| {
                let instructions = 1_000 * (1 + at % 13);
                let group = (at % u64::from(GROUPS)) as u16;
                record(group, End::Overflow, [20_000, instructions, events(at)])
            };
            let records: Vec<SliceRecord> = (0..slices).map(slice).collect();
            Regression::of(&records, &four_groups()).event(0)
        };
        let (estimate, half_width) = of(|at| 20 * 3 + 7 * (1 + at % 13), 130).unwrap();
        let truth: u64 = (0..130).map(|at| 60 + 7 * (1 + at % 13)).sum();
        assert!((estimate - truth as f64).abs() < 0.01, "{estimate} {truth}");
        assert!(half_width.unwrap() < 100.0, "{half_width:?}");
        assert!(of(|at| u64::from(at < 32), 130).unwrap().1.is_none());
        assert!(of(|_| 5, 60).is_none());
    }

    #[test]
    fn one_large_slice_widens_the_bar() {
        let width = |large: u64| {
            let slice = |at: u64| {
                let events = if at == 40 { large } else { 100 + at % 9 };
                record((at % 4) as u16, End::Overflow, [20_000, 900 + at, events])
            };
            let records: Vec<SliceRecord> = (0..160).map(slice).collect();
            Regression::of(&records, &four_groups()).event(0).unwrap().1.unwrap()
        };
        // Such a slice may be among the three quarters that were not counted.
        assert!(
            width(50_000) > 150_000.0 && width(104) < 200.0,
            "{} {}",
            width(50_000),
            width(104)
        );
    }
}
