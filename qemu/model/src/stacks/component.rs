//! The components of a CPI stack.

use crate::{access::ServedBy, signal::Signal};

/// A component of a CPI stack beside its base. The paper's machine has two levels of cache; here
/// the second stands for all levels beyond the L1: a miss of the L2 is served by the last-level
/// cache or by memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// Lines of code that missed the L1 and hit the L2.
    L1i,
    /// Lines of code that missed the L2.
    L2i,
    /// Translations of code that missed the first level.
    Itlb,
    /// Mispredicted branches.
    Branch,
    /// Data that missed the L1 and hit the L2.
    L1d,
    /// Data that missed the L2.
    L2d,
    /// Translations of data that missed the first level.
    Dtlb,
    /// Operations of units that take longer than a cycle. The paper has a counter for them, but its
    /// reference has them in the base.
    Units,
}

impl Component {
    /// All components, those of the front end first.
    pub const ALL: [Component; 8] = [
        Component::L1i,
        Component::L2i,
        Component::Itlb,
        Component::Branch,
        Component::L1d,
        Component::L2d,
        Component::Dtlb,
        Component::Units,
    ];

    /// The component of data that this level served; `None` for the L1.
    pub(super) fn of_data(by: ServedBy) -> Option<Component> {
        match by {
            ServedBy::L1 => None,
            ServedBy::L2 => Some(Component::L1d),
            ServedBy::Llc | ServedBy::Memory => Some(Component::L2d),
        }
    }

    /// The component that blocks the oldest instruction while retirement waits for this cause;
    /// `None` if no instruction in execution blocks it.
    pub(super) fn of_head(cause: Signal) -> Option<Component> {
        match cause {
            Signal::StallL2Hit => Some(Component::L1d),
            Signal::StallL3Hit | Signal::StallMemory => Some(Component::L2d),
            Signal::StallDtlb => Some(Component::Dtlb),
            Signal::StallL1Hit
            | Signal::StallDivider
            | Signal::StallFp
            | Signal::StallInteger
            | Signal::StallStore => Some(Component::Units),
            _ => None,
        }
    }
}
