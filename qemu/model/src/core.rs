//! One processor core: fetch, data access, retirement, and the time that they take.
//!
//! Time is kept in slots, the pipeline's width to a cycle: every fused micro-operation takes one,
//! and each penalty takes its cycles times the width. Penalties of long misses overlap: a miss in
//! the shadow of an earlier one, less than a reorder buffer behind it, costs only its share of the
//! memory's bandwidth. This is the interval model of Eyerman, Eeckhout et al. (TOCS 27:2, 2009) in
//! its simplest form.

use std::sync::Arc;

use crate::{
    Block, Branch, BranchKind, Counts, Geometry, Ring, Signal,
    block::StaticCounts,
    branch::Predictor,
    cache::{Cache, NARROW, Shared, WIDE},
    tlb::Tlbs,
};

/// The last-level cache, which cores share.
#[derive(Debug)]
pub struct LastLevel(Shared);

impl LastLevel {
    /// With nothing in it.
    pub fn new(geometry: &Geometry) -> Arc<LastLevel> {
        Arc::new(LastLevel(Shared::new(geometry.llc.sets, geometry.llc.ways)))
    }
}

/// A core: its caches, buffers and predictors, and everything it has counted.
#[derive(Clone, Debug)]
pub struct Core {
    counts: [Counts; 2],
    clock: u64,
    l1i: Cache<NARROW>,
    l1d: Cache<NARROW>,
    l2: Cache<WIDE>,
    llc: Arc<LastLevel>,
    tlbs: Tlbs,
    /// The virtual line of data touched last: it is the most recent everywhere, so touching it
    /// again changes nothing.
    touched: u64,
    predictor: Predictor,
    /// The line of code fetched last.
    fetched: u64,
    /// The virtual page of code fetched from last.
    fetched_page: u64,
    /// The space that page-table entries are told apart by.
    space: u64,
    uops: u64,
    /// Until this many micro-operations have retired, a long miss hides behind an earlier one.
    shadow_ends_uops: u64,
    geometry: Geometry,
}

impl Core {
    /// A core at rest with nothing in its caches, before this last level.
    pub fn new(geometry: &Geometry, llc: &Arc<LastLevel>) -> Core {
        let cache = |level: crate::Level| Cache::new(level.sets, level.ways);
        Core {
            touched: u64::MAX,
            counts: [Counts::ZERO, Counts::ZERO],
            clock: 0,
            l1i: cache(geometry.l1i),
            l1d: cache(geometry.l1d),
            l2: Cache::new(geometry.l2.sets, geometry.l2.ways),
            llc: llc.clone(),
            tlbs: Tlbs::new(geometry),
            predictor: Predictor::new(),
            fetched: u64::MAX,
            fetched_page: u64::MAX,
            space: 0,
            uops: 0,
            shadow_ends_uops: 0,
            geometry: *geometry,
        }
    }

    /// What it has counted, by [`Ring`].
    #[inline]
    pub fn counts(&self) -> &[Counts; 2] {
        &self.counts
    }

    /// Slots that have passed, in any ring.
    #[inline]
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// The machine that it is.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// A block ran to its end, and execution went on at `next_pc` (an address under the mapping at
    /// translation).
    #[inline]
    pub fn retire(&mut self, block: &Block, next_pc: u64) {
        self.retire_counts(block.ring, block.counts());
        if block.branch.kind != BranchKind::None {
            self.resolve(block.ring, &block.branch, next_pc);
        }
    }

    /// Only the instructions of `range` of a block ran: it was left, or resumed, in the middle.
    pub fn retire_part(&mut self, block: &Block, range: std::ops::Range<usize>) {
        self.retire_counts(block.ring, &block.partial_counts(range));
    }

    #[inline]
    fn retire_counts(&mut self, ring: Ring, counts: &StaticCounts) {
        let acc = &mut self.counts[ring as usize];
        acc.add_common(&counts.common);
        if counts.has_rare {
            acc.add_rare(&counts.rare);
        }
        self.clock += counts.common[Signal::Slots as usize];
        self.uops += counts.common[Signal::Uops as usize];
    }

