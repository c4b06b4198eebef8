//! The planner: which events are counted together, and on which counter each.
//!
//! Groups are interchangeable, so an event's only real choice is its counter: a plan of *G* groups
//! exists exactly if the events can be dealt to the counters with at most *G* on each. By Hall's
//! theorem that is possible if and only if, for every set *S* of counters, no more than *G*·|*S*|
//! events can be counted on counters of *S* alone. With eight counters there are 256 such sets, so
//! the least *G* is a maximum over 256 quotients, and dealing the events out needs no search: each
//! is tied to one counter in turn, to any for which the condition goes on to hold. There is always
//! one.
//!
//! Runs once per session, when it is opened, and may allocate.

use alloc::vec::Vec;

use tally_abi::{Error, session::MAX_EVENTS};

use crate::{Always, Demand, Layout, MAX_GENERAL, Selector};

/// Events that are counted together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The general counters in use, as a mask.
    pub used: u8,
    /// Their event selects, by hardware index; those of counters not in use mean nothing.
    pub selectors: [Selector; MAX_GENERAL],
}

impl Group {
    /// No events.
    pub(crate) const NONE: Group = Group { used: 0, selectors: [Selector(0); MAX_GENERAL] };
}

/// Where an event's count comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The driver counts it in every slice.
    Always(Always),
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
    pub places: Vec<Place>,
}

/// Why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// No events were asked for.
    NoEvents,
    /// More events than [`MAX_EVENTS`].
    TooManyEvents {
        /// How many were asked for.
        events: usize,
    },
    /// None of the counters that can count the event is there for groups to use.
    NoCounter {
        /// The event, by its index.
        event: usize,
        /// The counters that it could be counted on.
        counters: u8,
    },
    /// The PMU does not count reference cycles.
    NoReference {
        /// The event, by its index.
        event: usize,
    },
}

impl PlanError {
    /// The error that a program gets to see.
    pub fn error(self) -> Error {
        match self {
            PlanError::NoEvents => Error::NoEvents,
            PlanError::TooManyEvents { .. } => Error::TooManyEvents,
            PlanError::NoCounter { .. } | PlanError::NoReference { .. } => Error::EventNotSupported,
        }
    }

    /// The event at fault, by its index, if it is one event's fault.
    pub fn event(self) -> Option<usize> {
        match self {
            PlanError::NoEvents | PlanError::TooManyEvents { .. } => None,
            PlanError::NoCounter { event, .. } | PlanError::NoReference { event } => Some(event),
        }
    }
}

/// Finds the fewest groups in which all of `demands` can be counted, and a place for each.
///
/// Events that ask for the same selector share a counter.
///
/// # Errors
/// See [`PlanError`].
pub fn plan(demands: &[Demand], layout: &Layout) -> Result<Plan, PlanError> {
    match demands.len() {
        0 => return Err(PlanError::NoEvents),
        events if events > MAX_EVENTS => return Err(PlanError::TooManyEvents { events }),
        _ => {}
    }
    let (wanted, of_demand) = distinct(demands, layout)?;
    let mut deal = Deal::new(&wanted);
    let mut groups = Vec::new();
    groups.resize(deal.groups.max(1), Group::default());
    let mut spots = Vec::with_capacity(wanted.len());
    for event in &wanted {
        let (group, counter) = deal.place(event.counters);
        if let Some(group) = groups.get_mut(group) {
            group.used |= 1 << counter;
            group.selectors[counter] = event.selector;
        }
        spots.push(Place::General { group: group as u16, counter: counter as u8 });
    }
    let places = demands.iter().zip(of_demand).map(|(demand, index)| match demand.always {
        Some(always) => Place::Always(always),
        None => spots[index],
    });
    Ok(Plan { places: places.collect(), groups })
}

/// A selector that a counter is needed for, and the counters that can take it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Wanted {
    selector: Selector,
    counters: u8,
}

/// The different selectors, in the order in which they were first asked for, and for each demand
/// the index of its own among them (0 for those that need none).
fn distinct(demands: &[Demand], layout: &Layout) -> Result<(Vec<Wanted>, Vec<usize>), PlanError> {
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut of_demand = Vec::with_capacity(demands.len());
    for (event, demand) in demands.iter().enumerate() {
        if let Some(always) = demand.always {
            if always == Always::Reference && !layout.reference {
                return Err(PlanError::NoReference { event });
            }
            of_demand.push(0);
            continue;
        }
        let counters = demand.counters & layout.general;
        if counters == 0 {
            return Err(PlanError::NoCounter { event, counters: demand.counters });
        }
        let this = Wanted { selector: demand.selector, counters };
        let index = wanted.iter().position(|other| *other == this).unwrap_or(wanted.len());
        if index == wanted.len() {
            wanted.push(this);
        }
        of_demand.push(index);
    }
    Ok((wanted, of_demand))
}

/// The dealing of events to counters.
struct Deal {
    /// For each set of counters, how many events can be counted on counters of that set alone.
    within: [usize; 1 << MAX_GENERAL],
    /// Events on each counter so far; the next one on it goes into the group of this number.
    load: [usize; MAX_GENERAL],
    groups: usize,
}

impl Deal {
    fn new(wanted: &[Wanted]) -> Deal {
        let mut within = [0; 1 << MAX_GENERAL];
        for (set, events) in within.iter_mut().enumerate() {
            *events = wanted.iter().filter(|w| usize::from(w.counters) & !set == 0).count();
        }
        let groups = within.iter().enumerate().skip(1);
        let groups = groups.map(|(set, n)| n.div_ceil(set.count_ones() as usize)).max();
        Deal { within, load: [0; MAX_GENERAL], groups: groups.unwrap_or(0) }
    }

    /// Gives an event that can be counted on `counters` its group and counter: the least loaded
    /// counter that leaves room for all the others.
    fn place(&mut self, counters: u8) -> (usize, usize) {
        let choices = (0..MAX_GENERAL).filter(|c| counters >> c & 1 == 1);
        let counter = choices
            .filter(|c| self.leaves_room(usize::from(counters), *c))
            .min_by_key(|c| self.load[*c])
            .expect(
                "Hall's condition holds for the event's set, so it holds for one of its counters",
            );
        for set in Self::newly_within(usize::from(counters), counter) {
            self.within[set] += 1;
        }
        let group = self.load[counter];
        self.load[counter] += 1;
        (group, counter)
    }

    fn leaves_room(&self, counters: usize, counter: usize) -> bool {
        Self::newly_within(counters, counter)
            .all(|set| self.within[set] < self.groups * set.count_ones() as usize)
    }

    /// The sets that hold all of an event's counters once it is tied to `counter`, and did not
    /// before.
    fn newly_within(counters: usize, counter: usize) -> impl Iterator<Item = usize> {
        (0..1 << MAX_GENERAL).filter(move |set| set >> counter & 1 == 1 && counters & !set != 0)
    }
}
