//! Cycles by cause over time (paper 000, Figure 7): the stack of each interval of a run, from the
//! records of its slices.
//!
//! In an interval an event is estimated as in the whole run: from the rate per cycle in the slices
//! in which it was counted (ratio estimator, Särndal, Swensson and Wretman 1992, section 5.6).

mod spread;

use serde::{Deserialize, Serialize};
use tally_abi::trace::SliceRecord;
use tally_breakdown::{Count, CyclePart, Stack, cycle_parts};
use tally_engine::{Pinned, Plan, SKEW_CYCLES, plan::CounterAssignment};

use self::spread::Spreads;
use super::{
    rings::{RING_0, Rings},
    slices::{self, Slice},
};

/// The stack of an interval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// Core cycles of the session from its start to the interval.
    pub start_cycles: u64,
    /// Core cycles of the interval.
    pub cycles: u64,
    /// Instructions of the interval.
    pub instructions: u64,
    /// The parts in the order of the pipeline; empty if an event was counted in fewer than two of
    /// the interval's slices, or no breakdown was requested.
    pub parts: Vec<CyclePart>,
    /// The parts of ring 0, if requested. All of its counts are estimates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_parts: Vec<CyclePart>,
    /// The session's events.
    pub events: Vec<IntervalEvent>,
}

/// An event in an interval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IntervalEvent {
    /// Name of the event.
    pub name: String,
    /// Number of events; `None` if the event was counted in fewer than two slices of the interval.
    pub estimate: Option<u64>,
    /// Half the width of the 95 % interval, in events.
    pub half_width_95: Option<f64>,
}

/// Half the width of the 95 % interval of a sum of events, each by its index and with its factor.
type ErrorOf<'a> = dyn Fn(&[(usize, f64)]) -> f64 + 'a;

/// The inputs that all intervals share.
struct Made<'a> {
    plan: &'a Plan,
    /// The events in the order of the plan.
    names: &'a [&'a str],
    stack: Option<(&'a Stack, Rings)>,
    /// Spreads of all slices.
    session: Spreads,
}

/// Divides the slices of a session, whose records are in the order of time, into `number` intervals
/// with about equal numbers of cycles. `names` are the events in the order of the plan.
pub fn intervals(
    records: &[SliceRecord],
    plan: &Plan,
    names: &[&str],
    stack: Option<(&Stack, Rings)>,
    number: usize,
) -> Vec<Interval> {
    let slices = slices::all(records);
    let made = Made { plan, names, stack, session: Spreads::of(&slices, plan) };
    let all: u64 = slices.iter().map(|slice| slice.cycles).sum();
    let (mut intervals, mut start_cycles, mut rest) = (Vec::new(), 0, slices.as_slice());
    for index in 1..=number as u64 {
        let (mut cycles, mut taken) = (0, 0);
        while taken < rest.len() && start_cycles + cycles < all * index / number as u64 {
            cycles += rest[taken].cycles;
            taken += 1;
        }
        let (own, later) = rest.split_at(taken);
        if !own.is_empty() {
            intervals.push(made.interval(own, start_cycles));
        }
        (start_cycles, rest) = (start_cycles + cycles, later);
    }
    intervals
}

