//! The variation of each group's events between slices, and the resulting errors of sums of events.
//!
//! An event's residuals are its counts in the slices less its mean rate per cycle. Sums of the
//! products of residuals, for each two events of a group, give the variance of any sum of events:
//! errors of events in one group are correlated, as the events are counted in the same slices, so a
//! difference of two has a smaller error (decision 58).

use tally_engine::{Plan, estimate::student_t_95, plan::CounterAssignment};

use super::super::{
    estimate::UNSEEN,
    slices::{self, Slice},
};

/// Prior weight: the session-wide spread counts as `OF_SESSION / n` slices beside an interval's own
/// `n`, because few slices say little about their spread (decision 69).
const OF_SESSION: f64 = 4.0;

/// The slices of a group.
#[derive(Clone, Debug, Default)]
struct Spread {
    slices: f64,
    cycles: f64,
    /// Events per cycle, by the event's place in the group.
    rates: Vec<f64>,
    /// The sums of the products of two events' residuals, by their places.
    products: Vec<Vec<f64>>,
}

/// Some slices of a session, by group.
#[derive(Clone, Debug)]
pub(super) struct Spreads {
    /// Cycles of all slices.
    cycles: f64,
    groups: Vec<Spread>,
    /// By event of the list: its group and its place there, if it was counted part of the time.
    places: Vec<Option<(u16, usize)>>,
}

impl Spread {
    fn of(slices: &[Slice], group: usize) -> Spread {
        let is_own = |slice: &&Slice| usize::from(slice.group) == group && slice.cycles > 0;
        let own: Vec<&Slice> = slices.iter().filter(is_own).collect();
        let places = own.iter().map(|slice| slice.events.len()).max().unwrap_or_default();
        let count = |slice: &Slice, place: usize| *slice.events.get(place).unwrap_or(&0) as f64;
        let cycles: f64 = own.iter().map(|slice| slice.cycles as f64).sum();
        let rate = |place| own.iter().map(|slice| count(slice, place)).sum::<f64>() / cycles;
        let rates: Vec<f64> = (0..places).map(rate).collect();
        let mut products = vec![vec![0.0; places]; places];
        for slice in &own {
            let residual = |place: usize| count(slice, place) - rates[place] * slice.cycles as f64;
            let residuals: Vec<f64> = (0..places).map(residual).collect();
            for (a, row) in products.iter_mut().enumerate() {
                row.iter_mut()
                    .zip(&residuals)
                    .for_each(|(sum, other)| *sum += residuals[a] * other);
            }
        }
        Spread { slices: own.len() as f64, cycles, rates, products }
    }

    /// The sum of the squared residuals of a sum of events, each given by its place and its factor.
    fn squares(&self, terms: &[(usize, f64)]) -> f64 {
        let product = |a: usize, b: usize| self.products.get(a).and_then(|row| row.get(b));
        let with = |(a, by): &(usize, f64)| {
            let others = terms.iter().map(|(b, other)| other * product(*a, *b).unwrap_or(&0.0));
            by * others.sum::<f64>()
        };
        terms.iter().map(with).sum::<f64>().max(0.0)
    }
}

impl Spreads {
    pub(super) fn of(slices: &[Slice], plan: &Plan) -> Spreads {
        let place = |assigned: &CounterAssignment| slices::place(plan, *assigned);
        Spreads {
            cycles: slices.iter().map(|slice| slice.cycles as f64).sum(),
            groups: (0..plan.groups.len()).map(|group| Spread::of(slices, group)).collect(),
            places: plan.assignments.iter().map(place).collect(),
        }
    }

    /// The estimate of an event of the list in all of these slices (ratio estimator); `None` if the
    /// event was counted in fewer than two.
    pub(super) fn estimate(&self, event: usize) -> Option<f64> {
        let (group, place) = self.places.get(event).copied().flatten()?;
        let of = self.groups.get(usize::from(group)).filter(|of| of.slices >= 2.0)?;
        Some(of.rates.get(place)? * self.cycles)
    }

    /// Half the width of the 95 % interval of a sum of events of the list, each given by its index
    /// and its factor. These slices are some of those of `session`.
    ///
    /// Groups were counted in different slices, drawn independently. An interval can have few
    /// slices of a group, which say little about their own spread. So the session's mean square is
    /// added with weight ([`OF_SESSION`]), and a squared error for events that no slice may have
    /// met.
    /// ([`OF_SESSION`]), and squared events that no slice may have met.
    pub(super) fn error(&self, terms: &[(usize, f64)], session: &Spreads) -> f64 {
        let of_group = |group: usize| {
            let own: Vec<(usize, f64)> = terms
                .iter()
                .filter_map(|(event, by)| {
                    let place = self.places.get(*event).copied().flatten();
                    place.filter(|(of, _)| usize::from(*of) == group).map(|(_, place)| (place, *by))
                })
                .collect();
            let (here, all) = (&self.groups[group], &session.groups[group]);
            if own.is_empty() || here.slices == 0.0 {
                return 0.0;
            }
            let of_session = all.squares(&own) / (all.slices - 1.0).max(1.0);
            let unseen = UNSEEN * own.iter().map(|(_, by)| by * by).sum::<f64>();
            let weight = OF_SESSION / here.slices;
            let degrees = here.slices - 1.0 + weight;
            let variance = (here.squares(&own) + weight * of_session + unseen) / degrees;
            // Scale the deviation of the counted slices' sum to the cycles in which they were not
            // counted.
            let uncounted = (1.0 - here.cycles / self.cycles).max(0.0);
            let deviation = (here.slices * variance * uncounted).sqrt() * self.cycles / here.cycles;
            (student_t_95(degrees) * deviation).powi(2)
        };
        (0..self.groups.len()).map(of_group).sum::<f64>().sqrt()
    }
}
