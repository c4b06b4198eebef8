//! Why there is no plan, or no session of one.

use core::fmt;

use tally_abi::{
    Error,
    session::{MIN_SLICE, NO_BUDGET_PPM},
};

use crate::demand::MAX_SHARE;

/// What is not enough for events that are to be counted in the same slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// There are fewer general counters.
    Counters,
    /// Of the counters on which the events can be counted, too few are free at once.
    Choices,
    /// There are fewer extra registers than values that have to be in them.
    Registers,
    /// One of the events must be alone on the general counters.
    Alone,
}

/// Why there is no plan, or no session of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// No events were asked for.
    NoEvents,
    /// More events than [`tally_abi::session::MAX_EVENTS`].
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
    /// None of the extra registers that the event needs is there for groups to use.
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
    /// The events do not fit the counters all at once, and are to be there at once.
    NotTogether {
        /// The groups that it would take.
        groups: usize,
    },
    /// Events that are to be counted in the same slices cannot be.
    NoGroup {
        /// What they have in [`crate::Demand::together`].
        together: u16,
        /// How many general counters they need.
        counters: u16,
        /// How many general counters groups may use.
        general: u8,
        /// What is not enough.
        lack: Lack,
    },
    /// A share that is 0, or more than [`MAX_SHARE`].
    BadShare {
        /// The event, by its index.
        event: usize,
    },
    /// A slice that is shorter than [`MIN_SLICE`], or so long that a counter could wrap in it.
    SliceOutOfRange {
        /// Its length, in its own unit.
        length: u64,
        /// The longest that this machine's counters allow.
        max: u64,
    },
    /// A budget that is not 1 to [`NO_BUDGET_PPM`].
    BudgetOutOfRange {
        /// In parts per million.
        ppm: u32,
    },
}

impl PlanError {
    /// The error that a program gets to see.
    pub fn error(self) -> Error {
        match self {
            PlanError::NoEvents => Error::NoEvents,
            PlanError::TooManyEvents { .. }
            | PlanError::NotTogether { .. }
            | PlanError::NoGroup { .. } => Error::TooManyEvents,
            PlanError::NoCounter { .. }
            | PlanError::NoRegister { .. }
            | PlanError::NoReference { .. } => Error::EventNotSupported,
            PlanError::SliceOutOfRange { .. } => Error::SliceOutOfRange,
            PlanError::BadShare { .. } | PlanError::BudgetOutOfRange { .. } => Error::BadArgument,
        }
    }

    /// The event at fault, by its index, if it is one event's fault.
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
            | PlanError::BadShare { event } => Some(event),
        }
    }
}

impl fmt::Display for PlanError {
    /// The reason, for people, without the event's name.
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

/// What events that are to be counted in the same slices need, and what there is.
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
