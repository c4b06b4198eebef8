//! The planner: which events are counted together, and on which counter each.
//!
//! Groups are interchangeable, so an event's only choice is its counter, and the register that it
//! shares with others if it needs one ([`crate::Extra`]). In each of *G* groups a counter takes one
//! event and a register one value, so *G* groups are enough only if the events can be dealt to the
//! counters with at most *G* on each, and the values to the registers likewise; Hall's theorem gives
//! the least such *G* ([`deal`]). An event that must be alone adds a group of its own. That is the
//! lower bound, and proven.
//!
//! It is reached where no two events want the same value: events tied to counters and registers fall
//! into *G* groups by an edge colouring ([`colour`]). Where events could share a value, the colouring
//! may need more groups than the bound; then a search with a limit on its work looks for fewer
//! ([`search`], [`sharing`]). [`Plan::least`] says how far off the plan can be at most.
//!
//! Runs once per session, when it is opened, and may allocate.

mod colour;
mod deal;
mod error;
mod explain;
mod search;
mod sharing;

use alloc::{collections::BTreeMap, vec, vec::Vec};
use core::cmp::Reverse;

use tally_abi::session::MAX_EVENTS;

pub use self::error::PlanError;

use self::{
    deal::{Deal, least, within},
    search::SharedItem,
    sharing::{Placed, Sharing},
};
use crate::{Demand, Extra, Layout, MAX_EXTRA, MAX_GENERAL, MAX_SHARE, Pinned, Selector};

/// Values of extra registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// The registers in use, as a mask.
    pub used: u8,
    /// Their values; those of registers not in use mean nothing.
    pub values: [u64; MAX_EXTRA],
}

/// Events that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The general counters in use, as a mask.
    pub used: u8,
    /// Their event selects, by hardware index; 0 for counters not in use.
    pub selectors: [Selector; MAX_GENERAL],
    /// What its events need besides counters.
    pub extra: Extras,
    /// Whether no other event can be on a general counter meanwhile.
    pub alone: bool,
    /// Its slices in a round: 1 to [`MAX_SHARE`].
    pub share: u16,
}

impl Group {
    /// No events.
    pub const NONE: Group = Group {
        used: 0,
        selectors: [Selector(0); MAX_GENERAL],
        extra: Extras { used: 0, values: [0; MAX_EXTRA] },
        alone: false,
        share: 1,
    };

    fn put(&mut self, wanted: &Wanted, share: u16, spot: Spot) {
        self.used |= 1 << spot.counter;
        self.selectors[spot.counter] = wanted.selector;
        self.alone |= wanted.alone;
        self.share = self.share.max(share);
        if let (Some(extra), Some(register)) = (wanted.extra, spot.register) {
            if register != extra.registers.trailing_zeros() as usize {
                self.selectors[spot.counter] = extra.second;
            }
            self.extra.used |= 1 << register;
            self.extra.values[register] = extra.value;
        }
    }
}

impl Default for Group {
    fn default() -> Group {
        Group::NONE
    }
}

/// Where an event's count comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterAssignment {
    /// The driver counts it in every slice.
    Pinned(Pinned),
    /// A general counter counts it in the slices of one group.
    General {
        /// The group.
        group: u16,
        /// The counter, by hardware index.
        counter: u8,
    },
}

/// The groups, and the place of each event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The groups; at least one, which may be empty.
    pub groups: Vec<Group>,
    /// The place of each event, in the order of the demands.
    pub assignments: Vec<CounterAssignment>,
    /// No plan has fewer groups than these: that is proven.
    pub least: usize,
}

impl Plan {
    /// Whether it is proven that no plan has fewer groups.
    pub fn is_optimal(&self) -> bool {
        self.groups.len() == self.least
    }

    /// Slices in a round: each group has its share.
    pub fn round(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.share)).sum()
    }
}

/// Finds groups in which all of `demands` can be counted, and a place for each: the fewest, or few
/// and a bound (see the module).
///
/// Events that ask for the same thing share a counter. A group has the largest of its events'
/// shares; events with large shares are put together as far as their counters let them.
///
/// # Errors
/// See [`PlanError`].
pub fn plan(demands: &[Demand], layout: &Layout) -> Result<Plan, PlanError> {
    match demands.len() {
        0 => return Err(PlanError::NoEvents),
        events if events > MAX_EVENTS => return Err(PlanError::TooManyEvents { events }),
        _ => {}
    }
    let Distinct { wanted, shares, of_demand } = distinct(demands, layout)?;
    let (spots, groups, least) = arrange(&wanted, &shares);
    let mut plan = Plan {
        groups: vec![Group::NONE; groups.max(1)],
        assignments: Vec::new(),
        least: least.max(1),
    };
    for ((event, share), spot) in wanted.iter().zip(&shares).zip(&spots) {
        plan.groups[spot.group].put(event, *share, *spot);
    }
    let place = |(demand, index): (&Demand, usize)| match demand.pinned {
        Some(always) => CounterAssignment::Pinned(always),
        None => {
            let Spot { group, counter, .. } = spots[index];
            CounterAssignment::General { group: group as u16, counter: counter as u8 }
        }
    };
    plan.assignments = demands.iter().zip(of_demand).map(place).collect();
    Ok(plan)
}

/// What a counter is needed for, and the counters that can do it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wanted {
    selector: Selector,
    counters: u8,
    extra: Option<Extra>,
    alone: bool,
}

