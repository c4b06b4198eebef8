//! The passage of each instruction through the engine, from fetch to retirement.

use std::ops::Range;

use super::{
    execution::Blocked,
    memory::StoreTimes,
    state::{Engine, Starved, Touch},
    steps::Steps,
};
use crate::{
    access::Ahead,
    block::{Block, Insn},
    counts::Counts,
    geometry::PipelineMode,
    operation::Unit,
    oracle::Events,
    signal::Signal,
    stacks::{Dispatched, FetchWait, Watch},
};

/// Cycles from dispatch to retirement of an instruction that nothing delays: issue, one cycle of
/// execution, retirement. For that long an empty pipeline is being filled.
const TRANSIT_CYCLES: u64 = 3;
/// Cycles of an atomic operation beyond those of its load and store: the published figures for both
/// vendors' cores are 18 to 20 in all.
const LOCK_CYCLES: u64 = 12;

impl Engine {
    /// Begins a block. Accesses of an instruction that did not retire are dropped.
    pub(crate) fn begin_block(&mut self) {
        self.touches.clear();
        self.starved.clear();
    }

    /// Records a memory access, which causes the prefetches `ahead`.
    pub(crate) fn touch(&mut self, touch: Touch, ahead: &[Ahead]) {
        if self.touches.is_empty() {
            self.ahead.clear();
        }
        let first = self.ahead.len();
        self.ahead.extend_from_slice(ahead);
        self.touches.push(Touch { ahead: (first, self.ahead.len()), ..touch });
    }

    /// Makes fetch wait before an instruction of the block.
    pub(crate) fn starve(&mut self, insn: usize, wait: FetchWait, cycles: u32) {
        self.starved.push(Starved { insn, wait, cycles });
    }

    /// Runs instructions of a block; returns the slots that passed.
    pub(crate) fn run(
        &mut self,
        block: &Block,
        range: Range<usize>,
        fused: bool,
        counts: &mut Counts,
    ) -> u64 {
        match self.stacks.take() {
            None => self.run_watched(block, range, fused, counts, &mut ()),
            Some(mut stacks) => {
                let slots = self.run_watched(block, range, fused, counts, &mut *stacks);
                self.stacks = Some(stacks);
                slots
            }
        }
    }

    fn run_watched(
        &mut self,
        block: &Block,
        range: Range<usize>,
        fused: bool,
        counts: &mut Counts,
        watch: &mut impl Watch,
    ) -> u64 {
        let before = self.charged_to();
        let mut touches = std::mem::take(&mut self.touches);
        let mut done = 0;
        for index in range.clone() {
            let insn = &block.insns()[index];
            while touches.get(done).is_some_and(|touch| touch.access.insn < index) {
                done += 1;
            }
            let first = done;
            while touches.get(done).is_some_and(|touch| touch.access.insn == index) {
                done += 1;
            }
            self.apply_delays(index, watch);
            let uops = if fused && index == range.start { 0 } else { insn.uops };
            self.step(insn, uops, &touches[first..done], counts, watch);
        }
        touches.drain(..done);
        self.touches = touches;
        self.pass(before, counts)
    }

    /// Counts the slots that passed since the last charged cycle was `before`, and returns them.
    pub(super) fn pass(&mut self, before: u64, counts: &mut Counts) -> u64 {
        let slots = (self.charged_to() - before) * u64::from(self.geometry.width);
        counts[Signal::Slots] += slots;
        slots
    }

    /// Applies the delays of fetch before instruction `index`.
    fn apply_delays(&mut self, index: usize, watch: &mut impl Watch) {
        for at in 0..self.starved.len() {
            let Starved { insn, wait, cycles } = self.starved[at];
            if insn == index {
                // Fetch runs ahead by at most the queue before dispatch.
                let from = self.fetched_at.max(self.queue.room(1));
                self.fetched_at = from + u64::from(cycles);
                self.fetch_cause = wait.cause();
                watch.fetch_waited(from, self.fetched_at, wait);
                self.meet(match wait {
                    FetchWait::Code(_) => Events::CODE_MISS,
                    FetchWait::Translation => Events::CODE_WALK,
                    FetchWait::Resteer | FetchWait::Decoders => continue,
                });
            }
        }
    }

