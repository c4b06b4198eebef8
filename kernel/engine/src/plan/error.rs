//! Reasons why there is no plan, or no session for one.

use core::fmt;

use tally_abi::{
    Error,
    session::{MIN_SLICE, NO_BUDGET_PPM},
};

use crate::demand::MAX_SHARE;

/// The resource that is insufficient for events in the same slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// General counters: there are fewer than events.
    Counters,
    /// Free counters: too few of the counters that can count the events are free at once.
    Choices,
    /// Extra registers: there are fewer than different values.
    Registers,
    /// Exclusivity: one of the events must be alone on the general counters.
    Alone,
}

/// Reason why there is no plan, or no session for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// The list of events is empty.
    NoEvents,
    /// More events than [`tally_abi::session::MAX_EVENTS`].
    TooManyEvents {
        /// Number of events requested.
        events: usize,
    },
    /// Groups may use no counter that can count the event.
    NoCounter {
        /// The event, by its index.
        event: usize,
        /// The counters that it could be counted on.
        counters: u16,
    },
    /// Groups may use no extra register that the event needs.
    NoRegister {
        /// The event, by its index.
        event: usize,
        /// The registers that could hold its value.
        registers: u8,
    },
    /// The PMU does not count reference cycles.
    NoReference {
        /// The event, by its index.
        event: usize,
    },
    /// Direct mode counts no metrics.
    NoMetric {
        /// The event, by its index.
        event: usize,
    },
    /// The events must be counted at once, and do not fit the counters.
    NotTogether {
        /// Number of groups that they need.
        groups: usize,
    },
    /// Events that must be counted in the same slices do not fit the counters.
    NoGroup {
        /// Value of their [`crate::Demand::together`].
        together: u16,
        /// Number of general counters that they need.
        counters: u16,
        /// Number of general counters that groups may use.
        general: u8,
        /// The insufficient resource.
        lack: Lack,
    },
    /// A share is 0, or more than [`MAX_SHARE`].
    BadShare {
        /// The event, by its index.
        event: usize,
    },
    /// A slice is shorter than [`MIN_SLICE`], or so long that a counter could wrap in it.
    SliceOutOfRange {
        /// The slice's length, in its own unit.
        length: u64,
        /// The longest that this machine's counters allow.
        max: u64,
    },
    /// A budget is not within 1 to [`NO_BUDGET_PPM`].
    BudgetOutOfRange {
        /// The budget in parts per million.
        ppm: u32,
    },
}

impl PlanError {
    /// The error that the program gets.
    pub fn error(self) -> Error {
        match self {
            PlanError::NoEvents => Error::NoEvents,
            PlanError::TooManyEvents { .. }
            | PlanError::NotTogether { .. }
            | PlanError::NoGroup { .. } => Error::TooManyEvents,
            PlanError::NoCounter { .. }
            | PlanError::NoRegister { .. }
            | PlanError::NoReference { .. }
            | PlanError::NoMetric { .. } => Error::EventNotSupported,
            PlanError::SliceOutOfRange { .. } => Error::SliceOutOfRange,
            PlanError::BadShare { .. } | PlanError::BudgetOutOfRange { .. } => Error::BadArgument,
        }
    }

    /// Index of the event at fault, if a single event is.
    pub fn event(self) -> Option<usize> {
        match self {
            PlanError::NoEvents
            | PlanError::TooManyEvents { .. }
            | PlanError::NotTogether { .. }
            | PlanError::NoGroup { .. }
            | PlanError::SliceOutOfRange { .. }
            | PlanError::BudgetOutOfRange { .. } => None,
            PlanError::NoCounter { event, .. }
            | PlanError::NoRegister { event, .. }
            | PlanError::NoReference { event }
            | PlanError::NoMetric { event }
            | PlanError::BadShare { event } => Some(event),
        }
    }
}

impl fmt::Display for PlanError {
    /// Writes the reason, for people, without the event's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PlanError::NoEvents | PlanError::TooManyEvents { .. } => {
                f.write_str(self.error().message())
            }
            PlanError::NoCounter { counters, .. } => write!(
                f,
                "it counts only on general counters of the mask {counters:#x}, and this machine leaves \
                 none of them to events"
            ),
            PlanError::NoRegister { .. } => f.write_str(
                "it needs an extra register, such as those of off-core responses, which this machine \
                 lacks or a hypervisor keeps",
            ),
            PlanError::NotTogether { groups } => write!(
                f,
                "the events need {groups} groups of counters and direct mode has one: ask for fewer \
                 events, or open a session, which multiplexes them"
            ),
            PlanError::NoGroup { counters, general, lack, .. } => no_group(f, counters, general, lack),
            PlanError::NoReference { .. } => f.write_str("the PMU does not count reference cycles"),
            PlanError::NoMetric { .. } => f.write_str(
                "it is a metric, and direct mode counts events of counters alone: open a session",
            ),
            PlanError::BadShare { .. } => {
                write!(f, "its share is out of range: use 1 to {MAX_SHARE} slices of a round")
            }
            PlanError::SliceOutOfRange { length, max } => {
                write!(f, "a slice of {length} is out of range: use {MIN_SLICE} to {max}")
            }
            PlanError::BudgetOutOfRange { ppm } => {
                write!(f, "a budget of {ppm} ppm is out of range: use 1 to {NO_BUDGET_PPM}")
            }
        }
    }
}

/// Writes the needs of events in the same slices, and the resource that is insufficient.
fn no_group(f: &mut fmt::Formatter<'_>, counters: u16, general: u8, lack: Lack) -> fmt::Result {
    write!(f, "these events need {counters} general counters at once, and ")?;
    match lack {
        Lack::Counters => write!(f, "this machine leaves {general} to events")?,
        Lack::Choices => {
            f.write_str("too few of the counters that can count them are free at once")?
        }
        Lack::Registers => f.write_str("more extra registers than this machine has")?,
        Lack::Alone => f.write_str("one of them must be alone on the general counters")?,
    }
    f.write_str(": put fewer events between the braces")
}
