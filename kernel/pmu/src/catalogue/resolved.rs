//! Result of resolving a list of events: the planner's input, or the reason for a refusal.

use alloc::{format, string::String, vec::Vec};
use core::fmt;

use tally_abi::{Error, Mode};
use tally_engine::{Demand, PlanError};

/// Resolved event of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Display name: the `name=` label; otherwise the catalogue's name if only a name was written;
    /// otherwise the spelling.
    pub name: String,
    /// Name of the event in the catalogue; `None` if the catalogue has no such event.
    pub native: Option<&'static str>,
    /// Privileges at which the event is counted.
    pub mode: Mode,
    /// Input for the planner.
    pub demand: Demand,
}

/// Reason why a list cannot be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveError {
    /// Spelling of the refused event; empty if the list as a whole is refused.
    pub event: String,
    /// Error code that a program gets.
    pub error: Error,
    /// Explanation for people: a sentence without the event's name.
    pub detail: String,
}

impl ResolveError {
    /// Converts the planner's refusal of `resolved`.
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
