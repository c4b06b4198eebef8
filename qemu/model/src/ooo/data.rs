//! Loads and stores: when their data is available, and when it reaches the cache.

use super::{
    memory::Forward,
    state::{Engine, Touch},
    steps::Steps,
};
use crate::{access::ServedBy, block::Insn, signal::Signal, stacks::Watch};

/// Cycles until the replay of a load to which a store could not be forwarded. With the store's own
/// time to reach the cache they add up to the published 12 to 14.
const REPLAY_CYCLES: u64 = 5;

impl Engine {
    /// Executes all loads of an instruction; returns the cycle of their data.
    pub(super) fn load_all<W: Watch>(
        &mut self,
        insn: &Insn,
        start: u64,
        touches: &[Touch],
        steps: &mut Steps<'_, W>,
    ) -> u64 {
        let mut data_at = 0;
        if touches.is_empty() {
            return data_at;
        }
        let ready = start.max(self.ready(insn.operation.address)).max(self.fence);
        for touch in touches.iter().filter(|touch| !touch.store) {
            let issued = self.ports.issue(self.geometry.backend.load_ports, ready);
            self.scheduler.take(issued);
            data_at = data_at.max(self.load(touch, issued, steps));
        }
        data_at
    }

    /// Executes one load; returns the cycle of its data.
    fn load<W: Watch>(&mut self, touch: &Touch, issued: u64, steps: &mut Steps<'_, W>) -> u64 {
        let latency = &self.geometry.latency;
        let translated = issued + u64::from(touch.walk_cycles);
        steps.until(translated + 1, Signal::StallDtlb);
        let hit_at = translated + u64::from(latency.l1_cycles);
        match self.forwards.load(touch.access, translated) {
            Forward::None => {}
            Forward::Whole(at) => {
                steps.count(Signal::Forwards, 1);
                let data_at = at.max(translated) + u64::from(latency.forward_cycles);
                steps.until(data_at + 1, Signal::StallL1Hit);
                return data_at;
            }
            Forward::Blocked(at) => {
                steps.count(Signal::ForwardsBlocked, 1);
                let data_at = at.max(translated) + u64::from(latency.l1_cycles) + REPLAY_CYCLES;
                steps.until(data_at + 1, Signal::StallStore);
                return data_at;
            }
        }
        let (data_at, from) = match touch.by {
            ServedBy::L1 => {
                self.lines.in_flight(touch.line, hit_at).unwrap_or((hit_at, ServedBy::L1))
            }
            from => (self.fill(touch, translated), from),
        };
        steps.until(data_at + 1, from.stall());
        data_at
    }

    /// Brings a line into the L1 as soon as a fill buffer is free; returns the cycle of its
    /// arrival.
    fn fill(&mut self, touch: &Touch, translated: u64) -> u64 {
        let latency = &self.geometry.latency;
        let cycles = match touch.by {
            ServedBy::L1 => latency.l1_cycles,
            ServedBy::L2 => latency.l2_cycles,
            ServedBy::Llc => latency.llc_cycles,
            ServedBy::Memory => latency.memory_cycles,
        };
        let arrives = translated.max(self.fills.room(1)) + u64::from(cycles);
        self.fills.take(arrives);
        self.lines.request(touch.line, arrives, touch.by);
        arrives
    }

    /// Computes the addresses of an instruction's stores; returns the cycle of the last.
    pub(super) fn address_stores(&mut self, insn: &Insn, start: u64, touches: &[Touch]) -> u64 {
        let mut last = 0;
        let ready = start.max(self.ready(insn.operation.address));
        for touch in touches.iter().filter(|touch| touch.store) {
            let issued = self.ports.issue(self.geometry.backend.store_ports, ready);
            self.scheduler.take(issued);
            last = last.max(issued + 1);
            if touch.by != ServedBy::L1 {
                // Requested as soon as the address is known, long before the store retires.
                self.fill(touch, issued + u64::from(touch.walk_cycles));
            }
        }
        last
    }

    /// Writes retired stores to the cache, one a cycle, in order, each when its line has arrived.
    pub(super) fn commit(&mut self, data_at: u64, touches: &[Touch], watch: &mut impl Watch) {
        for touch in touches.iter().filter(|touch| touch.store) {
            let next = self.store_done.max(self.retired_at) + 1;
            let in_flight = self.lines.in_flight(touch.line, next);
            let (line_at, by) = in_flight.unwrap_or((next, ServedBy::L1));
            watch.store_waited(next, line_at, by);
            self.store_done = line_at;
            self.stores.take(line_at);
            self.forwards.store(touch.access, data_at, line_at);
        }
    }
}