    /// The branch at a block's end went to `next_pc`.
    #[inline]
    pub fn resolve(&mut self, ring: Ring, branch: &Branch, next_pc: u64) {
        if branch.kind != BranchKind::Cond {
            return self.resolve_unconditional(ring, branch, next_pc);
        }
        // The block may have run under another mapping of its page than it was translated under,
        // so only offsets in the page tell a branch that was not taken.
        let taken = (next_pc ^ branch.fall_through) & 0xfff != 0;
        let wrong = self.predictor.conditional(branch.pc, taken);
        let counts = &mut self.counts[ring as usize];
        counts[Signal::CondTaken] += u64::from(taken);
        counts[Signal::Taken] += u64::from(taken);
        counts[Signal::MispredictCond] += u64::from(wrong);
        counts[Signal::MispredictCondTaken] += u64::from(wrong & taken);
        if wrong {
            self.mispredicted(ring);
        }
    }

    fn resolve_unconditional(&mut self, ring: Ring, branch: &Branch, next_pc: u64) {
        let predictor = &mut self.predictor;
        let counts = &mut self.counts[ring as usize];
        let wrong = match branch.kind {
            BranchKind::None => return,
            BranchKind::Jump | BranchKind::Cond => false,
            BranchKind::Call => {
                predictor.call(branch.fall_through);
                false
            }
            BranchKind::IndirectJump => predictor.indirect(branch.pc, next_pc),
            BranchKind::IndirectCall => {
                predictor.call(branch.fall_through);
                let wrong = predictor.indirect(branch.pc, next_pc);
                counts[Signal::MispredictIndirectCall] += u64::from(wrong);
                wrong
            }
            BranchKind::Return => predictor.ret(next_pc),
        };
        counts[Signal::Taken] += 1;
        if wrong {
            let kind = match branch.kind {
                BranchKind::Return => Signal::MispredictReturn,
                _ => Signal::MispredictIndirect,
            };
            counts[kind] += 1;
            self.mispredicted(ring);
        }
    }

    fn mispredicted(&mut self, ring: Ring) {
        self.bump(ring, Signal::Mispredicts);
        self.stall(ring, Signal::StallMispredict, self.geometry.latency.mispredict_cycles);
    }

    /// The processor is busy for `cycles` with something that is no instruction: delivering an
    /// interrupt, say.
    pub fn serialize(&mut self, ring: Ring, cycles: u32) {
        self.stall(ring, Signal::StallSerialize, cycles);
    }

    /// An interrupt or exception was delivered.
    pub fn interrupt(&mut self, cycles: u32) {
        self.bump(Ring::Kernel, Signal::Interrupts);
        self.serialize(Ring::Kernel, cycles);
    }

    /// The address space is now `space`, the page number of its top table; translations of the
    /// old one go.
    pub fn switch_space(&mut self, space: u64) {
        self.space = space & 0x3fff;
        self.flush(false);
    }

    /// Translations were thrown away: all but the kernel's, or all.
    pub fn flush(&mut self, global_too: bool) {
        self.bump(Ring::Kernel, Signal::TlbFlushes);
        self.fetched = u64::MAX;
        self.fetched_page = u64::MAX;
        self.touched = u64::MAX;
        self.tlbs.flush(global_too);
    }

    /// The translation of the page at `address` was thrown away.
    pub fn flush_page(&mut self, address: u64) {
        self.fetched = u64::MAX;
        self.fetched_page = u64::MAX;
        self.touched = u64::MAX;
        self.tlbs.flush_page(address >> 12);
    }

    #[inline]
    fn bump(&mut self, ring: Ring, signal: Signal) {
        self.add(ring, signal, 1);
    }

    #[inline]
    fn add(&mut self, ring: Ring, signal: Signal, amount: u64) {
        self.counts[ring as usize][signal] += amount;
    }

    fn stall(&mut self, ring: Ring, cause: Signal, cycles: u32) {
        let slots = u64::from(cycles) * u64::from(self.geometry.width);
        self.add(ring, cause, u64::from(cycles));
        self.add(ring, Signal::Slots, slots);
        self.clock += slots;
    }
}

pub(crate) mod memory;
#[cfg(test)]
mod tests;
