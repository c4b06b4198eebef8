//! What the planner deals with: what each event needs, and what it gets.

use super::deal::Deal;
use crate::demand::{Extra, MAX_EXTRA, MAX_GENERAL, Selector};

/// What a counter is needed for, and the counters that can do it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wanted {
    pub(super) selector: Selector,
    pub(super) counters: u8,
    pub(super) extra: Option<Extra>,
    pub(super) alone: bool,
}

/// Where a general counter counts an event.
#[derive(Clone, Copy, Default)]
pub(super) struct Spot {
    pub(super) group: usize,
    pub(super) counter: usize,
    pub(super) register: Option<usize>,
}

pub(super) type Counters = Deal<MAX_GENERAL, { 1 << MAX_GENERAL }>;
pub(super) type Registers = Deal<MAX_EXTRA, { 1 << MAX_EXTRA }>;
