//! The planner: divides events into groups that are counted together, and assigns a counter to
//! each.
//!
//! Groups are interchangeable, so the only choices for an event are its counter and, if it needs
//! one, the register that it shares with others ([`crate::Extra`]). In each of *G* groups a counter
//! takes one event and a register one value. So *G* groups are enough only if the events can be
//! dealt to the counters with at most *G* on each, and the values to the registers likewise; Hall's
//! theorem gives the smallest such *G* ([`deal`]). An event that must be alone adds a group of its
//! own. The result is a proven lower bound.
//!
//! The bound is reached if no two events need the same value: an edge colouring divides events tied
//! to counters and registers into *G* groups ([`colour`]). If events could share a value, the
//! colouring may need more groups than the bound; then a search with limited work looks for fewer
//! ([`search`], [`sharing`]). [`Plan::least`] bounds the distance of the plan from the optimum.
//!
//! Events that must be counted in the same slices are placed as a unit, and the others around them
//! ([`together`]).
//!
//! An event that takes a pair of counters ([`Demand::pair`]) is planned on the first of them. The
//! second ones of the counters that pairs may use are left out for the whole plan: what the counter
//! of a joined half reads is not documented, so no event could begin there with the next slice. The
//! planner lets pairs use one place, then two, and so on, and takes the fewest groups.
//!
//! The planner runs once per session, when it is opened, and may allocate.

mod colour;
mod deal;
mod error;
mod explain;
mod search;
mod sharing;
mod together;
mod wanted;

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec,
    vec::Vec,
};
use core::cmp::Reverse;

use tally_abi::session::MAX_EVENTS;

pub use self::error::{Lack, PlanError};
pub use crate::group::{CounterAssignment, Plan};

use self::{
    deal::{least, within},
    search::SharedItem,
    sharing::{Placed, Sharing},
    together::Braces,
    wanted::{Spot, Wanted},
};
use crate::{
    demand::{Demand, Extra, Layout, MAX_GENERAL, MAX_SHARE, Pinned},
    group::Group,
};

/// Finds groups in which all of `demands` can be counted, and a counter for each: the fewest
/// groups, or few with a lower bound (see the module).
///
/// Equal demands share a counter. A group has the largest of its events' shares; events with large
/// shares are placed together as far as their counters allow.
///
/// # Errors
/// See [`PlanError`].
pub fn plan(demands: &[Demand], layout: &Layout) -> Result<Plan, PlanError> {
    match demands.len() {
        0 => return Err(PlanError::NoEvents),
        events if events > MAX_EVENTS => return Err(PlanError::TooManyEvents { events }),
        _ => {}
    }
    let Arrangement { events, spots, groups, least, firsts } = fewest(demands, layout)?;
    let Distinct { wanted, shares, of_demand, .. } = events;
    let mut plan = Plan {
        groups: vec![Group::NONE; groups.max(1)],
        assignments: Vec::new(),
        least: least.max(1),
    };
    for ((event, share), spot) in wanted.iter().zip(&shares).zip(&spots) {
        put(&mut plan.groups[spot.group], event, *share, *spot);
    }
    for group in &mut plan.groups {
        group.seconds = (group.used & firsts) << 1;
    }
    let place = |(demand, index): (&Demand, usize)| match (demand.pinned, demand.metric) {
        (Some(always), _) => CounterAssignment::Pinned(always),
        (_, Some(metric)) => CounterAssignment::Metric(metric),
        (None, None) => {
            let Spot { group, counter, .. } = spots[index];
            CounterAssignment::General { group: group as u16, counter: counter as u8 }
        }
    };
    plan.assignments = demands.iter().zip(of_demand).map(place).collect();
    Ok(plan)
}

/// The distinct demands with a spot for each.
struct Arrangement {
    events: Distinct,
    spots: Vec<Spot>,
    groups: usize,
    /// Lower bound of the number of groups.
    least: usize,
    /// The first counters of pairs.
    firsts: u16,
}

/// Finds the first counters of pairs with which the demands need the fewest groups.
fn fewest(demands: &[Demand], layout: &Layout) -> Result<Arrangement, PlanError> {
    let pairs = demands.iter().filter(|demand| demand.pair.is_some());
    let adjacent = layout.general & layout.general >> 1;
    let mut left = pairs.fold(0, |all, demand| all | demand.counters & adjacent);
    let mut firsts = left & left.wrapping_neg();
    let mut best = arrange_with(demands, layout, firsts);
    left ^= firsts;
    while left != 0 {
        firsts |= left & left.wrapping_neg();
        left &= left - 1;
        let Ok(mut other) = arrange_with(demands, layout, firsts) else { continue };
        if let Ok(best) = &mut best {
            best.least = best.least.min(other.least);
            other.least = best.least;
        }
        if best.as_ref().map_or(usize::MAX, |best| best.groups) > other.groups {
            best = Ok(other);
        }
    }
    best
}

