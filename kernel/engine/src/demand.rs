//! What is asked of the planner: events, and the counters that there are.

use tally_abi::trace::MAX_COUNTS;

/// The most general counters that a group can use. Counters are named by their hardware index, and
/// sets of them are bit masks of eight bits.
pub const MAX_GENERAL: usize = 8;
const _: () = assert!(MAX_GENERAL == MAX_COUNTS);

/// An event select as the PMU takes it, complete with privilege and enable bits; opaque to the
/// engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector(pub u64);

/// What the driver counts in every slice, besides the group's own events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Always {
    /// Instructions retired.
    Instructions,
    /// Core cycles.
    Cycles,
    /// Cycles of the reference clock (the TSC's rate), while not halted.
    Reference,
}

impl Always {
    /// All, in the order of their values.
    pub const ALL: [Always; 3] = [Always::Instructions, Always::Cycles, Always::Reference];
}

/// One event that is to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// What to write into a general counter's event select.
    pub selector: Selector,
    /// The general counters that can count it, as a mask.
    pub counters: u8,
    /// Set where the driver counts the event in every slice anyway; then the rest is not used.
    pub always: Option<Always>,
}

/// The counters that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The general counters that groups may use, as a mask.
    pub general: u8,
    /// Whether the driver counts [`Always::Reference`]; the other two it always does.
    pub reference: bool,
}
