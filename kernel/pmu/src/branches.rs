//! Records of the branches that were taken last, as the drivers use them.
//!
//! Recording is on while counters are enabled, in the rings of the session. An overflow interrupt
//! freezes the records, and the acknowledgement of the overflow, which comes anyway, thaws them: so
//! the records that are read in the interrupt are those before it. A session without branches
//! accesses no register of theirs.

use tally_abi::branches::{Branch, BranchFilter};

use crate::bus::{Bus, CountingBus};

/// A processor's kind of records.
pub(crate) trait BranchStack {
    /// Starts recording.
    fn start<B: Bus>(&self, bus: &mut CountingBus<B>, filter: BranchFilter);

    /// Stops recording; the records stay.
    fn stop<B: Bus>(&self, bus: &mut CountingBus<B>);

    /// Forgets the records.
    fn clear<B: Bus>(&self, bus: &mut CountingBus<B>);

    /// Reads the records, the last one first, into `to`; returns their number.
    fn read<B: Bus>(&self, bus: &mut CountingBus<B>, to: &mut [Branch]) -> usize;

    /// The filters that it has.
    fn filters(&self) -> BranchFilter;
}

/// State of a CPU's records.
#[derive(Debug)]
pub(crate) struct BranchRecords<S> {
    stack: S,
    /// Branches to record; empty if the session records none.
    filter: BranchFilter,
    is_on: bool,
}

impl<S: BranchStack> BranchRecords<S> {
    /// Makes the state for records that are off.
    pub(crate) fn new(stack: S) -> BranchRecords<S> {
        BranchRecords { stack, filter: BranchFilter::default(), is_on: false }
    }

    /// Sets the branches to record from the next start on. Returns whether there are any.
    pub(crate) fn set(&mut self, filter: BranchFilter) -> bool {
        self.filter = filter;
        !filter.is_empty()
    }

    /// Starts recording, if the session records branches.
    pub(crate) fn start<B: Bus>(&mut self, bus: &mut CountingBus<B>) {
        if !self.filter.is_empty() && !self.is_on {
            self.is_on = true;
            self.stack.start(bus, self.filter);
        }
    }

    /// Stops recording.
    pub(crate) fn stop<B: Bus>(&mut self, bus: &mut CountingBus<B>) {
        if self.is_on {
            self.is_on = false;
            self.stack.stop(bus);
        }
    }

    /// Forgets the records.
    pub(crate) fn clear<B: Bus>(&self, bus: &mut CountingBus<B>) {
        self.stack.clear(bus);
    }

    /// Reads the records, the last one first; returns their number.
    pub(crate) fn read<B: Bus>(&self, bus: &mut CountingBus<B>, to: &mut [Branch]) -> usize {
        let known = self.stack.read(bus, to);
        if self.filter.has(BranchFilter::STACK) {
            to[..known].iter_mut().for_each(|branch| *branch = branch.open());
        }
        known
    }

    /// The filters of the records.
    pub(crate) fn filters(&self) -> BranchFilter {
        self.stack.filters()
    }
}