/// Arranges the demands with pairs on the counters `firsts` and those after them.
fn arrange_with(
    demands: &[Demand],
    layout: &Layout,
    firsts: u16,
) -> Result<Arrangement, PlanError> {
    let events = distinct(demands, layout, firsts)?;
    let (spots, groups, least) = if events.braces.is_empty() {
        arrange(&events.wanted, &events.shares)
    } else {
        together::arrange(&events.wanted, &events.shares, &events.braces, layout)?
    };
    Ok(Arrangement { events, spots, groups, least, firsts })
}

/// Puts an event into a group.
fn put(group: &mut Group, wanted: &Wanted, share: u16, spot: Spot) {
    group.used |= 1 << spot.counter;
    group.selectors[spot.counter] = wanted.selector;
    if let Some(second) = wanted.pair {
        group.selectors[spot.counter + 1] = second;
    }
    group.alone |= wanted.alone;
    if let Some(precision) = wanted.precise {
        group.precise |= 1 << spot.counter;
        group.accesses |= u16::from(precision.accesses) << spot.counter;
    }
    group.share = group.share.max(share);
    if let (Some(extra), Some(register)) = (wanted.extra, spot.register) {
        if register != extra.registers.trailing_zeros() as usize {
            group.selectors[spot.counter] = extra.second;
        }
        group.extra.used |= 1 << register;
        group.extra.values[register] = extra.value;
    }
}

/// The distinct demands.
#[derive(Default)]
struct Distinct {
    /// The distinct demands, in the order of their first occurrence.
    wanted: Vec<Wanted>,
    /// The largest requested share of each.
    shares: Vec<u16>,
    /// For each demand the index of its distinct one (0 for demands without a counter).
    of_demand: Vec<usize>,
    /// Sets of indices that must be counted in the same slices, if a set has more than one.
    braces: Vec<Braces>,
}

fn distinct(demands: &[Demand], layout: &Layout, firsts: u16) -> Result<Distinct, PlanError> {
    let check = |(event, demand)| check(event, demand, layout, firsts);
    let checked = demands.iter().enumerate().map(check);
    let asked: Vec<Option<Wanted>> = checked.collect::<Result<_, _>>()?;
    let mut all = Distinct { of_demand: vec![0; demands.len()], ..Distinct::default() };
    let mut members: BTreeMap<u16, BTreeSet<Wanted>> = BTreeMap::new();
    for (demand, this) in demands.iter().zip(&asked) {
        if let Some((together, this)) = demand.together.zip(*this) {
            members.entry(together).or_default().insert(this);
        }
    }
    // Braces around one event have no effect.
    let together = |demand: &Demand| {
        demand.together.filter(|of| members.get(of).is_some_and(|of| of.len() > 1))
    };
    let mut indices = BTreeMap::new();
    let mut braces: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    // Events in braces come first: the same event without braces is then counted with them.
    for with_braces in [true, false] {
        let of_pass = |(_, demand): &(usize, &Demand)| together(demand).is_some() == with_braces;
        for (event, demand) in demands.iter().enumerate().filter(of_pass) {
            let Some(this) = asked[event] else { continue };
            let together = together(demand);
            let index = *indices.entry((this, together)).or_insert(all.wanted.len());
            if index == all.wanted.len() {
                all.wanted.push(this);
                all.shares.push(demand.share);
                if let Some(together) = together {
                    braces.entry(together).or_default().push(index);
                    indices.entry((this, None)).or_insert(index);
                }
            }
            all.shares[index] = all.shares[index].max(demand.share);
            all.of_demand[event] = index;
        }
    }
    all.braces =
        braces.into_iter().map(|(together, indices)| Braces { together, indices }).collect();
    Ok(all)
}

/// The need of `demand` for a general counter, if it has one.
fn check(
    event: usize,
    demand: &Demand,
    layout: &Layout,
    firsts: u16,
) -> Result<Option<Wanted>, PlanError> {
    if !(1..=MAX_SHARE).contains(&demand.share) {
        return Err(PlanError::BadShare { event });
    }
    if let Some(always) = demand.pinned {
        return if always == Pinned::Reference && !layout.reference {
            Err(PlanError::NoReference { event })
        } else {
            Ok(None)
        };
    }
    if demand.metric.is_some() {
        return Ok(None);
    }
    let free = layout.general & if demand.pair.is_some() { firsts } else { !(firsts << 1) };
    let counters = demand.counters & free;
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
    let Demand { pair, alone, precise, .. } = *demand;
    Ok(Some(Wanted { selector, counters, pair, extra, alone, precise }))
}

/// A spot for each of `wanted`, the number of groups, and its lower bound.
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

/// Taken cells of the groups, counter by counter.
struct Columns {
    taken: Vec<u16>,
    next: [usize; MAX_GENERAL],
}

impl Columns {
    fn new(groups: usize) -> Columns {
        Columns { taken: vec![0; groups], next: [0; MAX_GENERAL] }
    }

    /// Takes the spots of events that already have groups, and renumbers the groups by decreasing
    /// share, so that other events with large shares join them.
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

    /// The first group in which this counter is free; one exists.
    fn next(&mut self, counter: usize) -> usize {
        let next = &mut self.next[counter];
        while self.taken[*next] >> counter & 1 == 1 {
            *next += 1;
        }
        *next += 1;
        *next - 1
    }
}