    /// Cycles from the dispatch of the last instruction to its retirement; `None` if it retires
    /// with its bundle.
    pub(crate) fn flight_cycles(&self) -> Option<u64> {
        (!self.bundle.is_on()).then(|| self.retired_at.saturating_sub(self.dispatched_at))
    }

    /// Runs one instruction.
    fn step<W: Watch>(
        &mut self,
        insn: &Insn,
        uops: u8,
        touches: &[Touch],
        counts: &mut Counts,
        watch: &mut W,
    ) {
        self.end_bundle_before(insn, uops, touches, counts, watch);
        let mut steps =
            Steps::go_on(self.bundle.charged, (self.retired_at, self.stalled), counts, watch);
        let dispatched = self.dispatch_at(uops, touches, &mut steps);
        let mut start = dispatched + 1;
        if self.mode == PipelineMode::InOrder || insn.serialize_cycles != 0 {
            start = start.max(self.retired_at);
        }
        let locked = insn.adds >> Signal::Locked as u32 & 1 == 1;
        if locked {
            // The operation drains the store queue first.
            start = start.max(self.store_done);
            steps.until(start + 1, Signal::StallStore);
        }
        let mut complete = self.execute(insn, start, uops == 0, touches, &mut steps);
        if locked {
            complete += LOCK_CYCLES;
            steps.until(complete + 1, Signal::StallStore);
            self.fence = complete;
        }
        if insn.serialize_cycles != 0 {
            complete += u64::from(insn.serialize_cycles);
            steps.until(complete + 1, Signal::StallSerialize);
            self.fetched_at = self.fetched_at.max(complete);
            self.fetch_cause = Signal::StallSerialize;
        }
        let addressed_at = self.address_stores(insn, start, touches, steps.counts());
        let times = StoreTimes { data_at: complete, addressed_at, leaves_at: 0 };
        complete = complete.max(addressed_at).max(dispatched + TRANSIT_CYCLES - 1);
        steps.until(complete + 1, Signal::StallStore);
        self.complete_at = complete;
        insn.operation.writes.numbers().for_each(|register| self.ready[register] = times.data_at);
        if self.bundle.is_on() {
            self.add_to_bundle(insn, uops, times, touches, steps);
        } else {
            self.retire(uops, complete, steps);
            self.leave((insn, dispatched), times, touches, watch);
        }
        if insn.serialize_cycles != 0 {
            self.empty(Signal::SlotsCore, counts);
        }
    }

    /// Notes when the instruction was dispatched, tells the oracle of it, and frees the queue
    /// entries of its accesses.
    fn leave(
        &mut self,
        (insn, dispatched_at): (&Insn, u64),
        times: StoreTimes,
        touches: &[Touch],
        watch: &mut impl Watch,
    ) {
        self.dispatched_at = dispatched_at;
        self.consult(insn, dispatched_at, touches);
        self.commit(times, touches, watch);
        let (loads, _) = kinds(touches);
        (0..loads).for_each(|_| self.loads.take(self.retired_at));
    }

    /// The cycles from which each structure has room for an instruction that is dispatched at `at`
    /// or later; the reorder buffer has room from `reorder` on.
    #[inline(always)]
    fn rooms(&mut self, reorder: u64, [loads, stores]: [usize; 2], at: u64) -> [(u64, Signal); 4] {
        let (loads, stores) = (
            if loads > 0 { loads + self.bundle.loads } else { 0 },
            if stores > 0 { stores + self.bundle.stores.len() } else { 0 },
        );
        [
            (reorder, Signal::FullReorder),
            (if loads > 0 { self.loads.room(loads) } else { 0 }, Signal::FullLoads),
            (if stores > 0 { self.stores.room(stores) } else { 0 }, Signal::FullStores),
            (self.scheduler.room(at), Signal::FullScheduler),
        ]
    }

