//! The events of a plan that need extra registers: their lower bound, and their spots.

use alloc::{collections::BTreeMap, vec::Vec};
use core::cmp::Reverse;

use super::{
    colour,
    deal::{Within, least, within},
    search::{SearchOutcome, SharedItem, search},
    wanted::{Counters, Registers, Spot, Wanted},
};
use crate::demand::{MAX_EXTRA, MAX_GENERAL};

/// Bound on the work of all searches for a plan, in sets of counters examined.
const SEARCH_BUDGET: usize = 5_000_000;

/// The events that need an extra register.
pub(super) struct Sharing {
    items: Vec<SharedItem>,
}

/// Result of the placement: the rest of the deal of all events, the number of groups, and its lower
/// bound.
pub(super) struct Placed {
    pub(super) deal: Counters,
    pub(super) groups: usize,
    pub(super) least: usize,
}

impl Sharing {
    /// Collects the events of these `indices`, those of the most common value first.
    pub(super) fn of(wanted: &[Wanted], indices: Vec<usize>) -> Sharing {
        let item = |index: usize| {
            let wanted = wanted[index];
            Some(SharedItem { wanted, extra: wanted.extra?, index })
        };
        let mut items: Vec<SharedItem> = indices.into_iter().filter_map(item).collect();
        let mut times = BTreeMap::new();
        for item in &items {
            *times.entry(item.extra.value).or_insert(0_usize) += 1;
        }
        items.sort_by_key(|SharedItem { extra, wanted, .. }| {
            let choices = (extra.registers.count_ones(), wanted.counters.count_ones());
            (Reverse(times[&extra.value]), extra.value, choices)
        });
        Sharing { items }
    }

    pub(super) fn items(&self) -> &[SharedItem] {
        &self.items
    }

    /// The minimum number of groups in which every value can be in a register. A value that its
    /// events need in different registers counts as one that can be in any of them.
    pub(super) fn least(&self) -> usize {
        let mut sets: BTreeMap<u64, u8> = BTreeMap::new();
        for SharedItem { extra, .. } in &self.items {
            *sets.entry(extra.value).or_insert(0) |= extra.registers;
        }
        least(&within::<{ 1 << MAX_EXTRA }>(sets.into_values()))
    }

    /// Gives every item a spot in at least `bound` groups, as few as the search finds.
    pub(super) fn place(
        &self,
        together: &Within<{ 1 << MAX_GENERAL }>,
        bound: usize,
        spots: &mut [Spot],
    ) -> Placed {
        let each = within(self.items.iter().map(|item| item.extra.registers));
        let enough = bound.max(least(&each));
        let mut best = None;
        let (mut low, mut high, mut least) = (bound, enough, bound);
        let mut groups = bound;
        // The first search, at the bound, may use half the budget; then the range is halved each
        // time.
        let searches = 1 + (enough - bound).checked_ilog2().unwrap_or(0) as usize;
        let mut budget = SEARCH_BUDGET / 2;
        while low < high {
            let deal = Counters::new(*together, groups);
            match search(&self.items, deal, groups, budget) {
                SearchOutcome::Plan(deal, spots) => (best, high) = (Some((*deal, spots)), groups),
                SearchOutcome::Impossible => (low, least) = (groups + 1, groups + 1),
                SearchOutcome::GaveUp => low = groups + 1,
            }
            budget = SEARCH_BUDGET / 2 / searches;
            groups = usize::midpoint(low, high);
        }
        let (deal, placed) =
            best.unwrap_or_else(|| self.colour(Counters::new(*together, enough), each, enough));
        for (item, spot) in self.items.iter().zip(placed) {
            spots[item.index] = spot;
        }
        Placed { deal, groups: high, least }
    }

    /// Gives every item a register for itself, in `groups` groups, which must be enough for that.
    fn colour(
        &self,
        mut deal: Counters,
        each: Within<{ 1 << MAX_EXTRA }>,
        groups: usize,
    ) -> (Counters, Vec<Spot>) {
        let mut registers = Registers::new(each, groups);
        let edge = |item: &SharedItem| {
            (deal.tie(item.wanted.counters), registers.tie(item.extra.registers))
        };
        let edges: Vec<colour::Edge> = self.items.iter().map(edge).collect();
        let groups = colour::colour(&edges, groups);
        let spot = |((counter, register), group)| Spot { group, counter, register: Some(register) };
        (deal, edges.into_iter().zip(groups).map(spot).collect())
    }
}
