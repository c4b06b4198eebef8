//! Retirement in bundles: a number of consecutive instructions that retire in one cycle, when the
//! last of them is complete (Azimi, Stumm and Wisniewski, ICS 2005, section 5.1; IBM's POWER4 and
//! POWER5 dispatch and retire such groups).
//!
//! A bundle ends when it is full, behind a branch, and before and behind an instruction that has
//! the pipeline to itself. It also ends before a load from an address that the bundle stores to:
//! the store reaches its queue only when the bundle retires. One bundle is dispatched in a cycle,
//! and one retires.

use super::{
    memory::StoreTimes,
    state::{Bundle, Engine, Touch},
    steps::Steps,
};
use crate::{block::Insn, counts::Counts, operation::Unit, signal::Signal, stacks::Watch};

impl Bundle {
    /// Returns whether an instruction of `uops` micro-operations cannot be added to the bundle. The
    /// second instruction of a fused pair has no micro-operation.
    fn ends_before(&self, insn: &Insn, uops: u8, touches: &[Touch]) -> bool {
        let overlaps = |load: &Touch| {
            let reaches = |from: u64, touch: &Touch| {
                from.wrapping_sub(touch.access.address) < touch.access.bytes.max(1)
            };
            let from = load.access.address;
            self.stores
                .iter()
                .any(|(_, store)| reaches(from, store) || reaches(store.access.address, load))
        };
        self.instructions > 0
            && (self.instructions >= self.most && uops > 0
                || is_alone(insn)
                || touches.iter().filter(|touch| !touch.store).any(overlaps))
    }
}

/// Returns whether an instruction has the pipeline to itself.
fn is_alone(insn: &Insn) -> bool {
    insn.serialize_cycles != 0
        || insn.string.is_some()
        || insn.adds >> Signal::Locked as u32 & 1 == 1
}

impl Engine {
    /// Retires the bundle if the next instruction cannot be added to it.
    #[inline]
    pub(super) fn end_bundle_before(
        &mut self,
        insn: &Insn,
        uops: u8,
        touches: &[Touch],
        counts: &mut Counts,
        watch: &mut impl Watch,
    ) {
        if self.bundle.is_on() && self.bundle.ends_before(insn, uops, touches) {
            self.retire_bundle(counts, watch);
        }
    }

    /// Adds an instruction of `uops` micro-operations to the bundle.
    pub(super) fn add_to_bundle<W: Watch>(
        &mut self,
        insn: &Insn,
        uops: u8,
        times: StoreTimes,
        touches: &[Touch],
        steps: Steps<'_, W>,
    ) {
        let bundle = &mut self.bundle;
        bundle.instructions += u8::from(uops > 0 || bundle.instructions == 0);
        bundle.uops += usize::from(uops);
        bundle.complete = bundle.complete.max(self.complete_at);
        for touch in touches {
            if touch.store {
                bundle.stores.push((times, *touch));
            } else {
                bundle.loads += 1;
            }
        }
        let (charged, counts, watch) = steps.suspend();
        bundle.charged = Some(charged);
        if insn.operation.unit == Unit::Branch || is_alone(insn) {
            self.retire_bundle(counts, watch);
        }
    }

    /// Retires the instructions of the bundle, if any.
    pub(super) fn retire_bundle<W: Watch>(&mut self, counts: &mut Counts, watch: &mut W) {
        let Some(charged) = self.bundle.charged.take() else { return };
        let retired = self.bundle.complete.max(self.retired_at) + 1;
        self.retire_at(retired, Steps::resume(charged, counts, watch));
        let uops = std::mem::take(&mut self.bundle.uops);
        self.free_reorder(uops);
        let mut stores = std::mem::take(&mut self.bundle.stores);
        for (times, store) in stores.drain(..) {
            self.commit(times, &[store], watch);
        }
        self.bundle.stores = stores;
        let loads = std::mem::take(&mut self.bundle.loads);
        (0..loads).for_each(|_| self.loads.take(self.retired_at));
        (self.bundle.instructions, self.bundle.complete) = (0, 0);
        self.dispatch.close();
    }

    /// Retires a partial bundle because no instruction follows for now; returns the slots that
    /// passed.
    pub(super) fn drain_bundle(&mut self, counts: &mut Counts) -> u64 {
        let before = self.charged_to();
        match self.stacks.take() {
            None => self.retire_bundle(counts, &mut ()),
            Some(mut stacks) => {
                self.retire_bundle(counts, &mut *stacks);
                self.stacks = Some(stacks);
            }
        }
        self.pass(before, counts)
    }

    /// The last cycle that is charged.
    pub(super) fn charged_to(&self) -> u64 {
        self.bundle.charged.map_or(self.retired_at, |charged| charged.last())
    }
}
