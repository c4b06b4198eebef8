//! Estimates refined after the run, from the records of all slices (decision 37).
//!
//! The engine keeps only sums; the trace has every slice. Cycles and instructions are known for all
//! of them, so a slice in which an event was not counted can be compared with those in which it
//! was: its events are predicted from the [`NEIGHBOURS`] slices that are most similar in
//! instructions per cycle, their own and those of the slices before and after. The estimate is the
//! sum of the counted events, the predictions for the other slices, and a correction: each counted
//! slice is also predicted without its own count, and the mean error of these predictions is
//! subtracted from all predictions (difference estimator, Särndal, Swensson and Wretman 1992,
//! section 6.3). So the estimate has no bias, however bad the predictions are, and the squares of
//! the same errors give its variance.

use tally_abi::trace::SliceRecord;
use tally_engine::{Pinned, Plan, estimate::student_t_95, plan::CounterAssignment};

use super::{
    estimate::{Estimate, UNSEEN, degrees},
    slices::{self, Slice},
};

/// Number of slices from which a slice is predicted.
const NEIGHBOURS: usize = 7;
/// The weight of the least similar of these slices; the most similar has 1.
const LEAST_WEIGHT: f64 = 0.1;
/// Weights of differences in instructions per cycle: of the slice itself, and of those before and
/// after. Chosen on runs of the default job and of `rounds 3 60000` with seeds 301 to 306; between
/// 0.2 and 1 the weights of the latter make little difference.
const WEIGHTS: [f64; 3] = [1.0, 0.2, 0.2];
/// The fewest slices of a group from which its events are estimated.
const LEAST_SLICES: usize = 64;
/// The fewest slices that contain an event, and degrees of freedom of its errors. For rarer events,
/// and those of which a few slices contain most, the engine's error bars are more reliable.
const LEAST_MET: usize = 16;
const LEAST_DEGREES: f64 = 8.0;

/// Coordinates by which slices are compared: the ranks, 0 to 1, of their instructions per cycle,
/// and of those of the slices before and after.
type Likeness = [f64; 3];

/// The slices of a session, and by group those that are similar to one another.
#[derive(Debug)]
pub(super) struct Refiner {
    slices: Vec<Slice>,
    groups: Vec<Group>,
    /// By event of the list: its group and its place there, if it was counted part of the time.
    places: Vec<Option<(u16, usize)>>,
}

/// A slice that is similar to another, and its weight.
#[derive(Clone, Copy, Debug)]
struct Neighbour {
    slice: usize,
    weight: f64,
}

/// A slice, and the most similar ones in which the group was counted.
type Compared = (usize, Vec<Neighbour>);

/// The slices in which a group was counted, and the others.
#[derive(Debug)]
struct Group {
    counted: Vec<Compared>,
    others: Vec<Compared>,
}

impl Refiner {
    /// Makes the refiner from all records of a session's slices, in the order of time.
    pub(super) fn of(records: &[SliceRecord], plan: &Plan) -> Refiner {
        let slices = slices::all(records);
        let likeness = likeness(&slices);
        let group = |group| Group::of(&slices, &likeness, group as u16);
        let groups = (0..plan.groups.len()).map(group).collect();
        let place = |assigned: &CounterAssignment| slices::place(plan, *assigned);
        Refiner { places: plan.assignments.iter().map(place).collect(), slices, groups }
    }

    /// Estimates of the session's events in the order of its list. `None` for an event that was
    /// counted all the time, and if the slices are too few or too uneven: then the engine's
    /// estimate is used.
    pub(super) fn estimates(&self) -> Vec<Option<Estimate>> {
        let value = |place: &Option<(u16, usize)>| {
            let (group, place) = (*place)?;
            self.estimate(group, &[(place, 1.0)])
        };
        self.places.iter().map(value).collect()
    }

