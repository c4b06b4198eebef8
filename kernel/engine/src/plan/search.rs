//! Events that can share a register because they want the same value in it, put into groups: a
//! search with a bound on its work.
//!
//! Such events are placed one after another, those of the most wanted value first, each into a
//! group that has its value already, else into the emptiest with a register free; where that leads
//! nowhere, the last choice is taken back. Every choice of group, register and counter is tried but
//! for those that come to the same: all events of a value follow each other, so groups without the
//! value of the event at hand differ in nothing but which counters and registers they have left. So
//! where the search ends by itself without a plan, there is none.

use alloc::{boxed::Box, collections::BTreeMap, vec, vec::Vec};
use core::cmp::Reverse;

use super::wanted::{Counters, Spot, Wanted};
use crate::demand::{Extra, MAX_EXTRA, MAX_GENERAL};

/// What listing an event's choices costs beside the choices themselves, in sets of columns looked
/// at.
const LISTING: usize = 200;

/// One event, what it needs, and its number in the planner's list.
pub(super) struct SharedItem {
    pub(super) wanted: Wanted,
    pub(super) extra: Extra,
    pub(super) index: usize,
}

/// How a search ended.
pub(super) enum SearchOutcome {
    /// With a spot for each item, and the deal of all other events.
    Plan(Box<Counters>, Vec<Spot>),
    /// There is no plan.
    Impossible,
    /// The work came to its bound.
    GaveUp,
}

/// What a group has taken: counters and registers.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Taken {
    counters: u8,
    registers: u8,
}

/// A choice for an event; `register` gets the event's value by it if `is_first`.
#[derive(Clone, Copy)]
struct Choice {
    group: usize,
    register: usize,
    counter: usize,
    is_first: bool,
}

/// An event that is being placed: what there is to choose from, the best last, and what was chosen.
struct Level {
    choices: Vec<Choice>,
    chosen: Option<Choice>,
}

struct Search<'a> {
    items: &'a [SharedItem],
    deal: Counters,
    groups: Vec<Taken>,
    /// The values in their registers, as far as those are taken.
    values: Vec<[u64; MAX_EXTRA]>,
    /// Groups by what they have taken.
    alike: BTreeMap<Taken, Vec<usize>>,
    /// By value, the groups and registers that have it, in the order in which they got it.
    holders: BTreeMap<u64, Vec<(usize, usize)>>,
    levels: Vec<Level>,
    /// Work that may still be done: sets of columns looked at, or the like.
    budget: usize,
}

/// Puts `items`, those of each value one after another, into `groups` groups, with room for all
/// other events that `deal` knows of, with no more work than `budget`, in sets of columns looked
/// at.
pub(super) fn search(
    items: &[SharedItem],
    deal: Counters,
    groups: usize,
    budget: usize,
) -> SearchOutcome {
    let mut search = Search {
        items,
        deal,
        groups: vec![Taken::default(); groups],
        values: vec![[0; MAX_EXTRA]; groups],
        alike: BTreeMap::from([(Taken::default(), (0..groups).rev().collect())]),
        holders: BTreeMap::new(),
        levels: Vec::with_capacity(items.len()),
        budget,
    };
    while search.levels.len() < items.len() {
        let choices = search.choices(&items[search.levels.len()]);
        search.levels.push(Level { choices, chosen: None });
        while !search.advance() {
            search.levels.pop();
            if search.levels.is_empty() {
                return SearchOutcome::Impossible;
            }
        }
        if search.budget == 0 {
            return SearchOutcome::GaveUp;
        }
    }
    let chosen = search.levels.iter().filter_map(|level| level.chosen);
    let spot =
        |Choice { group, register, counter, .. }| Spot { group, counter, register: Some(register) };
    let spots = chosen.map(spot).collect();
    SearchOutcome::Plan(Box::new(search.deal), spots)
}

