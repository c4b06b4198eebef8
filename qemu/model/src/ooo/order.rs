//! The order of loads and older stores: a load can execute before the address of an older store is
//! known. If that store then turns out to write what the load has read, the pipeline is cleared,
//! and the load and all younger instructions are fetched again.
//!
//! A load waits for the addresses of older stores until it has executed a number of times without a
//! violation (Intel, "Optimization Reference Manual", "Memory Disambiguation"). The manual has
//! neither the size of the table nor the number: both are choices of this model.

use super::state::Engine;
use crate::{access::Access, counts::Counts, signal::Signal};

/// Executions without a violation after which a load does not wait.
const HARMLESS: u8 = 15;

impl Engine {
    /// The cycle at which the load at `pc` can issue; its own address is known at `ready`.
    pub(super) fn in_order(&mut self, pc: u64, access: Access, ready: u64) -> u64 {
        let Some(order) = &mut self.order else { return ready };
        let harmless = order.of(pc);
        if *harmless >= HARMLESS {
            return ready;
        }
        let conflicts = self.forwards.load(access, ready).addressed_at > ready;
        *harmless = if conflicts { 0 } else { *harmless + 1 };
        ready.max(order.addressed_at)
    }

    /// Handles an ordering violation: the load at `pc` has read what an older store writes, whose
    /// address is known at `addressed_at`. Clears the pipeline; returns the cycle at which the load
    /// is fetched again.
    #[cold]
    pub(super) fn clear(&mut self, pc: u64, addressed_at: u64, counts: &mut Counts) -> u64 {
        if let Some(order) = &mut self.order {
            *order.of(pc) = 0;
        }
        counts[Signal::MachineClears] += 1;
        let refilled_at = addressed_at + self.refill_cycles();
        self.resolved_at = self.resolved_at.max(addressed_at);
        self.refilled_at = self.refilled_at.max(refilled_at);
        self.fetched_at = self.fetched_at.max(refilled_at);
        self.fetch_cause = Signal::StallStore;
        refilled_at
    }
}
