//! Accesses of repeated string instructions, and their time, which is the same in both pipelines:
//! the instruction has the pipeline to itself.

use super::{
    activity,
    data::{Touched, crossed, walked},
    state::Core,
    string_run::{StringAccess, StringRun},
};
use crate::{
    access::{Access, Ahead, ServedBy},
    block::{Block, Privilege},
    cost::PARTS,
    ooo::Alone,
    prefetch::IN_FLIGHT,
    signal::Signal,
    strings::{Passing, StringKind},
};

impl Core {
    /// Fast path of [`Core::access`] for an access in one line by the last instruction of `block`,
    /// a repeated string instruction: it touched the line just before, so that only counts change.
    /// Returns whether it applied; if not, nothing has changed.
    #[inline]
    pub fn access_string_again<const STORE: bool>(&mut self, block: &Block, address: u64) -> bool {
        let again =
            self.string.has_touched(address >> 6, STORE) && self.string.of == string_of(block);
        if again {
            self.string.accesses += 1;
            if !self.geometry.string_is_one_access {
                self.served::<STORE>(block.ring, true, ServedBy::L1);
            }
        }
        again
    }

    /// Handles an access of the repeated string instruction at the end of `block`.
    #[cold]
    #[inline(never)]
    pub(super) fn access_string<const STORE: bool>(
        &mut self,
        block: &Block,
        access: Access,
        translate: &impl Fn(u64) -> u64,
    ) {
        let Some(kind) = block.insns().last().and_then(|last| last.string) else { return };
        if self.string.of != string_of(block) {
            // If an interrupt ended the previous instruction, only the accesses after it count.
            self.string = string_of(block).map(StringRun::new).unwrap_or_default();
        }
        self.string.accesses += 1;
        let mut whole = self.touch_string::<STORE>(block, kind, access, translate);
        if !access.ends_in_line() {
            let rest = self.touch_string::<STORE>(block, kind, access.behind_line(), translate);
            whole.walks |= rest.walks;
            whole.crosses = true;
        }
        if self.geometry.string_is_one_access {
            self.string.kinds[usize::from(STORE)].merge(whole);
        } else {
            self.count_string::<STORE>(block.ring, whole);
        }
    }

    /// Touches the line of an access, with its time unless the instruction touched it just before.
    fn touch_string<const STORE: bool>(
        &mut self,
        block: &Block,
        kind: StringKind,
        access: Access,
        translate: &impl Fn(u64) -> u64,
    ) -> StringAccess {
        let line = access.address >> 6;
        if self.string.has_touched(line, STORE) {
            return StringAccess { by: Some(ServedBy::L1), ..StringAccess::default() };
        }
        self.string.touch(line, STORE);
        self.ahead.clear();
        self.string.is_touching = true;
        let touched = self.look_up::<STORE>(block, access, translate);
        self.string.is_touching = false;
        self.pass_line::<STORE>(block.ring, kind, touched);
        let Touched { by, walks, .. } = touched;
        StringAccess { by: Some(by), walks, crosses: false }
    }

    /// Passes a new line: the start before it, its translation, then its elements, or its way to
    /// the L1 if that takes longer.
    fn pass_line<const STORE: bool>(
        &mut self,
        ring: Privilege,
        kind: StringKind,
        Touched { by, walk_cycles, .. }: Touched,
    ) {
        self.string.new_lines = self.string.new_lines.saturating_add(1);
        let start = self.geometry.strings.start(kind, self.string.new_lines);
        self.pass::<STORE>(ring, Signal::StallSerialize, start);
        let accesses = std::mem::take(&mut self.string.accesses);
        let walk = Passing { parts: walk_cycles * PARTS, uops: 0 };
        self.pass::<STORE>(ring, Signal::StallDtlb, walk);
        let passing = self.geometry.strings.pass(kind, accesses);
        let way = self.parts_on_the_way(by);
        let (cause, parts) = if way > passing.parts {
            (self.furthest(by).stall(), way)
        } else {
            (Signal::StallSerialize, passing.parts)
        };
        self.pass::<STORE>(ring, cause, Passing { parts, ..passing });
    }

