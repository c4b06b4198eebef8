//! The planner's output: groups of events, and the counter of each event.

use alloc::vec::Vec;

use tally_abi::{bank::PINNED_SLOT, trace::SlicePlace};

use crate::{
    demand::{MAX_EXTRA, MAX_GENERAL, Pinned, Selector},
    metrics::Metric,
};

/// Values of extra registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// The registers in use, as a mask.
    pub used: u8,
    /// Values by register; those of unused registers are meaningless.
    pub values: [u64; MAX_EXTRA],
}

/// Events that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The general counters in use, as a mask.
    pub used: u16,
    /// The counters after those that count pairs in any group of the plan, if the counter before
    /// is in use here: their selects are switched and their values are not read.
    pub seconds: u16,
    /// The counters' event selects, by hardware index; 0 for counters not in use.
    pub selectors: [Selector; MAX_GENERAL],
    /// Values that its events need in extra registers.
    pub extra: Extras,
    /// Whether no other event may be on a general counter at the same time.
    pub alone: bool,
    /// The general counters whose samples are precise, as a mask.
    pub precise: u16,
    /// The counters of `precise` whose samples have the instruction's memory access, as a mask.
    pub accesses: u16,
    /// The group's slices in a round: 1 to [`crate::MAX_SHARE`].
    pub share: u16,
}

impl Group {
    /// A group without events.
    pub const NONE: Group = Group {
        used: 0,
        seconds: 0,
        selectors: [Selector(0); MAX_GENERAL],
        extra: Extras { used: 0, values: [0; MAX_EXTRA] },
        alone: false,
        precise: 0,
        accesses: 0,
        share: 1,
    };

    /// The general counters whose selects the group needs, as a mask.
    pub(crate) fn selected(&self) -> u16 {
        self.used | self.seconds
    }
}

impl Default for Group {
    fn default() -> Group {
        Group::NONE
    }
}

/// The counter of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterAssignment {
    /// The pinned event's own counter, in every slice.
    Pinned(Pinned),
    /// The register of metrics, all the time.
    Metric(Metric),
    /// A general counter, in the slices of one group.
    General {
        /// The group.
        group: u16,
        /// The counter, by hardware index.
        counter: u8,
    },
}

impl CounterAssignment {
    /// The counter's slot of [`tally_abi::bank`], if it is a counter.
    pub(crate) fn slot(self) -> Option<usize> {
        match self {
            CounterAssignment::Pinned(pinned) => Some(PINNED_SLOT + pinned as usize),
            CounterAssignment::Metric(_) => None,
            CounterAssignment::General { counter, .. } => Some(counter.into()),
        }
    }
}

/// The groups, and the counter of each event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The groups; at least one, which may be empty.
    pub groups: Vec<Group>,
    /// The counter of each event, in the order of the demands.
    pub assignments: Vec<CounterAssignment>,
    /// Proven lower bound of the number of groups.
    pub least: usize,
}

static NO_GROUP: Group = Group::NONE;

impl Plan {
    /// The group with this index; one without events if there is none.
    pub(crate) fn group(&self, index: u16) -> &Group {
        self.groups.get(usize::from(index)).unwrap_or(&NO_GROUP)
    }

    /// Returns whether it is proven that no plan has fewer groups.
    pub fn is_optimal(&self) -> bool {
        self.groups.len() == self.least
    }

    /// Returns whether reference cycles are among the events.
    pub fn counts_reference(&self) -> bool {
        self.assignments.contains(&CounterAssignment::Pinned(Pinned::Reference))
    }

    /// Returns whether metrics are among the events.
    pub(crate) fn counts_metrics(&self) -> bool {
        let is_metric = |of: &CounterAssignment| matches!(of, CounterAssignment::Metric(_));
        self.assignments.iter().any(is_metric)
    }

    /// The general counters whose selects its groups need, as a mask.
    pub(crate) fn counters(&self) -> u16 {
        self.groups.iter().fold(0, |all, group| all | group.selected())
    }

    /// Position of an event's counts in the trace's records of slices, by its assignment.
    pub fn place_in_slices(&self, assigned: CounterAssignment) -> SlicePlace {
        match assigned {
            CounterAssignment::Pinned(Pinned::Cycles) => SlicePlace::Cycles,
            CounterAssignment::Pinned(Pinned::Instructions) => SlicePlace::Instructions,
            CounterAssignment::Pinned(Pinned::Reference) | CounterAssignment::Metric(_) => {
                SlicePlace::None
            }
            CounterAssignment::General { group, counter } => {
                let Some(of_group) = self.groups.get(usize::from(group)) else {
                    return SlicePlace::None;
                };
                let before = of_group.used & ((1 << counter) - 1);
                SlicePlace::List { group, index: before.count_ones() as u8 }
            }
        }
    }

    /// The share of each group.
    pub(crate) fn shares(&self) -> Vec<u16> {
        self.groups.iter().map(|group| group.share).collect()
    }

    /// Slices in a round: each group has its share.
    pub fn round(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.share)).sum()
    }
}
