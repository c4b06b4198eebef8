//! A plan in words, for people.

use alloc::{vec, vec::Vec};
use core::fmt;

use crate::{
    group::{CounterAssignment, Plan},
    hardware::for_each_counter,
};

impl Plan {
    /// What is counted where, line by line: how many groups there are and whether that is proven to
    /// be the fewest, then each group with the counters of its events. `name` tells an event's name
    /// by its index.
    pub fn explain<'a>(&'a self, name: impl Fn(usize) -> &'a str) -> impl fmt::Display {
        Explanation { plan: self, names: (0..self.assignments.len()).map(name).collect() }
    }
}

struct Explanation<'a> {
    plan: &'a Plan,
    names: Vec<&'a str>,
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { groups, assignments, least } = self.plan;
        let count = groups.len();
        let (events, round) = (assignments.len(), self.plan.round());
        write!(f, "{events} events in {count} groups, {round} slices to a round; ")?;
        match count - least {
            0 => writeln!(f, "no plan has fewer groups")?,
            _ => writeln!(f, "it is proven only that no plan has fewer than {least}")?,
        }
        let mut always = Vec::new();
        let mut members: Vec<Vec<(u8, &str)>> = vec![Vec::new(); count];
        for (place, name) in assignments.iter().zip(&self.names) {
            match *place {
                CounterAssignment::Pinned(_) => always.push(*name),
                CounterAssignment::General { group, counter } => {
                    members[usize::from(group)].push((counter, name));
                }
            }
        }
        if !always.is_empty() {
            writeln!(f, "always: {}", always.join(", "))?;
        }
        for (number, (group, mut members)) in groups.iter().zip(members).enumerate() {
            members.sort_by_key(|(counter, _)| *counter);
            write!(f, "group {number}")?;
            if group.share > 1 {
                write!(f, ", {} slices", group.share)?;
            }
            let mut separator = ':';
            for (counter, name) in members {
                write!(f, "{separator} counter {counter} {name}")?;
                separator = ',';
            }
            let mut extras = Ok(());
            for_each_counter(group.extra.used, |register| {
                let value = group.extra.values[register];
                extras = extras.and_then(|()| write!(f, "; extra register {register} {value:#x}"));
            });
            extras?;
            writeln!(f)?;
        }
        Ok(())
    }
}