    /// The estimate of the sum of the events at these places of the group, each times its factor.
    pub(super) fn estimate(&self, group: u16, places: &[(usize, f64)]) -> Option<Estimate> {
        let Group { counted, others } = self.groups.get(usize::from(group))?;
        let events = |slice: usize| {
            let all = &self.slices[slice].events;
            let of = |(place, by): &(usize, f64)| by * *all.get(*place).unwrap_or(&0) as f64;
            places.iter().map(of).sum::<f64>()
        };
        let cycles = |of: &[Compared]| {
            of.iter().map(|(slice, _)| self.slices[*slice].cycles as f64).sum::<f64>()
        };
        let predicted = |of: &Compared| predicted(&self.slices, of, events);
        let met = counted.iter().filter(|(slice, _)| events(*slice) != 0.0).count();
        if met < LEAST_MET {
            return None;
        }
        let sum: f64 = counted.iter().map(|(slice, _)| events(*slice)).sum();
        let errors: Vec<f64> = counted.iter().map(|of| events(of.0) - predicted(of)).collect();
        let number = errors.len() as f64;
        let mean = errors.iter().sum::<f64>() / number;
        // Number of other cycles per counted cycle.
        let rest = cycles(others) / cycles(counted);
        let predictions: f64 = others.iter().map(predicted).sum();
        let estimate = sum + predictions + rest * number * mean;
        let square = |error: &f64| ((error - mean).powi(2) * number + UNSEEN) / (number - 1.0);
        let squares: Vec<f64> = errors.iter().map(square).collect();
        let deviation = (rest * (1.0 + rest) * squares.iter().sum::<f64>()).sqrt();
        let degrees = Some(degrees(&squares)).filter(|degrees| *degrees >= LEAST_DEGREES)?;
        Some(Estimate::of(estimate.max(sum), student_t_95(degrees) * deviation))
    }
}

impl Group {
    fn of(slices: &[Slice], likeness: &[Likeness], group: u16) -> Group {
        let mut counted: Vec<usize> =
            (0..slices.len()).filter(|&at| slices[at].group == group).collect();
        if counted.len() < LEAST_SLICES {
            return Group { counted: Vec::new(), others: Vec::new() };
        }
        counted.sort_by(|&a, &b| likeness[a][0].total_cmp(&likeness[b][0]));
        let compare = |at: usize| (at, neighbours(at, &counted, likeness));
        let all = (0..slices.len()).map(compare);
        let (counted, others) = all.partition(|(slice, _)| slices[*slice].group == group);
        Group { counted, others }
    }
}

/// The events of a session in each of its slices, by event in the order of its list: the count, or
/// the prediction if the event was not counted. `None` for an event that was counted in no slice.
pub fn over_time(slices: &[Slice], plan: &Plan) -> Vec<Option<Vec<f64>>> {
    let likeness = likeness(slices);
    let compared = |group: usize| -> Vec<Compared> {
        let is_own = |at: &usize| usize::from(slices[*at].group) == group;
        let mut counted: Vec<usize> = (0..slices.len()).filter(is_own).collect();
        counted.sort_by(|&a, &b| likeness[a][0].total_cmp(&likeness[b][0]));
        (0..slices.len()).map(|at| (at, neighbours(at, &counted, &likeness))).collect()
    };
    let groups: Vec<_> = (0..plan.groups.len()).map(compared).collect();
    let event = |assigned: &CounterAssignment| match assigned {
        CounterAssignment::Pinned(Pinned::Instructions) => {
            Some(slices.iter().map(|slice| slice.instructions as f64).collect())
        }
        CounterAssignment::Pinned(Pinned::Cycles) => {
            Some(slices.iter().map(|slice| slice.cycles as f64).collect())
        }
        assigned => {
            let (group, place) = slices::place(plan, *assigned)?;
            let events = |at: usize| *slices[at].events.get(place).unwrap_or(&0) as f64;
            let in_slice = |of: &Compared| {
                let is_counted = slices[of.0].group == group;
                if is_counted { events(of.0) } else { predicted(slices, of, events) }
            };
            Some(groups[usize::from(group)].iter().map(in_slice).collect())
        }
    };
    plan.assignments.iter().map(event).collect()
}

/// The slices of `counted`, sorted by their first rank, that are most similar to the slice `at`.
fn neighbours(at: usize, counted: &[usize], likeness: &[Likeness]) -> Vec<Neighbour> {
    let nearest = nearest(at, counted, likeness);
    let furthest = nearest.last().map_or(0.0, |(distance, _)| *distance);
    let weight = |distance: f64| {
        if furthest > 0.0 { 1.0 - (1.0 - LEAST_WEIGHT) * distance / furthest } else { 1.0 }
    };
    let neighbour =
        |(distance, near): &(f64, usize)| Neighbour { slice: *near, weight: weight(*distance) };
    nearest.iter().map(neighbour).collect()
}