    /// The waits of dispatch, from the cycles at which structures have room.
    fn blocked(&self, rooms: [(u64, Signal); 4]) -> Blocked {
        let is_serialized = self.fetch_cause == Signal::StallSerialize;
        let serialized_to = if is_serialized { self.fetched_at } else { 0 };
        let any_to = rooms.iter().fold(serialized_to, |last, (room, _)| last.max(*room));
        Blocked { stores_to: rooms[2].0, any_to }
    }

    /// The cycle of dispatch: the first in which the instruction is fetched, a slot is free, and
    /// every structure has room.
    fn dispatch_at<W: Watch>(
        &mut self,
        uops: u8,
        touches: &[Touch],
        steps: &mut Steps<'_, W>,
    ) -> u64 {
        let (loads, stores) = kinds(touches);
        let (fetched, from) = (self.fetch(uops), self.dispatch.unused_from());
        let could_at = self.dispatch.cycle().max(fetched);
        let mut at = could_at;
        let is_delayed = at == self.fetched_at;
        let mut cause = if is_delayed { self.fetch_cause } else { Signal::StallFrontEnd };
        let reorder = self.reorder.room(self.bundle.uops + usize::from(uops));
        let mut behind_memory = reorder & 1 == 1;
        let rooms = self.rooms(reorder >> 1, [loads, stores], at);
        for (room, full) in rooms {
            if room > at {
                steps.count(full, room - at);
                at = room;
                (behind_memory, cause) = match full {
                    Signal::FullReorder => (behind_memory, Signal::StallResources),
                    Signal::FullScheduler => (self.waited_for_memory, Signal::StallResources),
                    Signal::FullStores => (true, Signal::StallStore),
                    _ => (true, Signal::StallResources),
                };
            }
        }
        let room_at = rooms[0].0.max(rooms[1].0).max(rooms[2].0);
        self.meet_full(cause);
        if self.slots.are_behind(at) {
            self.charge_slots(fetched, room_at, at, behind_memory, steps.counts());
        }
        let full_until = if at > could_at { at } else { room_at };
        let behind_stores = rooms[2].0 == full_until;
        let at = self.dispatch.take(at, uops);
        let empty_from = self.retired_at + 1;
        let (watch, counts) = steps.watch();
        self.execution.dispatched(at, self.blocked(rooms), counts);
        watch.dispatched(Dispatched { from, full_until, behind_stores, empty_from, at }, counts);
        self.slots.take(uops.into());
        if self.is_one_a_cycle() {
            self.dispatch.close();
        }
        (0..uops).for_each(|_| self.queue.take(at));
        steps.until(at + TRANSIT_CYCLES, cause);
        at
    }

    /// Fetches an instruction into the queue before dispatch, as soon as that has room; returns the
    /// cycle from which it can be dispatched.
    #[inline]
    fn fetch(&mut self, uops: u8) -> u64 {
        // The second instruction of a fused pair comes with the first.
        if uops == 0 {
            return self.fetch.cycle().max(self.fetched_at);
        }
        let fetched = self.fetch.next(self.fetched_at.max(self.queue.room(1)));
        self.fetch.take(fetched, uops);
        fetched
    }

    /// Charges the unused slots up to the dispatch of the next instruction at cycle `at`. The
    /// instruction was fetched at `fetched`, and structures had room from `room_at` on. A full
    /// structure has precedence over fetch, as in Intel's events: they count slots without
    /// micro-operations from fetch only while the back end could take some.
    #[inline(never)]
    fn charge_slots(
        &mut self,
        fetched: u64,
        room_at: u64,
        at: u64,
        behind_memory: bool,
        counts: &mut Counts,
    ) {
        let full = if behind_memory { Signal::SlotsMemory } else { Signal::SlotsCore };
        // The mode or a bundle ended a cycle early.
        self.slots.fetch_until(self.dispatch.cycle(), counts);
        // Micro-operations of the wrong path fill the reorder buffer until the branch is resolved.
        let is_endless = self.geometry.perfect.queues;
        let most = if is_endless { u64::MAX } else { self.geometry.reorder_uops.into() };
        self.slots.some_until(self.resolved_at, most, Signal::SlotsWrongPath, counts);
        self.slots.until(self.resolved_at, full, counts);
        self.slots.until(self.refilled_at, Signal::SlotsRefill, counts);
        self.slots.until(room_at.min(fetched), full, counts);
        self.slots.fetch_until(fetched, counts);
        self.slots.until(at, full, counts);
    }

