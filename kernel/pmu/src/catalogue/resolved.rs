//! What becomes of the events of a list: what to ask the planner for, or why they are refused.

use alloc::{format, string::String, vec::Vec};
use core::fmt;

use tally_abi::{Error, Mode};
use tally_engine::{Demand, PlanError};

/// One event of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// What it was called with `name=`, else its name as the catalogue has it if that is all that
    /// was written, else what was written.
    pub name: String,
    /// The catalogue's name of what is counted; none if the catalogue has no such event.
    pub native: Option<&'static str>,
    /// At which privileges it is counted.
    pub mode: Mode,
    /// What to ask the planner for.
    pub demand: Demand,
}

/// Why a list cannot be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveError {
    /// The event at fault, as it was written; empty if it is the list as a whole.
    pub event: String,
    /// What a program gets to see.
    pub error: Error,
    /// One sentence for people, without the event's name.
    pub detail: String,
}

impl ResolveError {
    /// Why the planner refused `resolved`.
    pub fn of_plan(refused: PlanError, resolved: &[Resolved]) -> ResolveError {
        let event = refused.event().and_then(|event| resolved.get(event));
        let name = || event.map(|event| event.name.clone());
        let braces = |together| {
            let events = resolved.iter().filter(|event| event.demand.together == Some(together));
            let names: Vec<&str> = events.map(|event| event.name.as_str()).collect();
            format!("{{{}}}", names.join(","))
        };
        ResolveError {
            event: match refused {
                PlanError::NoGroup { together, .. } => braces(together),
                _ => name().unwrap_or_default(),
            },
            error: refused.error(),
            detail: format!("{refused}"),
        }
    }
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.event.is_empty() {
            f.write_str(&self.detail)
        } else {
            write!(f, "{}: {}", self.event, self.detail)
        }
    }
}
