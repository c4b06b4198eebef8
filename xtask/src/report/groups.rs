//! The groups of a session: which events were counted together, and in how many slices.

use serde::{Deserialize, Serialize};
use tally_abi::trace::SliceRecord;
use tally_engine::{Plan, plan::CounterAssignment};

use super::slices;

/// Events that were counted in the same slices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupReport {
    /// The events' names, in the order of the list.
    pub events: Vec<String>,
    /// Number of its slices in a round.
    pub share: u16,
    /// Number of its slices, including those that were cut short; `None` without a complete trace.
    pub slices: Option<u64>,
    /// Core cycles of its slices; `None` without a complete trace.
    pub cycles: Option<u64>,
}

/// The groups of the plan. `names` are the events in the order of the plan; `records` those of all
/// slices, if present.
pub fn groups(plan: &Plan, names: &[&str], records: Option<&[SliceRecord]>) -> Vec<GroupReport> {
    let slices = records.map(slices::all);
    let group = |(index, group): (usize, &tally_engine::Group)| {
        let is_in = |assigned: &CounterAssignment| matches!(assigned, CounterAssignment::General { group, .. } if usize::from(*group) == index);
        let events = names.iter().zip(&plan.assignments).filter(|(_, place)| is_in(place));
        let own = slices.as_ref().map(|slices| {
            slices.iter().filter(|slice| usize::from(slice.group) == index).collect::<Vec<_>>()
        });
        GroupReport {
            events: events.map(|(name, _)| (*name).to_owned()).collect(),
            share: group.share,
            slices: own.as_ref().map(|own| own.len() as u64),
            cycles: own.map(|own| own.iter().map(|slice| slice.cycles).sum()),
        }
    };
    plan.groups.iter().enumerate().map(group).collect()
}

#[cfg(test)]
mod tests {
    use tally_abi::trace::End;

    use super::*;
    use crate::report::slices::made_up::{GROUPS, four_groups, record};

    #[test]
    fn groups_have_their_events_and_slices() {
        let plan = four_groups();
        let names = ["A", "B", "C", "D", "INSTRUCTIONS", "CYCLES"];
        let records: Vec<SliceRecord> =
            (0..9).map(|at| record(at % GROUPS, End::Overflow, [1_000, 500, 1])).collect();
        let of = groups(&plan, &names, Some(&records));
        let mut events: Vec<&String> = of.iter().flat_map(|group| &group.events).collect();
        events.sort();
        assert_eq!(events, ["A", "B", "C", "D"], "those on counters of their own are in no group");
        let slices: Vec<_> = of.iter().map(|group| (group.slices, group.cycles)).collect();
        assert_eq!(slices[0], (Some(3), Some(3_000)));
        assert_eq!(slices[1..], [(Some(2), Some(2_000)); 3]);
        assert!(groups(&plan, &names, None).iter().all(|group| group.slices.is_none()));
    }
}