    /// Executes the instruction's loads and its own operation; returns the cycle of its result.
    fn execute<W: Watch>(
        &mut self,
        insn: &Insn,
        start: u64,
        fused: bool,
        touches: &[Touch],
        steps: &mut Steps<'_, W>,
    ) -> u64 {
        let data_at = self.load_all(insn, start, touches, steps);
        let operation = &insn.operation;
        let ready = start.max(data_at).max(self.ready(operation.reads));
        // The second instruction of a fused pair is part of the first one's operation.
        let shape = self.geometry.unit(operation.unit);
        if shape.ports == 0 || fused {
            return ready;
        }
        let has_divider = !self.geometry.perfect.units;
        let divider_cycles = if has_divider { u64::from(insn.divider_cycles) } else { 0 };
        let divides = divider_cycles != 0;
        let earliest = if divides { ready.max(self.divider_free) } else { ready };
        let issued = self.execution.issue(shape.ports, earliest, steps.counts());
        self.scheduler.take(issued);
        if divides {
            self.divider_free = issued + divider_cycles;
        }
        let complete = issued + u64::from(shape.latency_cycles) + divider_cycles;
        steps.until(complete + 1, stall_of(operation.unit));
        complete
    }

    /// Retires in order, and charges every cycle without retirement to its cause.
    fn retire<W: Watch>(&mut self, uops: u8, complete: u64, steps: Steps<'_, W>) {
        let retired = self.retirement.take((complete + 1).max(self.retired_at), uops);
        if self.is_one_a_cycle() {
            self.retirement.close();
        }
        if retired > self.retired_at {
            self.retire_at(retired, steps);
        }
        self.free_reorder(uops.into());
    }

    /// Retires at `retired`, after the last retirement.
    pub(super) fn retire_at<W: Watch>(&mut self, retired: u64, steps: Steps<'_, W>) {
        if let Some(cause) = steps.last_cause(self.retired_at, retired) {
            self.waited_for_memory = Signal::MEMORY_STALLS.contains(&cause);
        }
        (self.retired_at, self.stalled) = (retired, None);
        steps.retire(retired);
    }

    /// Frees entries of the reorder buffer at the last retirement.
    pub(super) fn free_reorder(&mut self, uops: usize) {
        let entry = self.retired_at << 1 | u64::from(self.waited_for_memory);
        (0..uops).for_each(|_| self.reorder.take(entry));
    }

    /// Returns whether at most one instruction is dispatched, and one retires, in a cycle.
    fn is_one_a_cycle(&self) -> bool {
        matches!(self.mode, PipelineMode::SingleDispatch | PipelineMode::InOrder)
    }
}

/// The numbers of loads and stores.
fn kinds(touches: &[Touch]) -> (usize, usize) {
    let stores = touches.iter().filter(|touch| touch.store).count();
    (touches.len() - stores, stores)
}

fn stall_of(unit: Unit) -> Signal {
    match unit {
        Unit::Divide | Unit::FpDivide => Signal::StallDivider,
        Unit::Vector | Unit::Shuffle | Unit::FpAdd | Unit::FpMultiply | Unit::Convert => {
            Signal::StallFp
        }
        Unit::None | Unit::Integer | Unit::Shift | Unit::Branch | Unit::Multiply | Unit::Move => {
            Signal::StallInteger
        }
    }
}
