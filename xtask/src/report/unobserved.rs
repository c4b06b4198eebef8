//! Unobserved values: the numbers of events without any overflow interrupt (decision 34), from the
//! trace of a session whose rounds come in pairs ([`Shares::Paired`]).
//!
//! One round of each pair has slices of the requested length, and the other has slices four times
//! as long. Events that an interrupt adds to a slice of any length cancel in the difference of the
//! two; and in ring 3 interrupts add no instructions. So the differences of a group's slices are
//! slices without interrupts, and the ratio estimate of their events by their instructions is that
//! of the program alone.
//!
//! [`Shares::Paired`]: tally_abi::Shares::Paired

use std::collections::BTreeMap;

use tally_abi::trace::SliceRecord;
use tally_engine::{Pinned, Plan, estimate::student_t_95, plan::CounterAssignment};

use super::{
    estimate::{Estimate, UNSEEN, degrees},
    slices::{self, Slice},
};

/// The fewest pairs of rounds that give a value.
const LEAST_PAIRS: usize = 8;

/// Events and instructions of a pair's long and short slices.
#[derive(Clone, Copy, Debug)]
struct Pair {
    long: [f64; 2],
    short: [f64; 2],
}

/// The unobserved values of a session's events in the order of its list, from all records of its
/// slices, in the order of time. `instructions` is their number in the whole session, in ring 3.
/// `None` for reference cycles, and for an event with too few pairs.
pub fn unobserved(
    records: &[SliceRecord],
    plan: &Plan,
    instructions: u64,
) -> Vec<Option<Estimate>> {
    let slices = slices::whole(records);
    let round = plan.round() as usize;
    let mut groups: BTreeMap<u16, Vec<Slice>> = BTreeMap::new();
    for slice in &slices {
        groups.entry(slice.group).or_default().push(slice.clone());
    }
    let value = |assigned: &CounterAssignment| match *assigned {
        CounterAssignment::Pinned(Pinned::Instructions) => {
            Some(Estimate::of(instructions as f64, 0.0))
        }
        CounterAssignment::Pinned(Pinned::Cycles) => {
            let pairs = pairs(&slices, round, |slice| Some(slice.cycles));
            extrapolate(&pairs, instructions as f64, 1.0)
        }
        CounterAssignment::Pinned(Pinned::Reference) | CounterAssignment::Metric(_) => None,
        CounterAssignment::General { .. } => {
            let (group, place) = slices::place(plan, *assigned)?;
            let share = usize::from(plan.groups[usize::from(group)].share);
            let events = |slice: &Slice| slice.events.get(place).copied();
            let pairs = pairs(groups.get(&group)?, share, events);
            extrapolate(&pairs, instructions as f64, round as f64 / share as f64)
        }
    };
    plan.assignments.iter().map(value).collect()
}

/// The pairs of rounds, each with `share` of the slices.
fn pairs(slices: &[Slice], share: usize, events: impl Fn(&Slice) -> Option<u64>) -> Vec<Pair> {
    let sum = |slices: &[Slice]| {
        let all = |of: &dyn Fn(&Slice) -> u64| slices.iter().map(of).sum::<u64>() as f64;
        let (cycles, instructions) = (all(&|s| s.cycles), all(&|s| s.instructions));
        (cycles, [all(&|s| events(s).unwrap_or_default()), instructions])
    };
    let pair = |slices: &[Slice]| {
        let (first, second) = slices.split_at(share);
        let ((first_cycles, first), (second_cycles, second)) = (sum(first), sum(second));
        let first_is_long = first_cycles > second_cycles;
        let (long, short) = if first_is_long { (first, second) } else { (second, first) };
        Pair { long, short }
    };
    slices.chunks_exact(2 * share.max(1)).map(pair).collect()
}

