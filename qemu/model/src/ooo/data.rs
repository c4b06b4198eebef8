//! Loads and stores: the cycles at which data is available, and at which it reaches the cache.

use super::{
    memory::{Forward, Queued, StoreTimes},
    state::{Engine, Touch},
    steps::Steps,
};
use crate::{
    access::{Ahead, ServedBy},
    block::Insn,
    counts::Counts,
    signal::Signal,
    stacks::Watch,
};

/// Cycles until the replay of a load to which a store could not be forwarded. Together with the
/// store's time to reach the cache, the load takes the published 12 to 14 cycles.
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
            let ready = self.in_order(insn.pc, touch.access, ready);
            let issued =
                self.execution.issue(self.geometry.backend.load_ports, ready, steps.counts());
            self.scheduler.take(issued);
            let loaded = self.load(insn.pc, touch, issued, steps);
            self.execution.load(issued, loaded);
            data_at = data_at.max(loaded);
            self.fetch_ahead(touch, issued, steps.counts());
        }
        data_at
    }

    /// Executes one load; returns the cycle of its data.
    fn load<W: Watch>(
        &mut self,
        pc: u64,
        touch: &Touch,
        issued: u64,
        steps: &mut Steps<'_, W>,
    ) -> u64 {
        let mut translated = issued + u64::from(touch.walk_cycles);
        steps.until(translated + 1, Signal::StallDtlb);
        let Queued { forward, addressed_at } = self.forwards.load(touch.access, translated);
        if addressed_at > translated && self.order.is_some() {
            translated = self.clear(pc, addressed_at, steps.counts());
            steps.until(translated + 1, Signal::StallStore);
        }
        let latency = self.geometry.latency;
        match forward {
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
        let alias_cycles = self.geometry.backend.alias_cycles;
        let is_compared = self.order.is_some() && alias_cycles != 0;
        if is_compared && self.forwards.has_alias(touch.access, translated) {
            steps.count(Signal::AliasedLoads, 1);
            translated += u64::from(alias_cycles);
            steps.until(translated + 1, Signal::StallStore);
        }
        let hit_at = translated + u64::from(latency.l1_cycles);
        let (data_at, from) = match touch.by {
            ServedBy::L1 => {
                self.lines.in_flight(touch.line, hit_at).unwrap_or((hit_at, ServedBy::L1))
            }
            by => self.fill(touch.line, by, translated, steps.counts()),
        };
        steps.until(data_at + 1, from.stall());
        data_at
    }

    /// Fetches a line into the L1 as soon as a fill buffer is free; returns the cycle of its
    /// arrival, and its source.
    fn fill(
        &mut self,
        line: u64,
        by: ServedBy,
        requested: u64,
        counts: &mut Counts,
    ) -> (u64, ServedBy) {
        let start = requested.max(self.fills.room(1));
        let (arrives, from) = self.arrival(line, by, start);
        self.fills.take(arrives);
        counts[Signal::FullFillPeriods] += u64::from(self.fills_full.is_new(requested, start));
        counts[Signal::FullFills] += self.fills_full.extend(requested, start);
        counts[Signal::PendingMisses] += arrives - start;
        counts[Signal::PendingMissCycles] += self.fills_pending.extend(start, arrives);
        self.lines.request(line, arrives, from);
        (arrives, from)
    }

    /// The arrival cycle and source of a line that is requested at `start`. The modelled L2
    /// contains a line as soon as a prefetcher requests it, so lines still in flight are looked up
    /// first.
    fn arrival(&self, line: u64, by: ServedBy, start: u64) -> (u64, ServedBy) {
        let latency = &self.geometry.latency;
        let cycles = match by {
            ServedBy::L1 => latency.l1_cycles,
            ServedBy::L2 => latency.l2_cycles,
            ServedBy::Llc => latency.llc_cycles,
            ServedBy::Memory => latency.memory_cycles,
        };
        let arrives = start + u64::from(cycles);
        let on_its_way = self.into_l2.as_ref().filter(|_| by == ServedBy::L2);
        on_its_way.and_then(|into| into.lines.in_flight(line, arrives)).unwrap_or((arrives, by))
    }

    /// Starts the prefetches caused by an access that was issued at `issued`.
    fn fetch_ahead(&mut self, touch: &Touch, issued: u64, counts: &mut Counts) {
        let requested = issued + u64::from(touch.walk_cycles);
        for index in touch.ahead.0..touch.ahead.1 {
            let Ahead { line, by, into_l1 } = self.ahead[index];
            if into_l1 {
                self.fill(line, by, requested, counts);
            } else {
                self.fill_l2(line, by, requested);
            }
        }
    }

    /// Fetches a line into the L2 as soon as an entry for prefetches is free.
    fn fill_l2(&mut self, line: u64, by: ServedBy, requested: u64) {
        let Some(mut into) = self.into_l2.take() else { return };
        let (arrives, from) = self.arrival(line, by, requested.max(into.entries.room(1)));
        into.entries.take(arrives);
        into.lines.request(line, arrives, from);
        self.into_l2 = Some(into);
    }

    /// Starts the prefetches caused by a fetch of code.
    pub(crate) fn fetch_code_ahead(&mut self, ahead: &[Ahead]) {
        let requested = self.fetched_at.max(self.dispatch.cycle());
        ahead.iter().for_each(|ahead| self.fill_l2(ahead.line, ahead.by, requested));
    }

    /// Computes the addresses of an instruction's stores; returns the cycle of the last.
    pub(super) fn address_stores(
        &mut self,
        insn: &Insn,
        start: u64,
        touches: &[Touch],
        counts: &mut Counts,
    ) -> u64 {
        let mut last = 0;
        let ready = start.max(self.ready(insn.operation.address));
        for touch in touches.iter().filter(|touch| touch.store) {
            let issued = self.execution.issue(self.geometry.backend.store_ports, ready, counts);
            self.scheduler.take(issued);
            last = last.max(issued + 1);
            if touch.by != ServedBy::L1 {
                // The line is requested as soon as the address is known, long before the store
                // retires.
                self.fill(touch.line, touch.by, issued + u64::from(touch.walk_cycles), counts);
            }
            self.fetch_ahead(touch, issued, counts);
        }
        if let Some(order) = &mut self.order {
            order.stores(last);
        }
        last
    }

    /// Writes retired stores to the cache in order, one per cycle, each when its line has arrived.
    /// `times` applies to all of them, except for `leaves_at`, which is computed here.
    pub(super) fn commit(&mut self, times: StoreTimes, touches: &[Touch], watch: &mut impl Watch) {
        for touch in touches.iter().filter(|touch| touch.store) {
            let next = self.store_done.max(self.retired_at) + 1;
            let in_flight = self.lines.in_flight(touch.line, next);
            let (line_at, by) = in_flight.unwrap_or((next, ServedBy::L1));
            watch.store_waited(next, line_at, by);
            self.store_done = line_at;
            self.stores.take(line_at);
            self.forwards.store(touch.access, StoreTimes { leaves_at: line_at, ..times });
        }
    }
}
