//! The rounds of a session, from its slices: in a round every group is counted in one slice. An
//! interval consists of some consecutive rounds.

use std::ops::Range;

use tally_engine::Plan;
use xtask::report::{Slice, place};

use super::distance::Sample;

/// Share of the slices' length below which rounds are left out: those at the start, whose slices
/// are shorter (decision 25).
const WHOLE: f64 = 0.75;

/// Some consecutive rounds.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    /// Core cycles of the session from its start to these rounds.
    pub(super) start_cycles: u64,
    /// Core cycles of these rounds.
    pub(super) cycles: u64,
    /// The indices of their slices.
    pub(super) slices: Range<usize>,
}

impl Rounds {
    /// The counts of the slices for the event at this index of the plan's list. Instructions and
    /// cycles are counted in every slice; the slices of the first group stand for all, as in the
    /// paper, where these events have no separate counter.
    pub(super) fn sample(&self, slices: &[Slice], plan: &Plan, event: usize) -> Option<Sample> {
        let place = place(plan, plan.assignments[event]);
        let (group, index) = place.map_or((0, None), |(group, index)| (group, Some(index)));
        let mut sample = Sample { events: 0, part: 0, whole: self.cycles };
        for slice in slices[self.slices.clone()].iter().filter(|slice| slice.group == group) {
            sample.events += match index {
                Some(index) => *slice.events.get(index)?,
                None => slice.instructions,
            };
            sample.part += slice.cycles;
        }
        Some(sample)
    }

    /// Joins these rounds with the next ones, if those follow at once.
    fn with(self, next: Rounds) -> Option<Rounds> {
        (self.slices.end == next.slices.start).then(|| Rounds {
            start_cycles: self.start_cycles,
            cycles: self.cycles + next.cycles,
            slices: self.slices.start..next.slices.end,
        })
    }
}

/// The intervals of `of_interval` whole rounds, from a session's slices of this length; `None` if
/// the slices are not in rounds of all groups.
pub(super) fn intervals(
    slices: &[Slice],
    plan: &Plan,
    slice_cycles: u64,
    of_interval: usize,
) -> Option<Vec<Rounds>> {
    let rounds = rounds(slices, plan, slice_cycles)?;
    let joined =
        |part: &[Rounds]| part.iter().cloned().map(Some).reduce(|a, b| a?.with(b?)).flatten();
    Some(rounds.chunks_exact(of_interval).filter_map(joined).collect())
}

fn rounds(slices: &[Slice], plan: &Plan, slice_cycles: u64) -> Option<Vec<Rounds>> {
    let groups = plan.groups.len();
    let (mut rounds, mut start_cycles) = (Vec::new(), 0);
    for (number, slices) in slices.chunks_exact(groups).enumerate() {
        let cycles = slices.iter().map(|slice| slice.cycles).sum();
        let mut present: Vec<u16> = slices.iter().map(|slice| slice.group).collect();
        present.sort_unstable();
        if !present.iter().copied().eq(0..groups as u16) {
            return None;
        }
        if cycles as f64 >= WHOLE * (slice_cycles * groups as u64) as f64 {
            let slices = number * groups..(number + 1) * groups;
            rounds.push(Rounds { start_cycles, cycles, slices });
        }
        start_cycles += cycles;
    }
    Some(rounds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_engine::{Demand, Layout, Pinned, Selector, Widths, plan};

    const GROUPS: u16 = 4;

    /// A plan with four groups of one event each, and instructions.
    fn four_groups() -> Plan {
        let events = (0..u64::from(GROUPS)).map(|event| Demand::general(Selector(event), 1));
        let demands: Vec<_> = events.chain([Demand::pinned(Pinned::Instructions)]).collect();
        let layout = Layout { general: 1, reference: false, extra: 0, widths: Widths::of(48) };
        plan(&demands, &layout).unwrap()
    }

    /// Rounds of four slices, each of `cycles`, in which group g counts 10 g + 1 events.
    fn slices(cycles: &[u64]) -> Vec<Slice> {
        let round = |(number, cycles): (usize, &u64)| {
            let of = |slice: u16| {
                let group = (slice + number as u16) % GROUPS;
                let events = vec![u64::from(10 * group + 1)];
                Slice { group, cycles: *cycles, instructions: 500, events }
            };
            (0..GROUPS).map(of).collect::<Vec<_>>()
        };
        cycles.iter().enumerate().flat_map(round).collect()
    }

    #[test]
    fn a_round_has_a_slice_of_each_group_and_short_ones_are_left_out() {
        let plan = four_groups();
        let mut slices = slices(&[100, 500, 1_000, 1_000]);
        // Another round has begun.
        slices.push(slices[0].clone());
        let rounds = intervals(&slices, &plan, 1_000, 1).unwrap();
        let at: Vec<_> = rounds.iter().map(|round| (round.start_cycles, round.cycles)).collect();
        assert_eq!(at, [(2_400, 4_000), (6_400, 4_000)]);
        for round in &rounds {
            let events = |event| round.sample(&slices, &plan, event).map(|sample| sample.events);
            assert_eq!([0, 1, 2, 3].map(events), [1, 11, 21, 31].map(Some));
            let sample = Sample { events: 500, part: 1_000, whole: 4_000 };
            assert_eq!(round.sample(&slices, &plan, 4), Some(sample), "instructions, in one slice");
        }
    }

    #[test]
    fn an_interval_has_some_rounds_and_a_sample_all_its_slices_of_a_group() {
        let plan = four_groups();
        let slices = slices(&[100, 1_000, 1_000, 1_000, 2_000, 1_000]);
        let pairs = intervals(&slices, &plan, 1_000, 2).unwrap();
        let at: Vec<_> = pairs.iter().map(|pair| (pair.start_cycles, pair.cycles)).collect();
        assert_eq!(at, [(400, 8_000), (8_400, 12_000)]);
        let sample = Sample { events: 22, part: 3_000, whole: 12_000 };
        assert_eq!(pairs[1].sample(&slices, &plan, 1), Some(sample));
    }

    #[test]
    fn slices_that_are_in_no_rounds_are_refused() {
        let mut slices = slices(&[1_000, 1_000]);
        slices.swap(1, 5);
        assert!(intervals(&slices, &four_groups(), 1_000, 1).is_none());
    }
}
