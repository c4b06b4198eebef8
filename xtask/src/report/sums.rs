//! Errors of sums of a session's events, from its slices.

use tally_abi::trace::SliceRecord;
use tally_engine::Plan;

use super::{refined::Refiner, regression::Regression, slices, together::Together};

/// Statistics of a session's slices for sums of its events.
#[derive(Debug)]
pub struct Sums {
    together: Together,
    again: Again,
}

/// Method by which sums are estimated again, if there are enough slices.
#[derive(Debug)]
enum Again {
    /// From the refined estimates, which were requested, of each event.
    Refined(Refiner),
    /// From a regression of the sums.
    Regressed(Regression),
}

/// A term of a sum: the event by its index in the session's list, its factor, its own half width,
/// and whether its estimate was made again after the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub(super) event: usize,
    pub(super) factor: f64,
    pub(super) half_width_95: f64,
    pub(super) is_made_again: bool,
}

impl Sums {
    /// Computes the statistics from all records of a session's slices, in the order of time.
    pub(super) fn of(records: &[SliceRecord], plan: &Plan, refiner: Option<Refiner>) -> Sums {
        let together = Together::of(&slices::all(records), plan);
        let regressed = || Again::Regressed(Regression::of(records, plan));
        Sums { together, again: refiner.map_or_else(regressed, Again::Refined) }
    }

    /// The regression's estimate of an event, to be used in sums instead of the event's own, and
    /// half the width of its interval, if that is known; `None` without such an estimate.
    pub(super) fn regressed(&self, event: usize) -> Option<(f64, Option<f64>)> {
        match &self.again {
            Again::Refined(_) => None,
            Again::Regressed(regression) => regression.event(event),
        }
    }

    /// Half the width of the 95 % interval of a sum. Errors of events in one group are correlated;
    /// groups were counted in different slices, drawn independently. If all estimates of a group
    /// were made again, their sum is estimated from the same slices, too.
    pub(super) fn error(&self, terms: &[Term]) -> f64 {
        let group_of = |term: &Term| self.together.place(term.event).map(|(group, _)| group);
        let mut groups: Vec<Option<u16>> = terms.iter().map(group_of).collect();
        groups.sort_unstable();
        groups.dedup();
        let of_group = |group: Option<u16>| {
            let own: Vec<Term> =
                terms.iter().filter(|term| group_of(term) == group).copied().collect();
            self.made_again(group, &own).unwrap_or_else(|| {
                let scaled = own.iter().map(|term| (term.event, term.factor * term.half_width_95));
                self.together.square(&scaled.collect::<Vec<_>>())
            })
        };
        groups.into_iter().map(of_group).fold(0.0, |sum, square| sum + square).sqrt()
    }

    /// The squared half width of a sum of estimates of one group that were made again.
    fn made_again(&self, group: Option<u16>, terms: &[Term]) -> Option<f64> {
        let group = group?;
        let place = |term: &Term| {
            let (_, place) = self.together.place(term.event).filter(|_| term.is_made_again)?;
            Some((place, term.factor))
        };
        let places: Vec<(usize, f64)> = terms.iter().map(place).collect::<Option<_>>()?;
        let half_width = match &self.again {
            Again::Refined(refiner) => refiner.estimate(group, &places)?.half_width_95,
            Again::Regressed(regression) => regression.error(group, &places)?,
        };
        Some(half_width.powi(2))
    }
}