/// Predicts the events in a slice from their rate in its neighbours.
fn predicted(slices: &[Slice], (slice, near): &Compared, events: impl Fn(usize) -> f64) -> f64 {
    let cycles = |slice: usize| slices[slice].cycles as f64;
    let sum = |of: &dyn Fn(usize) -> f64| {
        near.iter().map(|near| near.weight * of(near.slice)).sum::<f64>()
    };
    let around = sum(&cycles);
    if around > 0.0 { sum(&events) / around * cycles(*slice) } else { 0.0 }
}

fn likeness(slices: &[Slice]) -> Vec<Likeness> {
    let rates = slices.iter().map(|slice| slice.instructions as f64 / slice.cycles.max(1) as f64);
    let ranks = ranks(&rates.collect::<Vec<_>>());
    let last = ranks.len().saturating_sub(1);
    let of = |at: usize| [ranks[at], ranks[at.saturating_sub(1)], ranks[(at + 1).min(last)]];
    (0..ranks.len()).map(of).collect()
}

/// The share of the values that are smaller, plus half of those that are equal.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for same in order.chunk_by(|&a, &b| values[a].total_cmp(&values[b]).is_eq()) {
        let rank = (below as f64 + same.len() as f64 / 2.0) / values.len() as f64;
        same.iter().for_each(|&at| ranks[at] = rank);
        below += same.len();
    }
    ranks
}

/// The [`NEIGHBOURS`] slices of `counted` that are most similar to the slice `at`, without itself,
/// with their distances, the nearest first. `counted` is in the order of the first rank: the search
/// ends where that rank alone is too far away.
fn nearest(at: usize, counted: &[usize], likeness: &[Likeness]) -> Vec<(f64, usize)> {
    let first_rank = |&other: &usize| WEIGHTS[0] * (likeness[other][0] - likeness[at][0]).abs();
    let middle = counted.partition_point(|&other| likeness[other][0] < likeness[at][0]);
    let (mut below, mut above) = (counted[..middle].iter().rev(), counted[middle..].iter());
    let (mut lower, mut higher) = (below.next(), above.next());
    let mut nearest: Vec<(f64, usize)> = Vec::with_capacity(NEIGHBOURS + 1);
    loop {
        let lower_is_next = match (lower, higher) {
            (Some(low), Some(high)) => first_rank(low) <= first_rank(high),
            (low, _) => low.is_some(),
        };
        let next = if lower_is_next { &mut lower } else { &mut higher };
        let Some(&other) = *next else { return nearest };
        if nearest.len() == NEIGHBOURS && first_rank(&other) > nearest[NEIGHBOURS - 1].0 {
            return nearest;
        }
        *next = if lower_is_next { below.next() } else { above.next() };
        if other != at {
            let distance = distance(&likeness[at], &likeness[other]);
            let place = nearest.partition_point(|near| *near < (distance, other));
            nearest.insert(place, (distance, other));
            nearest.truncate(NEIGHBOURS);
        }
    }
}