impl Made<'_> {
    fn interval(&self, slices: &[Slice], start_cycles: u64) -> Interval {
        let sum = |of: fn(&Slice) -> u64| slices.iter().map(of).sum();
        let (cycles, instructions) = (sum(|slice| slice.cycles), sum(|slice| slice.instructions));
        let spreads = Spreads::of(slices, self.plan);
        // Bound of what the interrupts may have added to counts of ring 0 by their entry and exit
        // (decision 23).
        let skew = |name: &str| if name.ends_with(RING_0) { slices.len() as f64 } else { 0.0 };
        let error = |terms: &[(usize, f64)]| {
            let skews = terms.iter().map(|(event, by)| by * skew(self.names[*event]));
            let square: f64 = skews.map(|skew| (SKEW_CYCLES as f64 * skew).powi(2)).sum();
            spreads.error(terms, &self.session) + square.sqrt()
        };
        let count = |event: usize| match self.plan.assignments[event] {
            CounterAssignment::Pinned(Pinned::Cycles) => Some((cycles as f64, 0.0)),
            CounterAssignment::Pinned(Pinned::Instructions) => Some((instructions as f64, 0.0)),
            _ => Some((spreads.estimate(event)?, error(&[(event, 1.0)]))),
        };
        let counts: Vec<Option<(f64, f64)>> = (0..self.names.len()).map(count).collect();
        let parts = |suffix: &str| self.parts(suffix, &counts, &error).unwrap_or_default();
        let rings = self.stack.map(|(_, rings)| rings.suffixes()).unwrap_or_default();
        let [parts, kernel_parts] = rings.map(|suffix| suffix.map(parts).unwrap_or_default());
        let event = |(name, count): (&&str, &Option<(f64, f64)>)| IntervalEvent {
            name: (*name).to_owned(),
            estimate: count.map(|(estimate, _)| estimate.round() as u64),
            half_width_95: count.map(|(_, half_width)| half_width),
        };
        let events = self.names.iter().zip(&counts).map(event).collect();
        Interval { start_cycles, cycles, instructions, parts, kernel_parts, events }
    }

    /// The parts from the events whose names have this suffix; empty if one was not measured.
    fn parts(
        &self,
        suffix: &str,
        counts: &[Option<(f64, f64)>],
        error: &ErrorOf<'_>,
    ) -> Option<Vec<CyclePart>> {
        let (stack, _) = self.stack?;
        let place = |name: &str| {
            let is = |other: &&str| other.strip_suffix(suffix) == Some(name);
            self.names.iter().position(is)
        };
        let named = |name: &str| {
            let (estimate, half_width_95) = counts[place(name)?]?;
            Some(Count { estimate, half_width_95, truth: None })
        };
        let errors = |terms: &[(&'static str, f64)]| {
            let terms = terms.iter().map(|(name, by)| Some((place(name)?, *by)));
            terms.collect::<Option<Vec<_>>>().map(|terms| error(&terms))
        };
        let is_measured = stack.of_cycles().iter().all(|name| named(name).is_some());
        is_measured.then(|| cycle_parts(&named, &errors, stack))
    }
}

#[cfg(test)]
mod tests {
    use tally_abi::trace::End;

    use super::*;
    use crate::report::slices::made_up::{GROUPS, four_groups, record};

    const SLICES: u64 = 400;
    /// The events of the plan.
    const NAMES: [&str; 6] = ["A", "B", "C", "D", "INSTRUCTIONS", "CYCLES"];

    /// Records of events that happen at about the same rate in all groups, and twice as often in
    /// the second half.
    fn records() -> Vec<SliceRecord> {
        let slice = |at: u64| {
            let group = at * 7 % u64::from(GROUPS);
            let wave = if at.is_multiple_of(3) { 20 } else { 0 };
            let events = (100 + wave) * (1 + 2 * at / SLICES);
            record(group as u16, End::Overflow, [1_000, 500, events])
        };
        (0..SLICES).map(slice).collect()
    }

    #[test]
    fn intervals_are_all_slices_and_each_has_the_rate_of_its_own() {
        let slices = slices::all(&records());
        let session = Spreads::of(&slices, &four_groups());
        let value = |slices: &[Slice]| {
            let spreads = Spreads::of(slices, &four_groups());
            (spreads.estimate(1).unwrap(), spreads.error(&[(1, 1.0)], &session))
        };
        for (half, want) in [(&slices[..200], 21_333.0), (&slices[200..], 42_667.0)] {
            let (got, half_width) = value(half);
            assert!((got - want).abs() <= half_width, "{got} ± {half_width}, not {want}");
            assert!(half_width < want / 20.0, "{half_width}");
        }
        // Counted in all of the interval's slices, an event is exact.
        let own: Vec<Slice> = slices.into_iter().filter(|slice| slice.group == 1).collect();
        assert_eq!(value(&own).1, 0.0);
    }

    #[test]
    fn intervals_divide_the_cycles_of_a_session() {
        let stack = tally_breakdown::stack_of(0x606a6).unwrap();
        let intervals =
            intervals(&records(), &four_groups(), &NAMES, Some((stack, Rings::User)), 7);
        let cycles: Vec<u64> = intervals.iter().map(|interval| interval.cycles).collect();
        assert_eq!((cycles.len(), cycles.iter().sum::<u64>()), (7, SLICES * 1_000));
        assert!(cycles.iter().all(|cycles| cycles.abs_diff(57_142) <= 1_000), "{cycles:?}");
        let mut at = 0;
        for interval in &intervals {
            assert_eq!((interval.start_cycles, interval.parts.len()), (at, 0));
            let names: Vec<&str> = interval.events.iter().map(|event| &*event.name).collect();
            assert_eq!(names, NAMES);
            let exact = [interval.instructions, interval.cycles].map(Some);
            assert_eq!([4, 5].map(|at: usize| interval.events[at].estimate), exact);
            assert!(interval.events[..4].iter().all(|event| event.half_width_95 > Some(0.0)));
            at += interval.cycles;
        }
    }
}
