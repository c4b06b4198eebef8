//! The pipeline's reports to a watcher.

use super::component::Component;
use crate::{access::ServedBy, counts::Counts, signal::Signal};

/// Cause of a wait of fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchWait {
    /// A line of code that this level serves.
    Code(ServedBy),
    /// A translation.
    Translation,
    /// The redirection of fetch after a taken branch that it did not know.
    Resteer,
    /// The decoders.
    Decoders,
}

impl FetchWait {
    /// The cause that cycles without retirement get.
    pub(crate) fn cause(self) -> Signal {
        match self {
            FetchWait::Code(_) => Signal::StallL1i,
            FetchWait::Translation => Signal::StallItlb,
            FetchWait::Resteer | FetchWait::Decoders => Signal::StallFrontEnd,
        }
    }

    /// The component; `None` for causes for which the paper has no counter.
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
    /// The first cycle after the retirement of all older instructions.
    pub(crate) empty_from: u64,
    /// The cycle of dispatch.
    pub(crate) at: u64,
}

/// A mispredicted branch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mispredicted {
    /// The cycle from which the wrong path fills the reorder buffer, if the branch is not resolved
    /// before.
    pub(crate) full_at: u64,
    /// The cycle at which the branch is resolved.
    pub(crate) resolved: u64,
    /// The first cycle at which the right path can be dispatched.
    pub(crate) refilled: u64,
}

/// A watcher of the pipeline. Calls are in program order.
pub(crate) trait Watch {
    /// Reports that fetch waited in these cycles.
    fn fetch_waited(&mut self, _from: u64, _until: u64, _wait: FetchWait) {}
    /// Reports that an instruction was dispatched.
    fn dispatched(&mut self, _dispatched: Dispatched, _counts: &mut Counts) {}
    /// Reports that retirement waited in these cycles for this cause.
    fn stalled(&mut self, _from: u64, _until: u64, _cause: Signal, _counts: &mut Counts) {}
    /// Reports that the oldest store of the store queue waited in these cycles for data from this
    /// level.
    fn store_waited(&mut self, _from: u64, _until: u64, _by: ServedBy) {}
}

impl Watch for () {}