fn distance(a: &Likeness, b: &Likeness) -> f64 {
    WEIGHTS.iter().zip(a.iter().zip(b)).map(|(weight, (a, b))| weight * (a - b).abs()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::slices::made_up::{GROUPS, Random, four_groups, record};
    use tally_abi::trace::End;

    const CYCLES: u64 = 20_000;

    /// A program of recurring phases, each with different rates: its records, and the number of
    /// each group's events.
    fn program(rounds: usize, random: &mut Random) -> (Vec<SliceRecord>, [u64; GROUPS as usize]) {
        let phases: Vec<(f64, [f64; GROUPS as usize])> = (1..=5)
            .map(|n| (0.5 * f64::from(n), std::array::from_fn(|_| random.uniform())))
            .collect();
        let (mut records, mut truth) = (Vec::new(), [0; GROUPS as usize]);
        let (mut left, mut phase) = (0, 0);
        for _ in 0..rounds {
            let mut order: Vec<u16> = (0..GROUPS).collect();
            (0..order.len()).for_each(|n| order.swap(n, random.below(n + 1)));
            for group in order {
                if left == 0 {
                    (left, phase) = (1 + random.below(30), random.below(phases.len()));
                }
                left -= 1;
                let (ipc, rates) = phases[phase];
                let executed = CYCLES as f64 * ipc * (0.95 + 0.1 * random.uniform());
                let events =
                    rates.map(|rate| (executed * rate * (0.8 + 0.4 * random.uniform())) as u64);
                truth.iter_mut().zip(events).for_each(|(truth, events)| *truth += events);
                let counted = [CYCLES, executed as u64, events[usize::from(group)]];
                records.push(record(group, End::Overflow, counted));
            }
        }
        (records, truth)
    }

    #[test]
    fn intervals_contain_the_truth_and_errors_are_smaller_than_those_of_ratios() {
        let plan = four_groups();
        let (mut held, mut judged) = (0, 0);
        let (mut errors, mut of_ratios, mut bias) = (0.0, 0.0, 0.0);
        for seed in 0..300 {
            let (records, truth) = program(150, &mut Random(0x5eed << 32 | seed));
            let values = Refiner::of(&records, &plan).estimates();
            for (group, (value, truth)) in values.iter().zip(truth).enumerate() {
                let Some(value) = value else { continue };
                judged += 1;
                held += u32::from(value.contains(truth));
                let of_group = records.iter().filter(|record| usize::from(record.group) == group);
                let ratio = of_group.map(|record| record.counts[0] as f64).sum::<f64>();
                let relative = |estimate: f64| estimate / truth as f64 - 1.0;
                errors += relative(value.estimate).powi(2);
                bias += relative(value.estimate);
                of_ratios += relative(ratio * f64::from(GROUPS)).powi(2);
            }
        }
        assert!(judged > 1_000, "{judged}");
        let judged = f64::from(judged);
        let (share, bias) = (f64::from(held) / judged, bias / judged);
        assert!((0.93..=0.97).contains(&share), "{share}");
        // 0.44 in squares is two thirds of the deviation.
        assert!(errors < 0.44 * of_ratios, "{errors} {of_ratios}");
        assert!(bias.abs() < 0.001, "{bias}");
    }

    #[test]
    fn nothing_is_said_of_few_slices_of_rare_events_and_of_one_large_slice() {
        let plan = four_groups();
        let of = |rounds: u64, events: fn(u64) -> u64| {
            let round = |round| {
                let slice = move |group| {
                    let instructions = 1_000 + 7 * round + u64::from(group);
                    record(group, End::Overflow, [CYCLES, instructions, events(round)])
                };
                (0..GROUPS).map(slice)
            };
            Refiner::of(&(0..rounds).flat_map(round).collect::<Vec<_>>(), &plan).estimates()[0]
        };
        let steady = of(64, |_| 10).unwrap();
        assert_eq!((steady.estimate, steady.contains(2_560)), (2_560.0, true));
        assert!(of(63, |_| 10).is_none());
        assert!(of(64, |round| u64::from(round < 15)).is_none());
        assert!(of(64, |round| if round == 9 { 1_000_000 } else { 10 }).is_none());
    }

    #[test]
    fn the_nearest_are_those_of_a_search_of_all() {
        let mut random = Random(7);
        let ranks: Vec<Likeness> =
            (0..500).map(|_| std::array::from_fn(|_| random.below(40) as f64 / 40.0)).collect();
        let mut counted: Vec<usize> = (0..500).step_by(3).collect();
        counted.sort_by(|&a, &b| ranks[a][0].total_cmp(&ranks[b][0]));
        for at in 0..500 {
            let others = counted.iter().filter(|&&other| other != at);
            let mut all: Vec<f64> =
                others.map(|&other| distance(&ranks[at], &ranks[other])).collect();
            all.sort_by(f64::total_cmp);
            let found: Vec<f64> =
                nearest(at, &counted, &ranks).iter().map(|(distance, _)| *distance).collect();
            assert_eq!(found, all[..NEIGHBOURS]);
        }
    }
}
