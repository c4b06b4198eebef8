//! The events that groups count, group by group, and their counts.

use alloc::{boxed::Box, vec::Vec};
use core::ops::Range;

use tally_abi::bank::RATE_BITS;

use crate::{
    Counts,
    moments::{Base, GroupMoments, PerBase},
    plan::{CounterAssignment, Plan},
};

/// State of an event that the overflow path needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) event: u16,
    pub(super) counter: u8,
    /// The basis of its estimate.
    pub(super) base: Base,
    /// The published rate.
    pub(super) rate: u64,
    /// The reciprocal of the share of the basis in which its group was counted, with [`RATE_BITS`]
    /// fraction bits, at the end of the group's last slice. Thresholds scale counts by it.
    pub(super) scale: u64,
}

/// All members.
#[derive(Debug)]
pub(super) struct Members {
    members: Box<[Member]>,
    /// Index of each group's first member.
    first: Box<[u16]>,
}

impl Members {
    pub(super) fn new(plan: &Plan) -> Members {
        let mut members = Vec::with_capacity(plan.assignments.len());
        let mut first = Vec::with_capacity(plan.groups.len() + 1);
        for group in 0..plan.groups.len() {
            first.push(members.len() as u16);
            for (event, assignment) in plan.assignments.iter().enumerate() {
                if let CounterAssignment::General { group: its, counter } = *assignment
                    && usize::from(its) == group
                {
                    let event = event as u16;
                    members.push(Member { event, counter, base: Base::Cycles, rate: 0, scale: 0 });
                }
            }
        }
        first.push(members.len() as u16);
        Members { members: members.into(), first: first.into() }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&Member> {
        self.members.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Member> {
        self.members.get_mut(index)
    }

    /// The index of an event's member.
    pub(super) fn position(&self, event: usize) -> Option<usize> {
        self.members.iter().position(|member| usize::from(member.event) == event)
    }

    /// The members of a group.
    pub(super) fn of_group(&self, group: u16) -> Range<usize> {
        let first = |group: usize| self.first.get(group).map_or(0, |first| usize::from(*first));
        first(group.into())..first(usize::from(group) + 1)
    }
}

/// Counts of a group, the current slice included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupCounts<'a> {
    pub(crate) moments: &'a GroupMoments,
    /// Counts credited in the middle of the current slice, if that is the group's.
    pub(crate) current: Option<&'a Counts>,
    pub(crate) start_tsc: u64,
    /// The pinned events' counts of the whole session.
    pub(crate) total: &'a Counts,
}

impl GroupCounts<'_> {
    /// Events on a general counter.
    pub(crate) fn events(&self, counter: u8) -> u64 {
        let counter = usize::from(counter) % crate::MAX_GENERAL;
        let current = self.current.map_or(0, |current| current.general[counter]);
        self.moments.events[counter].events.wrapping_add(current)
    }

    /// Count of a basis while the group was counted.
    pub(crate) fn counted(&self, base: Base) -> u64 {
        let current = self.current.map_or(0, |current| current[base.event()]);
        self.moments.sums[base as usize].wrapping_add(current)
    }

    /// Events of a counter per count of a basis, with [`RATE_BITS`] fraction bits, rounded to the
    /// nearest; 0 if the group was not counted. One division of integers.
    pub(super) fn rate(&self, counter: u8, base: Base) -> u64 {
        let counted = u128::from(self.counted(base));
        // Restating leaves a fraction of an event, in units of 2⁻³².
        let fraction = self.moments.events[usize::from(counter) % crate::MAX_GENERAL].fraction;
        let events = (u128::from(self.events(counter)) << RATE_BITS)
            + (u128::from(fraction) << (RATE_BITS - u32::BITS));
        let rate = (events + counted / 2).checked_div(counted).unwrap_or_default();
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// The reciprocal of the share of a basis in which the group was counted, with [`RATE_BITS`]
    /// fraction bits. One division of integers.
    pub(super) fn scale(&self, base: Base) -> u64 {
        let (counted, total) = (self.counted(base), self.total[base.event()]);
        // A share below 2^-20 is meaningless, and with a larger one the quotient is below 2^64.
        if counted <= total >> (u64::BITS - RATE_BITS) {
            return 0;
        }
        let scaled = u128::from(total) << RATE_BITS;
        scaled.checked_div(counted.into()).map_or(0, |scale| scale as u64)
    }

    /// Computes [`Self::scale`] at most once for each basis.
    pub(super) fn scale_once(&self, base: Base, known: &mut PerBase<Option<u64>>) -> u64 {
        *known[base as usize].get_or_insert_with(|| self.scale(base))
    }
}
