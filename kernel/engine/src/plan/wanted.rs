//! The planner's terms: the needs of each event, and its assignment.

use super::deal::Deal;
use crate::{
    demand::{Extra, MAX_EXTRA, MAX_GENERAL, Selector},
    precise::Precision,
};

/// The need for a counter: selector, possible counters, extra register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wanted {
    pub(super) selector: Selector,
    pub(super) counters: u16,
    /// The select of the counter after its own, if it takes both.
    pub(super) pair: Option<Selector>,
    pub(super) extra: Option<Extra>,
    pub(super) alone: bool,
    /// The need of precise samples.
    pub(super) precise: Option<Precision>,
}

/// Assignment of an event: group, counter, register.
#[derive(Clone, Copy, Default)]
pub(super) struct Spot {
    pub(super) group: usize,
    pub(super) counter: usize,
    pub(super) register: Option<usize>,
}

pub(super) type Counters = Deal<MAX_GENERAL, { 1 << MAX_GENERAL }>;
pub(super) type Registers = Deal<MAX_EXTRA, { 1 << MAX_EXTRA }>;
