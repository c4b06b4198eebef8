//! What the pipeline reports, for whoever watches it.

use super::component::Component;
use crate::{access::ServedBy, counts::Counts, signal::Signal};

/// What fetch waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchWait {
    /// A line of code, which this level serves.
    Code(ServedBy),
    /// A translation.
    Translation,
    /// The way back from behind a taken branch of which it did not know.
    Resteer,
    /// The decoders.
    Decoders,
}

impl FetchWait {
    /// The cause of the cycles without retirement.
    pub(crate) fn cause(self) -> Signal {
        match self {
            FetchWait::Code(_) => Signal::StallL1i,
            FetchWait::Translation => Signal::StallItlb,
            FetchWait::Resteer | FetchWait::Decoders => Signal::StallFrontEnd,
        }
    }

    /// None for what the paper has no counter of.
    pub(super) fn component(self) -> Option<Component> {
        match self {
            FetchWait::Code(ServedBy::L1 | ServedBy::L2) => Some(Component::L1i),
            FetchWait::Code(ServedBy::Llc | ServedBy::Memory) => Some(Component::L2i),
            FetchWait::Translation => Some(Component::Itlb),
            FetchWait::Resteer | FetchWait::Decoders => None,
        }
    }
}

/// The dispatch of an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dispatched {
    /// The first cycle in which dispatch has taken nothing yet.
    pub(crate) from: u64,
    /// The cycle up to which a structure was full.
    pub(crate) full_until: u64,
    /// Whether the last structure to have room was the store queue.
    pub(crate) behind_stores: bool,
    /// The first cycle behind the retirement of all older instructions.
    pub(crate) empty_from: u64,
    /// The cycle of dispatch.
    pub(crate) at: u64,
}

/// A mispredicted branch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mispredicted {
    /// The cycle from which its wrong path fills the reorder buffer, if it is not resolved before.
    pub(crate) full_at: u64,
    /// The cycle at which it is resolved.
    pub(crate) resolved: u64,
    /// The first cycle at which the right path can be dispatched.
    pub(crate) refilled: u64,
}

/// What watches the pipeline. Calls are in the order of the program.
pub(crate) trait Watch {
    /// Fetch waited in these cycles.
    fn fetch_waited(&mut self, _from: u64, _until: u64, _wait: FetchWait) {}
    /// An instruction was dispatched.
    fn dispatched(&mut self, _dispatched: Dispatched, _counts: &mut Counts) {}
    /// Retirement waited in these cycles for this cause.
    fn stalled(&mut self, _from: u64, _until: u64, _cause: Signal, _counts: &mut Counts) {}
    /// The oldest store of the store queue waited in these cycles for data from this level.
    fn store_waited(&mut self, _from: u64, _until: u64, _by: ServedBy) {}
}

impl Watch for () {}
