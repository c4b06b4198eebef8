//! Where the cycles went over time (paper 000, Figure 7): the stack of each interval of a run, from
//! the records of its slices.
//!
//! In an interval an event is estimated as in the whole run: from the rate per cycle in the slices
//! in which it was counted (ratio estimator, Särndal, Swensson and Wretman 1992, section 5.6).

use serde::{Deserialize, Serialize};
use tally_abi::{Reading, Value, reading::Reason, trace::SliceRecord};
use tally_breakdown::{CyclePart, INDEPENDENT, Stack, cycle_parts};
use tally_engine::{Pinned, Plan, estimate::student_t_95, plan::CounterAssignment};

use super::{
    event::{EventReport, counts},
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
    /// The parts in the order of the pipeline; none if an event was counted in fewer than two of
    /// its slices, or no breakdown was asked for.
    pub parts: Vec<CyclePart>,
    /// The session's events.
    pub events: Vec<IntervalEvent>,
}

/// An event in an interval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IntervalEvent {
    /// Its name.
    pub name: String,
    /// Number of events; none if it was counted in fewer than two slices of the interval.
    pub estimate: Option<u64>,
    /// Half the width of the 95 % interval, in events.
    pub half_width_95: Option<f64>,
}

/// Divides the slices of a session, whose records are in the order of time, into `number` intervals
/// of about as many cycles each. `names` are the events in the order of the plan.
pub fn intervals(
    records: &[SliceRecord],
    plan: &Plan,
    names: &[&str],
    stack: Option<&Stack>,
    number: usize,
) -> Vec<Interval> {
    let slices = slices::all(records);
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
            intervals.push(interval(own, start_cycles, plan, names, stack));
        }
        (start_cycles, rest) = (start_cycles + cycles, later);
    }
    intervals
}

fn interval(
    slices: &[Slice],
    start_cycles: u64,
    plan: &Plan,
    names: &[&str],
    stack: Option<&Stack>,
) -> Interval {
    let sum = |of: fn(&Slice) -> u64| slices.iter().map(of).sum();
    let (cycles, instructions) = (sum(|slice| slice.cycles), sum(|slice| slice.instructions));
    let event = |(name, assigned): (&&str, &CounterAssignment)| {
        let value = match (slices::place(plan, *assigned), assigned) {
            (Some((group, place)), _) => estimate(slices, group, place),
            (None, CounterAssignment::Pinned(Pinned::Cycles)) => Value::Exact { count: cycles },
            (None, CounterAssignment::Pinned(Pinned::Instructions)) => {
                Value::Exact { count: instructions }
            }
            (None, _) => Value::NotMeasured { reason: Reason::TooFewSlices },
        };
        let reading = Reading { value, counted: 0, counted_cycles: 1, total_cycles: 1, slices: 0 };
        EventReport::of(name, &reading, None)
    };
    let events: Vec<EventReport> = names.iter().zip(&plan.assignments).map(event).collect();
    let is_measured =
        |name: &&str| events.iter().any(|event| event.name == *name && event.estimate.is_some());
    let stack = stack.filter(|stack| stack.of_cycles().iter().all(is_measured));
    let parts =
        stack.map(|stack| cycle_parts(&counts(&events), INDEPENDENT, stack)).unwrap_or_default();
    let events = events.into_iter().map(|event| {
        let EventReport { name, estimate, half_width_95, .. } = event;
        IntervalEvent { name, estimate, half_width_95 }
    });
    Interval { start_cycles, cycles, instructions, parts, events: events.collect() }
}

/// The estimate of the event at this place of the group, in all of the slices.
fn estimate(slices: &[Slice], group: u16, place: usize) -> Value {
    let counted: Vec<(f64, f64)> = slices
        .iter()
        .filter(|slice| slice.group == group && slice.cycles > 0)
        .map(|slice| (slice.cycles as f64, *slice.events.get(place).unwrap_or(&0) as f64))
        .collect();
    if counted.len() < 2 {
        return Value::NotMeasured { reason: Reason::TooFewSlices };
    }
    let all: f64 = slices.iter().map(|slice| slice.cycles as f64).sum();
    let cycles: f64 = counted.iter().map(|(cycles, _)| cycles).sum();
    let rate = counted.iter().map(|(_, events)| events).sum::<f64>() / cycles;
    let squares = counted.iter().map(|(cycles, events)| (events - rate * cycles).powi(2));
    let number = counted.len() as f64;
    // Of a sum of residuals of the slices that were counted, in units of their number.
    let variance = squares.sum::<f64>() * number / (number - 1.0) * (1.0 - cycles / all);
    let stderr = variance.sqrt() * all / cycles;
    Value::Estimated {
        estimate: (rate * all).round() as u64,
        stderr,
        half_width_95: student_t_95(number - 1.0) * stderr,
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

    /// Events happen at about the same rate in all groups, and twice as often in the second half.
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
        let value = |slices: &[Slice]| match estimate(slices, 1, 0) {
            Value::Estimated { estimate, half_width_95, .. } => (estimate as f64, half_width_95),
            other => panic!("{other:?}"),
        };
        for (half, want) in [(&slices[..200], 21_333.0), (&slices[200..], 42_667.0)] {
            let (got, half_width) = value(half);
            assert!((got - want).abs() <= half_width, "{got} ± {half_width}, not {want}");
            assert!(half_width < want / 20.0, "{half_width}");
        }
        // Counted in all of its slices, it is exact.
        let own: Vec<Slice> = slices.into_iter().filter(|slice| slice.group == 1).collect();
        assert_eq!(value(&own).1, 0.0);
    }

    #[test]
    fn intervals_divide_the_cycles_of_a_session() {
        let stack = tally_breakdown::stack_of(0x606a6).unwrap();
        let intervals = intervals(&records(), &four_groups(), &NAMES, Some(stack), 7);
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