impl Search<'_> {
    /// Takes back the newest event's choice, if there is one, for its next. Whether it has one, or
    /// the budget is spent.
    fn advance(&mut self) -> bool {
        let Some(mut level) = self.levels.pop() else { return false };
        let item = &self.items[self.levels.len()];
        if let Some(choice) = level.chosen.take() {
            self.leave(item, choice);
        }
        while let Some(choice) = level.choices.pop() {
            self.budget = self.budget.saturating_sub(self.deal.cost());
            if self.budget == 0 || self.deal.tie_to(item.wanted.counters, choice.counter) {
                if self.budget > 0 {
                    self.enter(item, choice);
                    level.chosen = Some(choice);
                }
                break;
            }
        }
        let goes_on = level.chosen.is_some() || self.budget == 0;
        self.levels.push(level);
        goes_on
    }

    fn enter(&mut self, item: &SharedItem, choice: Choice) {
        let Taken { counters, registers } = self.groups[choice.group];
        let counters = counters | 1 << choice.counter;
        self.change(choice.group, Taken { counters, registers: registers | 1 << choice.register });
        if choice.is_first {
            self.values[choice.group][choice.register] = item.extra.value;
            let holder = (choice.group, choice.register);
            self.holders.entry(item.extra.value).or_default().push(holder);
        }
    }

    fn leave(&mut self, item: &SharedItem, choice: Choice) {
        self.deal.untie(item.wanted.counters, choice.counter);
        let mut taken = self.groups[choice.group];
        taken.counters &= !(1 << choice.counter);
        if choice.is_first {
            taken.registers &= !(1 << choice.register);
            // Choices are taken back in the reverse order, so this group was the last to get it.
            self.holders.entry(item.extra.value).or_default().pop();
        }
        self.change(choice.group, taken);
    }

    fn change(&mut self, group: usize, taken: Taken) {
        let before = core::mem::replace(&mut self.groups[group], taken);
        if let Some(alike) = self.alike.get_mut(&before) {
            // The one that was taken or changed last is most often at the end.
            if let Some(at) = alike.iter().rposition(|other| *other == group) {
                alike.swap_remove(at);
            }
        }
        self.alike.entry(taken).or_default().push(group);
    }

    /// Where `item` can go, the best last.
    fn choices(&mut self, item: &SharedItem) -> Vec<Choice> {
        let mut choices = Vec::new();
        let none = Vec::new();
        let holders = self.holders.get(&item.extra.value).unwrap_or(&none);
        let mut seen = Vec::new();
        for &(group, register) in holders {
            // Groups that have the value in the same register are alike by what they have taken.
            let state = (self.groups[group], register);
            if !seen.contains(&state) {
                seen.push(state);
                if item.extra.registers >> register & 1 == 1 {
                    self.add(item, &mut choices, group, 1 << register, false);
                } else {
                    self.add(item, &mut choices, group, self.free(item, group), true);
                }
            }
        }
        for alike in self.alike.values() {
            let other = alike.iter().rev().find(|group| !self.holds(**group, item.extra.value));
            if let Some(group) = other {
                self.add(item, &mut choices, *group, self.free(item, *group), true);
            }
        }
        self.budget = self.budget.saturating_sub(LISTING + 16 * choices.len());
        choices.sort_by_key(|choice| {
            let taken = self.groups[choice.group].counters.count_ones();
            (!choice.is_first, Reverse(taken), Reverse(self.deal.load(choice.counter)))
        });
        choices
    }

    fn holds(&self, group: usize, value: u64) -> bool {
        let registers = self.groups[group].registers;
        let mut values = (0..).zip(self.values[group]);
        values.any(|(register, held)| registers >> register & 1 == 1 && held == value)
    }

    /// The registers that `item` could use and that are free in a group.
    fn free(&self, item: &SharedItem, group: usize) -> u8 {
        item.extra.registers & !self.groups[group].registers
    }

    fn add(
        &self,
        item: &SharedItem,
        choices: &mut Vec<Choice>,
        group: usize,
        registers: u8,
        is_first: bool,
    ) {
        let free = item.wanted.counters & !self.groups[group].counters;
        for register in (0..MAX_EXTRA).filter(|register| registers >> register & 1 == 1) {
            let counters = (0..MAX_GENERAL).filter(|counter| free >> counter & 1 == 1);
            choices.extend(counters.map(|counter| Choice { group, register, counter, is_first }));
        }
    }
}
