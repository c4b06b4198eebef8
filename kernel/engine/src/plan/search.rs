//! A search with bounded work that divides into groups the events that can share a register because
//! they need the same value in it.
//!
//! Such events are placed one after another, those of the most common value first: each into a
//! group that already has its value, or else into the emptiest group with a free register. At a
//! dead end the last choice is undone. The search tries every choice of group, register and counter
//! except equivalent ones: all events of a value follow each other, so groups without the value of
//! the present event differ only in their free counters and registers. So if the search ends within
//! its bound without a plan, none exists.

use alloc::{boxed::Box, collections::BTreeMap, vec, vec::Vec};
use core::cmp::Reverse;

use super::wanted::{Counters, Spot, Wanted};
use crate::demand::{Extra, MAX_EXTRA, MAX_GENERAL};

/// Cost of listing an event's choices in addition to the choices themselves, in sets of columns
/// examined.
const LISTING: usize = 200;

/// An event with its needs, and its index in the planner's list.
pub(super) struct SharedItem {
    pub(super) wanted: Wanted,
    pub(super) extra: Extra,
    pub(super) index: usize,
}

/// Outcome of a search.
pub(super) enum SearchOutcome {
    /// A plan: a spot for each item, and the deal of all other events.
    Plan(Box<Counters>, Vec<Spot>),
    /// No plan exists.
    Impossible,
    /// The work reached its bound.
    GaveUp,
}

/// Taken counters and registers of a group.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Taken {
    counters: u16,
    registers: u8,
}

/// A choice for an event; if `is_first`, `register` gets the event's value by it.
#[derive(Clone, Copy)]
struct Choice {
    group: usize,
    register: usize,
    counter: usize,
    is_first: bool,
}

/// An event that is being placed: the remaining choices, the best last, and the present choice.
struct Level {
    choices: Vec<Choice>,
    chosen: Option<Choice>,
}

struct Search<'a> {
    items: &'a [SharedItem],
    deal: Counters,
    groups: Vec<Taken>,
    /// Values of the taken registers.
    values: Vec<[u64; MAX_EXTRA]>,
    /// Groups by their taken counters and registers.
    alike: BTreeMap<Taken, Vec<usize>>,
    /// By value, the groups and registers that hold it, in the order in which they got it.
    holders: BTreeMap<u64, Vec<(usize, usize)>>,
    levels: Vec<Level>,
    /// Remaining work: sets of columns to examine, or the equivalent.
    budget: usize,
}

/// Puts `items`, with those of each value adjacent, into `groups` groups, with room for all other
/// events in `deal`, and with no more work than `budget`, in sets of columns examined.
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
    /// Replaces the newest event's choice by its next one. Returns whether there was one, or the
    /// budget is spent.
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
            // Choices are undone in reverse order, so this group was the last to get the value.
            self.holders.entry(item.extra.value).or_default().pop();
        }
        self.change(choice.group, taken);
    }

    fn change(&mut self, group: usize, taken: Taken) {
        let before = core::mem::replace(&mut self.groups[group], taken);
        if let Some(alike) = self.alike.get_mut(&before) {
            // The group taken or changed last is usually at the end.
            if let Some(at) = alike.iter().rposition(|other| *other == group) {
                alike.swap_remove(at);
            }
        }
        self.alike.entry(taken).or_default().push(group);
    }

    /// The choices for `item`, the best last.
    fn choices(&mut self, item: &SharedItem) -> Vec<Choice> {
        let mut choices = Vec::new();
        let none = Vec::new();
        let holders = self.holders.get(&item.extra.value).unwrap_or(&none);
        let mut seen = Vec::new();
        for &(group, register) in holders {
            // Groups with the value in the same register are equivalent if they have taken the
            // same.
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