/// The ratio estimate from the differences of the pairs, for a group that has one slice in `turns`.
fn extrapolate(pairs: &[Pair], instructions: f64, turns: f64) -> Option<Estimate> {
    let sum = |of: fn(&Pair) -> f64| pairs.iter().map(of).sum::<f64>();
    let difference = sum(|pair| pair.long[1] - pair.short[1]);
    if pairs.len() < LEAST_PAIRS || difference <= 0.0 {
        return None;
    }
    let rate = sum(|pair| pair.long[0] - pair.short[0]) / difference;
    let added = (sum(|pair| pair.short[0]) - rate * sum(|pair| pair.short[1])) / pairs.len() as f64;
    // Weights of a slice that was counted, and of those of the same length that were not.
    let weight = instructions / difference;
    let long = ((weight - 1.0) * (weight - 1.0) + turns - 1.0).sqrt();
    let short = ((weight + 1.0) * (weight + 1.0) + turns - 1.0).sqrt();
    let residual = |[events, instructions]: [f64; 2]| events - rate * instructions - added;
    let strayed = |pair: &Pair| long * residual(pair.long) - short * residual(pair.short);
    let strayed: Vec<f64> = pairs.iter().map(strayed).collect();
    let squares: Vec<f64> =
        strayed.windows(2).map(|next| (next[1] - next[0]).powi(2) / 2.0).collect();
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    let variance = mean * pairs.len() as f64 + UNSEEN * weight * weight;
    let half_width = student_t_95(degrees(&squares)) * variance.sqrt();
    // Upper bound of what interrupts have added, had they added equally to each slice. Long slices
    // have more, as the program reloads more of the evicted lines. That difference is attributed to
    // the program.
    let interrupts = 2.0 * pairs.len() as f64 * turns * added.max(0.0);
    Some(Estimate::of((rate * instructions).max(0.0), half_width).down_by(interrupts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::slices::made_up::{GROUPS, Random, four_groups, record};
    use tally_abi::trace::End;

    const CYCLES: u64 = 20_000;

    /// A program of phases under pairs of rounds, where each interrupt adds `added` events to a
    /// short slice and to a long one: its records, its instructions, and its events without
    /// interrupts.
    fn program(pairs: usize, added: [f64; 2], random: &mut Random) -> (Vec<SliceRecord>, u64, f64) {
        let (mut records, mut instructions, mut truth) = (Vec::new(), 0, 0.0);
        let (mut left, mut ipc, mut rate) = (0, 1.0, 0.0);
        for _ in 0..pairs {
            let first = random.below(2);
            for short in [first, 1 - first] {
                let mut order: Vec<u16> = (0..GROUPS).collect();
                (0..order.len()).for_each(|n| order.swap(n, random.below(n + 1)));
                for group in order {
                    if left == 0 {
                        left = 40 + random.below(200);
                        (ipc, rate) = (0.5 + 2.0 * random.uniform(), 0.02 * random.uniform());
                    }
                    left -= 1;
                    let cycles = if short == 1 { CYCLES } else { 4 * CYCLES };
                    let added = added[1 - short];
                    let executed = cycles as f64 * ipc * (0.9 + 0.2 * random.uniform());
                    let events = executed * rate * (0.7 + 0.6 * random.uniform());
                    truth += events;
                    instructions += executed as u64;
                    let counted = [cycles, executed as u64, (events + added) as u64];
                    records.push(record(group, End::Overflow, counted));
                }
            }
        }
        (records, instructions, truth)
    }

    /// Results of 500 programs: the share of intervals that contain the number without interrupts,
    /// and of those whose upper end is above it; the mean error, and what interrupts add, relative
    /// to it.
    fn judged(added: [f64; 2]) -> [f64; 4] {
        let plan = four_groups();
        let (mut judged, mut sums) = (0.0, [0.0; 4]);
        for seed in 0..500 {
            let mut random = Random(0xbead << 32 | seed);
            let (records, instructions, truth) = program(150, added, &mut random);
            let slices = records.len() as f64;
            for value in &unobserved(&records, &plan, instructions)[..usize::from(GROUPS)] {
                let value = value.unwrap();
                judged += 1.0;
                sums[0] += f64::from(value.contains(truth as u64));
                sums[1] += f64::from(truth <= value.high_95);
                sums[2] += value.estimate / truth - 1.0;
                sums[3] += added[0] * slices / truth;
            }
        }
        sums.map(|sum| sum / judged)
    }

    #[test]
    fn intervals_contain_the_number_without_interrupts_and_there_is_no_bias() {
        let [within, below, bias, shift] = judged([40.0, 40.0]);
        // Uncounted slices resemble their counted neighbours; the estimator does not use that, so
        // coverage is above 95 %.
        assert!((0.965..=0.99).contains(&below) && within >= 0.96, "{below} {within}");
        assert!(shift > 0.05 && bias.abs() < 0.01, "{bias} of {shift}");
    }

    #[test]
    fn intervals_reach_down_to_where_long_slices_have_more_of_an_interrupt() {
        let [within, below, bias, shift] = judged([40.0, 60.0]);
        assert!(bias > 0.02 && below > 0.98, "{bias} of {shift}, {below}");
        assert!(within >= 0.95, "{within}");
    }

    #[test]
    fn a_steady_program_is_told_exactly() {
        let plan = four_groups();
        let pair = |group| {
            let pieces = [(End::SwitchedOut, 1), (End::Overflow, 3)];
            let long =
                pieces.map(|(end, part)| record(group, end, [1_000 * part, 2_000 * part, 30]));
            [long[0], long[1], record(group, End::Overflow, [1_000, 2_000, 30])]
        };
        // An interrupt adds 20 of the 60 events of a long slice, and of the 30 of a short one.
        let records: Vec<_> =
            (0..10).flat_map(|_| (0..GROUPS).flat_map(pair).collect::<Vec<_>>()).collect();
        // Records are in the order of rounds, not of groups.
        let mut by_round = Vec::new();
        for pairs in records.chunks(3 * usize::from(GROUPS)) {
            by_round.extend(pairs.chunks(3).flat_map(|pair| &pair[..2]));
            by_round.extend(pairs.chunks(3).flat_map(|pair| &pair[2..]));
        }
        let by_round: Vec<SliceRecord> = by_round.into_iter().copied().collect();
        let values = unobserved(&by_round, &plan, 400_000);
        let value = values[0].unwrap();
        assert_eq!((value.estimate, value.contains(2_000)), (2_000.0, true));
        assert_eq!(values[4], Some(Estimate::of(400_000.0, 0.0)));
        assert_eq!(values[5].map(|cycles| cycles.estimate), Some(200_000.0));
        assert_eq!(unobserved(&by_round[..60], &plan, 60_000)[0], None);
    }
}
