//! Correlations of the errors of events in one group, from the records of slices (decision 58).
//!
//! The engine knows the error of each event. Events of one group are counted in the same slices,
//! and one often contains the other, so that both estimates are too large or too small at the same
//! time, and their difference has a smaller error. The correlation of the errors is estimated from
//! the differences between successive slices of the group, after each event's mean rate is
//! subtracted: the same spread from which the engine computes its errors.

use tally_engine::{Plan, plan::CounterAssignment};

use super::slices::{self, Slice};

/// The fewest slices of a group from which correlations are estimated.
const LEAST_SLICES: usize = 16;

/// The correlations of the events of a session.
#[derive(Debug)]
pub struct Together {
    /// By event of the list: its group and its place there, if it was counted part of the time.
    places: Vec<Option<(u16, usize)>>,
    /// By group, place and place; empty for a group with too few slices.
    correlations: Vec<Vec<Vec<f64>>>,
}

impl Together {
    pub(super) fn of(slices: &[Slice], plan: &Plan) -> Together {
        let place = |assigned: &CounterAssignment| slices::place(plan, *assigned);
        let of_group = |group| {
            let own: Vec<&Slice> = slices
                .iter()
                .filter(|of| usize::from(of.group) == group && of.cycles > 0)
                .collect();
            correlations(&own)
        };
        Together {
            places: plan.assignments.iter().map(place).collect(),
            correlations: (0..plan.groups.len()).map(of_group).collect(),
        }
    }

    /// The place of an event, by its index in the list.
    pub(super) fn place(&self, event: usize) -> Option<(u16, usize)> {
        self.places.get(event).copied().flatten()
    }

    /// The squared half width of a sum of events of the list. Each term is the event's index, and
    /// the half width that it has in the sum, negative if it is subtracted. Groups were counted in
    /// different slices, drawn independently.
    pub(super) fn square(&self, terms: &[(usize, f64)]) -> f64 {
        let correlation = |(a, _): &(usize, f64), (b, _): &(usize, f64)| {
            let ((group, a), (other, b)) = self.place(*a).zip(self.place(*b))?;
            let of_group = self.correlations.get(usize::from(group)).filter(|_| group == other)?;
            of_group.get(a)?.get(b).copied()
        };
        let mut square = 0.0;
        for (index, term) in terms.iter().enumerate() {
            square += term.1 * term.1;
            for other in &terms[index + 1..] {
                let correlation = correlation(term, other).unwrap_or_default();
                square += 2.0 * correlation * term.1 * other.1;
            }
        }
        square.max(0.0)
    }
}

/// The correlations between the events of a group.
fn correlations(slices: &[&Slice]) -> Vec<Vec<f64>> {
    let events = slices.iter().map(|slice| slice.events.len()).max().unwrap_or_default();
    if slices.len() < LEAST_SLICES {
        return Vec::new();
    }
    let count = |slice: &Slice, place: usize| *slice.events.get(place).unwrap_or(&0) as f64;
    let cycles: f64 = slices.iter().map(|slice| slice.cycles as f64).sum();
    let rates: Vec<f64> = (0..events)
        .map(|place| slices.iter().map(|slice| count(slice, place)).sum::<f64>() / cycles)
        .collect();
    let left =
        |slice: &Slice, place: usize| count(slice, place) - rates[place] * slice.cycles as f64;
    let product = |a: usize, b: usize| {
        let pairs = slices.windows(2);
        let step = |two: &[&Slice], place| left(two[1], place) - left(two[0], place);
        pairs.map(|two| step(two, a) * step(two, b)).sum::<f64>()
    };
    // If events never differed in these slices, they may still differ in others.
    let known = 1.0 - 2.0 / slices.len() as f64;
    let squares: Vec<f64> = (0..events).map(|place| product(place, place)).collect();
    let of = |a: usize, b: usize| {
        let scale = (squares[a] * squares[b]).sqrt();
        if scale > 0.0 { known * (product(a, b) / scale).clamp(-1.0, 1.0) } else { 0.0 }
    };
    (0..events).map(|a| (0..events).map(|b| of(a, b)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::slices::made_up::Random;

    /// Slices of one group: an event, one that contains it and a little more, and an independent
    /// one.
    fn group(number: usize) -> Vec<Slice> {
        let mut random = Random(3);
        let slice = |_| {
            let part = 1_000.0 * random.uniform();
            let events = vec![part, part + 10.0 * random.uniform(), 1_000.0 * random.uniform()];
            let events = events.into_iter().map(|count| count as u64).collect();
            Slice { group: 0, cycles: 10_000, instructions: 5_000, events }
        };
        (0..number).map(slice).collect()
    }

    fn together(number: usize) -> Together {
        let slices = group(number);
        let all: Vec<&Slice> = slices.iter().collect();
        let places = vec![Some((0, 0)), Some((0, 1)), Some((0, 2)), Some((1, 0)), None];
        Together { places, correlations: vec![correlations(&all), Vec::new()] }
    }

    #[test]
    fn a_difference_of_events_of_one_group_errs_by_less_and_a_sum_by_more() {
        let together = together(200);
        let half_width = |terms: &[(usize, f64)]| together.square(terms).sqrt();
        assert!(half_width(&[(1, 50.0), (0, -50.0)]) < 8.0);
        assert!(half_width(&[(1, 50.0), (0, 50.0)]) > 99.0);
        // Independent errors: the root of the sum of squares.
        let apart = half_width(&[(0, 30.0), (2, -40.0)]);
        assert!((apart - 50.0).abs() < 5.0, "{apart}");
        // An event of another group, and an exact count.
        assert_eq!(half_width(&[(0, 30.0), (3, -40.0)]), 50.0);
        assert_eq!(half_width(&[(4, 0.0), (0, -50.0)]), 50.0);
    }

    #[test]
    fn of_few_slices_nothing_is_known() {
        let together = together(LEAST_SLICES - 1);
        assert_eq!(together.square(&[(1, 30.0), (0, -40.0)]).sqrt(), 50.0);
    }
}
