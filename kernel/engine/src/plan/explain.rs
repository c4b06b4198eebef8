//! Plans as text, for people.

use alloc::{vec, vec::Vec};
use core::fmt;

use crate::{
    demand::Selector,
    group::{CounterAssignment, Group, Plan},
    hardware::for_each_counter,
};

impl Plan {
    /// Explains the plan, line by line: the number of groups and whether that is proven to be the
    /// fewest, then each group with the counters of its events. `name` returns an event's name by
    /// its index.
    pub fn explain<'a>(&'a self, name: impl Fn(usize) -> &'a str) -> impl fmt::Display {
        Explanation { plan: self, names: (0..self.assignments.len()).map(name).collect() }
    }
}

struct Explanation<'a> {
    plan: &'a Plan,
    names: Vec<&'a str>,
}

/// A counter of a group, and its event's name.
type Member<'a> = (u8, &'a str);

impl Explanation<'_> {
    /// The pinned events, and each group's counters with their events.
    fn members(&self) -> (Vec<&str>, Vec<Vec<Member<'_>>>) {
        let mut pinned = Vec::new();
        let mut members = vec![Vec::new(); self.plan.groups.len()];
        for (assigned, name) in self.plan.assignments.iter().zip(&self.names) {
            match *assigned {
                CounterAssignment::Pinned(_) | CounterAssignment::Metric(_) => {
                    pinned.push(*name);
                }
                CounterAssignment::General { group, counter } => {
                    members[usize::from(group)].push((counter, *name));
                }
            }
        }
        members.iter_mut().for_each(|members| members.sort_by_key(|(counter, _)| *counter));
        (pinned, members)
    }
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { groups, assignments, least } = self.plan;
        let (events, count, round) = (assignments.len(), groups.len(), self.plan.round());
        write!(f, "{events} events in {count} groups, {round} slices to a round; ")?;
        match count - least {
            0 => writeln!(f, "no plan has fewer groups")?,
            _ => writeln!(f, "it is proven only that no plan has fewer than {least}")?,
        }
        let (pinned, members) = self.members();
        if !pinned.is_empty() {
            writeln!(f, "always: {}", pinned.join(", "))?;
        }
        for (number, (group, members)) in groups.iter().zip(members).enumerate() {
            explain_group(f, number, group, &members)?;
        }
        Ok(())
    }
}

fn explain_group(
    f: &mut fmt::Formatter<'_>,
    number: usize,
    group: &Group,
    members: &[Member<'_>],
) -> fmt::Result {
    write!(f, "group {number}")?;
    if group.share > 1 {
        write!(f, ", {} slices", group.share)?;
    }
    let mut separator = ':';
    for (counter, name) in members {
        let second = counter + 1;
        let is_pair = group.seconds >> second & 1 == 1
            && group.selectors.get(usize::from(second)).is_some_and(|it| *it != Selector(0));
        if is_pair {
            write!(f, "{separator} counters {counter} and {second} {name}")?;
        } else {
            write!(f, "{separator} counter {counter} {name}")?;
        }
        separator = ',';
    }
    let mut extras = Ok(());
    for_each_counter(group.extra.used, |register| {
        let value = group.extra.values[register];
        extras = extras.and_then(|()| write!(f, "; extra register {register} {value:#x}"));
    });
    extras?;
    writeln!(f)
}
