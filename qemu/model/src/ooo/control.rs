//! Changes of the instruction flow: branches, changes of the ring, and idle cycles.

use std::vec::Drain;

use super::state::Engine;
use crate::{
    block::Privilege,
    counts::Counts,
    geometry::RESOLVE_CYCLES,
    oracle::{Charge, Place},
    signal::Signal,
    stacks::Mispredicted,
};

/// Cycles that a part of an instruction, or the delivery of an interrupt, has to itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alone {
    pub(crate) cycles: u32,
    /// The cause that the cycles get.
    pub(crate) cause: Signal,
    /// Micro-operations that retire, no more than the cycles have slots.
    pub(crate) uops: u64,
    /// Whether a store waits, if the cause is in memory, and not a load.
    pub(crate) is_store: bool,
    /// Address of the instruction whose time it is, if it is one's.
    pub(crate) pc: Option<u64>,
}

impl Alone {
    /// Cycles in which nothing retires.
    pub(crate) fn serializing(cycles: u32) -> Alone {
        Alone { cycles, cause: Signal::StallSerialize, uops: 0, is_store: false, pc: None }
    }

    /// Returns whether data from memory is waited for.
    pub(crate) fn is_behind_memory(&self) -> bool {
        Signal::MEMORY_STALLS.contains(&self.cause)
    }
}

impl Engine {
    /// Resolves the last instruction, a branch: delays fetch.
    pub(crate) fn branch(&mut self, taken: bool, wrong: bool, counts: &mut Counts) {
        self.steer(taken, wrong);
        if let (true, Some(oracle)) = (wrong, &mut self.oracle) {
            oracle.mispredicted();
        }
        if let Some(mut stacks) = self.stacks.take() {
            let mispredicted = wrong.then(|| Mispredicted {
                full_at: self.full_at(stacks.dispatched_at()),
                resolved: self.resolved_at,
                refilled: self.refilled_at,
            });
            stacks.branch(self.retired_at, mispredicted, counts);
            self.stacks = Some(stacks);
        }
    }

    /// Takes the times of instructions.
    pub(crate) fn take_times(&mut self) -> Option<Drain<'_, Charge>> {
        self.oracle.as_mut().map(|oracle| oracle.take())
    }

    /// The cycle at which the reorder buffer is full of micro-operations of a wrong path, if they
    /// are dispatched at full width after `dispatched`.
    fn full_at(&self, dispatched: u64) -> u64 {
        let width = usize::from(self.geometry.width);
        let cycles = self.geometry.reorder_uops as usize / width + 1;
        let is_full =
            |passed: &usize| self.reorder.room(passed * width) >> 1 > dispatched + *passed as u64;
        let passed = (1..=cycles).find(is_full).unwrap_or(cycles);
        dispatched + passed as u64
    }

    /// Cycles from the resolution of a wrong path to the dispatch of the right one.
    pub(super) fn refill_cycles(&self) -> u64 {
        u64::from(self.geometry.latency.mispredict_cycles.saturating_sub(RESOLVE_CYCLES))
    }

    /// Delays fetch behind a branch.
    fn steer(&mut self, taken: bool, wrong: bool) {
        if wrong {
            self.resolved_at = self.complete_at;
            self.refilled_at = self.complete_at + self.refill_cycles();
            self.fetched_at = self.fetched_at.max(self.refilled_at);
            self.fetch_cause = Signal::StallMispredict;
        } else if taken && !self.geometry.perfect.fetch {
            // Fetch follows one taken branch per cycle.
            self.fetch.close();
        }
    }

    /// Enters `ring`. If it is a new one, charges the last slots to the old ring: dispatch waited
    /// until the pipeline was empty. Returns the slots that passed.
    #[inline]
    pub(crate) fn enter(&mut self, ring: Privilege, counts: &mut [Counts; 2]) -> u64 {
        let mut slots = 0;
        if ring != self.ring {
            slots = self.drain_bundle(&mut counts[self.ring as usize]);
            let waited =
                if self.waited_for_memory { Signal::SlotsMemory } else { Signal::SlotsCore };
            let counts_of_ring = &mut counts[self.ring as usize];
            self.empty(waited, counts_of_ring);
            if let Some(stacks) = &mut self.stacks {
                stacks.drain(&mut counts[self.ring as usize]);
            }
            self.ring = ring;
        }
        slots
    }

    /// Charges the slots of dispatch, and the cycles of the ports, up to the last retirement: the
    /// pipeline is empty there.
    pub(super) fn empty(&mut self, lost: Signal, counts: &mut Counts) {
        self.slots.until(self.retired_at, lost, counts);
        self.execution.drained(self.retired_at, counts);
    }

    /// Advances by cycles that something has to itself; returns their slots.
    pub(crate) fn occupy(&mut self, alone: Alone, counts: &mut Counts) -> u64 {
        let drained = self.drain_bundle(counts);
        let Alone { cycles, cause, uops, .. } = alone;
        let (cycles, width) = (u64::from(cycles), u64::from(self.geometry.width));
        counts[cause] += cycles;
        counts[cause.resumed()] += cycles;
        if cycles > 0 {
            cause.begun(self.stalled).for_each(|signal| counts[signal] += 1);
            self.stalled = Some(cause);
        }
        counts[Signal::Slots] += cycles * width;
        self.empty(Signal::SlotsCore, counts);
        self.retired_at += cycles;
        match (alone.pc, &mut self.oracle) {
            (Some(pc), Some(oracle)) => oracle.occupy(Place { ring: self.ring, pc }, cycles),
            (None, Some(oracle)) => oracle.interrupted(),
            (_, None) => {}
        }
        self.slots.take(uops);
        self.empty_behind(alone, counts);
        self.fetched_at = self.fetched_at.max(self.retired_at);
        self.fetch_cause = Signal::StallSerialize;
        drained + cycles * width
    }

    /// Charges slots, cycles and fill buffers up to the last retirement, which followed `alone`.
    fn empty_behind(&mut self, alone: Alone, counts: &mut Counts) {
        let Alone { cycles, cause, is_store, .. } = alone;
        if !alone.is_behind_memory() {
            return self.empty(Signal::SlotsCore, counts);
        }
        self.slots.until(self.retired_at, Signal::SlotsMemory, counts);
        self.execution.waited(self.retired_at, is_store, counts);
        if cause != Signal::StallDtlb {
            // The lines come as fast as the fill buffers allow.
            let cycles = u64::from(cycles);
            counts[Signal::FullFills] += cycles;
            counts[Signal::PendingMisses] += cycles * u64::from(self.geometry.backend.fill_buffers);
            counts[Signal::PendingMissCycles] += cycles;
        }
    }
}