/// Where a general counter counts an event.
#[derive(Clone, Copy, Default)]
struct Spot {
    group: usize,
    counter: usize,
    register: Option<usize>,
}

type Counters = Deal<MAX_GENERAL, { 1 << MAX_GENERAL }>;
type Registers = Deal<MAX_EXTRA, { 1 << MAX_EXTRA }>;

/// What is wanted, each thing once.
#[derive(Default)]
struct Distinct {
    /// In the order in which they were first asked for.
    wanted: Vec<Wanted>,
    /// The largest share that was asked for.
    shares: Vec<u16>,
    /// For each demand the index of its own (0 for those that need none).
    of_demand: Vec<usize>,
}

fn distinct(demands: &[Demand], layout: &Layout) -> Result<Distinct, PlanError> {
    let mut all = Distinct::default();
    let mut indices = BTreeMap::new();
    for (event, demand) in demands.iter().enumerate() {
        let Some(this) = check(event, demand, layout)? else {
            all.of_demand.push(0);
            continue;
        };
        let index = *indices.entry(this).or_insert(all.wanted.len());
        if index == all.wanted.len() {
            all.wanted.push(this);
            all.shares.push(demand.share);
        }
        all.shares[index] = all.shares[index].max(demand.share);
        all.of_demand.push(index);
    }
    Ok(all)
}

/// What `demand` wants of general counters, if anything.
fn check(event: usize, demand: &Demand, layout: &Layout) -> Result<Option<Wanted>, PlanError> {
    if !(1..=MAX_SHARE).contains(&demand.share) {
        return Err(PlanError::BadShare { event });
    }
    if let Some(always) = demand.pinned {
        return match always == Pinned::Reference && !layout.reference {
            true => Err(PlanError::NoReference { event }),
            false => Ok(None),
        };
    }
    let counters = demand.counters & layout.general;
    if counters == 0 {
        return Err(PlanError::NoCounter { event, counters: demand.counters });
    }
    let mut selector = demand.selector;
    let extra = match demand.extra {
        None => None,
        Some(extra) => {
            let registers = extra.registers & layout.extra;
            if registers == 0 {
                return Err(PlanError::NoRegister { event, registers: extra.registers });
            }
            if registers.trailing_zeros() != extra.registers.trailing_zeros() {
                selector = extra.second;
            }
            Some(Extra { registers, ..extra })
        }
    };
    Ok(Some(Wanted { selector, counters, extra, alone: demand.alone }))
}

/// A spot for each of `wanted`, how many groups that makes, and how many there have to be.
fn arrange(wanted: &[Wanted], shares: &[u16]) -> (Vec<Spot>, usize, usize) {
    let mut spots = vec![Spot::default(); wanted.len()];
    let indices = |keep: fn(&Wanted) -> bool| {
        let mut indices: Vec<usize> =
            (0..wanted.len()).filter(|index| keep(&wanted[*index])).collect();
        indices.sort_by_key(|index| Reverse(shares[*index]));
        indices
    };
    let together = within(wanted.iter().filter(|w| !w.alone).map(|w| w.counters));
    let extras = Sharing::of(wanted, indices(|w| !w.alone && w.extra.is_some()));
    let bound = least(&together).max(extras.least());
    let Placed { mut deal, groups, least } = extras.place(&together, bound, &mut spots);
    let mut columns = Columns::new(groups);
    columns.take(extras.items(), shares, &mut spots);
    for index in indices(|w| !w.alone && w.extra.is_none()) {
        let counter = deal.tie(wanted[index].counters);
        spots[index] = Spot { group: columns.next(counter), counter, register: None };
    }
    let alone = indices(|w| w.alone);
    for (group, index) in (groups..).zip(&alone) {
        let (counter, registers) = (wanted[*index].counters, wanted[*index].extra);
        spots[*index] = Spot {
            group,
            counter: counter.trailing_zeros() as usize,
            register: registers.map(|extra| extra.registers.trailing_zeros() as usize),
        };
    }
    (spots, groups + alone.len(), least + alone.len())
}

/// The cells of the groups: which are taken, counter by counter.
struct Columns {
    taken: Vec<u8>,
    next: [usize; MAX_GENERAL],
}

impl Columns {
    fn new(groups: usize) -> Columns {
        Columns { taken: vec![0; groups], next: [0; MAX_GENERAL] }
    }

    /// Takes the spots of events that have their groups already, and numbers the groups anew, those
    /// with the largest shares first: so that others with large shares come to them.
    fn take(&mut self, placed: &[SharedItem], shares: &[u16], spots: &mut [Spot]) {
        let mut order: Vec<(u16, usize)> = (0..self.taken.len()).map(|group| (0, group)).collect();
        for item in placed {
            let share = &mut order[spots[item.index].group].0;
            *share = shares[item.index].max(*share);
        }
        order.sort_by_key(|(share, _)| Reverse(*share));
        let mut number = vec![0; order.len()];
        for (new, (_, old)) in order.into_iter().enumerate() {
            number[old] = new;
        }
        for item in placed {
            let spot = &mut spots[item.index];
            spot.group = number[spot.group];
            self.taken[spot.group] |= 1 << spot.counter;
        }
    }

    /// The first group that has this counter free; there is one.
    fn next(&mut self, counter: usize) -> usize {
        let next = &mut self.next[counter];
        while self.taken[*next] >> counter & 1 == 1 {
            *next += 1;
        }
        *next += 1;
        *next - 1
    }
}