    /// The furthest level from which a line is on its way to the L1.
    fn furthest(&self, by: ServedBy) -> ServedBy {
        self.ahead.iter().fold(by, |furthest, ahead| furthest.max(ahead.by))
    }

    /// The time in which a line that `by` serves, and those that prefetchers request with it,
    /// arrive: as long as others are on their way too, they take turns.
    fn parts_on_the_way(&self, by: ServedBy) -> u32 {
        let fill_buffers = u32::from(self.geometry.backend.fill_buffers);
        let turn = |by, in_flight| match by {
            ServedBy::L1 => 0,
            by => self.latency(by) * PARTS / in_flight,
        };
        let ahead =
            |ahead: &Ahead| turn(ahead.by, if ahead.into_l1 { fill_buffers } else { IN_FLIGHT });
        turn(by, fill_buffers) + self.ahead.iter().map(ahead).sum::<u32>()
    }

    /// Charges time and micro-operations of the instruction.
    fn pass<const STORE: bool>(&mut self, ring: Privilege, cause: Signal, passing: Passing) {
        let width = u64::from(self.geometry.width);
        let (cycles, uops) = self.string.owe(passing.parts, passing.uops, width);
        if cycles == 0 {
            return;
        }
        self.add(ring, Signal::Uops, uops);
        self.add(ring, Signal::UopsMicrocode, uops);
        let pc = self.string.of.map(|(pc, _)| pc);
        let alone = Alone { cycles, cause, uops, is_store: STORE, pc };
        if !self.is_out_of_order {
            self.stall_alone(ring, alone);
        } else if let Some(engine) = &mut self.engine {
            self.clock += engine.enter(ring, &mut self.counts);
            self.clock += engine.occupy(alone, &mut self.counts[ring as usize]);
        }
    }

    /// Advances the interval pipeline. What its samples know is not of these cycles, so they are
    /// attributed here.
    fn stall_alone(&mut self, ring: Privilege, alone: Alone) {
        let Alone { cycles, cause, uops, is_store, .. } = alone;
        let slots = u64::from(cycles) * u64::from(self.geometry.width);
        self.stall(ring, cause, cycles);
        if alone.is_behind_memory() {
            self.add(ring, Signal::SlotsMemory, slots - uops);
        }
        let kind = activity::waiting(alone.is_behind_memory(), is_store);
        self.active[ring as usize][kind] += u64::from(cycles);
        if let Some(sampler) = &mut self.sampler {
            sampler.leave_out(slots);
        }
    }

    /// Counts the accesses of the repeated string instruction at the end of `block`, which retires.
    #[cold]
    pub(super) fn retire_string(&mut self, block: &Block) {
        if self.string.of.is_none() || self.string.of != string_of(block) {
            return;
        }
        let Some(kind) = block.insns().last().and_then(|last| last.string) else { return };
        let passing = self.geometry.strings.finish(kind, self.string.accesses);
        self.pass::<false>(block.ring, Signal::StallSerialize, passing);
        let [loads, stores] = std::mem::take(&mut self.string).kinds;
        self.count_string::<false>(block.ring, loads);
        self.count_string::<true>(block.ring, stores);
    }

    fn count_string<const STORE: bool>(&mut self, ring: Privilege, all: StringAccess) {
        let Some(by) = all.by else { return };
        self.served::<STORE>(ring, true, by);
        if all.crosses {
            self.bump(ring, crossed::<STORE>());
        }
        if all.walks {
            self.bump(ring, walked::<STORE>());
        }
    }
}

/// The address and the ring of the instruction at the end of a block.
#[inline]
fn string_of(block: &Block) -> Option<(u64, Privilege)> {
    block.insns().last().map(|last| (last.pc, block.ring))
}
