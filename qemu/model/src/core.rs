//! One processor core: fetch, data access, retirement, and the time that they take.
//!
//! Caches, translation buffers and predictors are followed access by access in program order; what
//! they answer costs time by one of two pipelines: `interval` (penalties, here and in `interval`)
//! or out of order (`crate::ooo`). Time is kept in slots, the pipeline's width to a cycle.

mod branches;
mod data;
mod fetch;
mod interval;

use crate::{
    Block, BranchKind, Counts, Geometry, Llc, Pipeline, Ring, STATIC_SIGNALS, Signal,
    block::fuses,
    branch::Predictor,
    cache::{Cache, NARROW, WIDE},
    ooo::Engine,
    signal::Lanes,
    tlb::Tlbs,
};

/// Static signals that are time as the interval pipeline sees it; the other one finds its own.
const TIMES: [Signal; 4] =
    [Signal::Slots, Signal::StallChain, Signal::StallSerialize, Signal::StallDivider];

/// One access to memory by an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Virtual address.
    pub address: u64,
    /// Size in bytes, a power of two. Only the out-of-order pipeline, for store forwarding, wants
    /// to know it of accesses that cannot cross a line.
    pub bytes: u64,
    /// Whether it is the instruction's first access of its kind: later parts of the same load or
    /// store move data but retire nothing.
    pub retires: bool,
    /// Whether it is a load whose address hangs on what it loaded the last time, so that nothing
    /// hides its latency.
    pub chases: bool,
    /// The instruction's index in its block.
    pub insn: usize,
}

impl Access {
    #[inline]
    fn ends_in_line(self) -> bool {
        (self.address & 63) + self.bytes <= 64
    }
}

/// Where data came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    L1,
    L2,
    Llc,
    Memory,
}

impl Source {
    /// The signal of cycles without retirement behind it.
    pub(crate) fn stall(self) -> Signal {
        match self {
            Source::L1 => Signal::StallL1Hit,
            Source::L2 => Signal::StallL2Hit,
            Source::Llc => Signal::StallL3Hit,
            Source::Memory => Signal::StallMemory,
        }
    }
}

/// A core: its caches, buffers and predictors, and everything it has counted.
#[derive(Clone, Debug)]
pub struct Core {
    /// What is counted, but for what is still in `lanes`, `outcomes` and `parted`.
    counts: [Counts; 2],
    /// Static counts of the last blocks, and how many more there is room for.
    lanes: [Lanes; 2],
    lanes_left: u16,
    /// Conditional branches: right and not taken, right and taken, wrong and not, wrong and taken.
    outcomes: [[u64; 4]; 2],
    /// Fused pairs that blocks' edges part: each is one micro-operation less than is counted.
    parted: [u64; 2],
    clock: u64,
    l1i: Cache<NARROW>,
    l1d: Cache<NARROW>,
    l2: Cache<WIDE>,
    llc: Llc,
    tlbs: Tlbs,
    /// The virtual line of data touched last: it is the most recent everywhere, so touching it
    /// again changes nothing. Never set where the pipeline wants to see every access.
    touched: u64,
    /// All ones where it does.
    sees_all: u64,
    predictor: Predictor,
    /// The line of code fetched last.
    fetched: u64,
    /// The virtual page of code fetched from last.
    fetched_page: u64,
    /// How many lines of the running block have been fetched. Lines are fetched when the first
    /// instruction in them is known to run, so that code and data reach shared structures in the
    /// same order however the stream is cut into blocks.
    lines_done: u32,
    /// The conditions that the last instruction retired fuses with.
    fuses_with: u16,
    /// The space that page-table entries are told apart by.
    space: u64,
    uops: u64,
    /// How many of the running block's instructions have retired.
    settled: usize,
    /// Until this many micro-operations have retired, a long miss hides behind an earlier one.
    shadow_ends_uops: u64,
    engine: Option<Box<Engine>>,
    geometry: Geometry,
}

impl Core {
    /// A core at rest with nothing in its caches, alone in its machine.
    pub fn new(geometry: &Geometry) -> Core {
        Core::sharing(geometry, Llc::new(geometry.llc))
    }

    /// A core that shares the last-level cache with others.
    pub fn sharing(geometry: &Geometry, llc: Llc) -> Core {
        let cache = |level: crate::Level| Cache::new(level.sets, level.ways);
        let engine = match geometry.pipeline {
            Pipeline::Interval => None,
            Pipeline::OutOfOrder(mode) => Some(Box::new(Engine::new(geometry, mode))),
        };
        Core {
            touched: u64::MAX,
            sees_all: if engine.is_some() { u64::MAX } else { 0 },
            counts: [Counts::ZERO, Counts::ZERO],
            lanes: [Lanes::ZERO; 2],
            lanes_left: Lanes::BLOCKS,
            outcomes: [[0; 4]; 2],
            parted: [0; 2],
            clock: 0,
            l1i: cache(geometry.l1i),
            l1d: cache(geometry.l1d),
            l2: Cache::new(geometry.l2.sets, geometry.l2.ways),
            llc,
            tlbs: Tlbs::new(geometry),
            predictor: Predictor::new(geometry.returns),
            fetched: u64::MAX,
            fetched_page: u64::MAX,
            // No block is running.
            lines_done: u32::MAX,
            fuses_with: 0,
            space: 0,
            uops: 0,
            settled: 0,
            shadow_ends_uops: 0,
            engine,
            geometry: *geometry,
        }
    }

    /// What it has counted, by [`Ring`].
    #[inline]
    pub fn counts(&mut self) -> &[Counts; 2] {
        self.gather();
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

    /// Whether it wants every access's real size.
    #[inline]
    pub fn wants_sizes(&self) -> bool {
        self.sees_all != 0
    }

    /// A block ran to its end, and execution went on at `next_pc` (an address under the mapping at
    /// translation).
    #[inline(always)] // Called for every block, from one place that matters.
    pub fn retire(&mut self, block: &Block, next_pc: u64) {
        if block.line_count() > self.lines_done {
            self.fetch_rest(block, block.line_count());
        }
        let fused = self.fuses_with != 0 && self.fuse_over_edge(block);
        self.fuses_with = block.ends_with();
        match block.lanes() {
            Some(lanes) => self.add_lanes(block.ring, lanes),
            None => self.add_static(block.ring, block.counts()),
        }
        if self.engine.is_some() {
            self.run(block, 0..block.insns().len(), fused);
        }
        if block.branch.kind != BranchKind::None {
            self.resolve(block.ring, &block.branch, next_pc);
        }
    }

    /// Only the instructions of `range` of a block ran: it was left, or resumed, in the middle.
    pub fn retire_part(&mut self, block: &Block, range: std::ops::Range<usize>) {
        if range.is_empty() {
            return;
        }
        self.fetch_rest(block, block.lines_through(range.end - 1));
        let fused = range.start == 0 && self.fuse_over_edge(block);
        self.fuses_with = block.fuses_after(range.end - 1);
        let counts = block.partial_counts(range.clone());
        self.add_static(block.ring, &counts);
        self.settled = range.end;
        if self.engine.is_some() {
            self.run(block, range, fused);
        }
    }

    #[inline(always)] // As its caller.
    fn add_lanes(&mut self, ring: Ring, lanes: &Lanes) {
        self.lanes[ring as usize].add(lanes);
        self.lanes_left -= 1;
        if self.lanes_left == 0 {
            self.gather();
        }
        if self.engine.is_none() {
            self.clock += u64::from(lanes[Signal::Slots]);
            self.uops += u64::from(lanes[Signal::Uops]);
        }
    }

    #[cold]
    fn add_static(&mut self, ring: Ring, counts: &[u32; STATIC_SIGNALS]) {
        let mut counts = *counts;
        match self.engine {
            None => {
                self.clock += u64::from(counts[Signal::Slots as usize]);
                self.uops += u64::from(counts[Signal::Uops as usize]);
            }
            Some(_) => TIMES.iter().for_each(|signal| counts[*signal as usize] = 0),
        }
        self.counts[ring as usize].add_static(&counts);
    }

    /// Brings to the counts what waits beside them. Only between blocks, so that what is taken off
    /// has been added.
    #[inline(never)]
    fn gather(&mut self) {
        for (counts, lanes) in self.counts.iter_mut().zip(&mut self.lanes) {
            if self.engine.is_some() {
                TIMES.iter().for_each(|signal| lanes.forget(*signal));
            }
            counts.add_lanes(lanes);
            *lanes = Lanes::ZERO;
        }
        for (counts, outcomes) in self.counts.iter_mut().zip(&mut self.outcomes) {
            let [_, taken, wrong, wrong_taken] = std::mem::take(outcomes);
            counts[Signal::CondTaken] += taken + wrong_taken;
            counts[Signal::Taken] += taken + wrong_taken;
            counts[Signal::MispredictCond] += wrong + wrong_taken;
            counts[Signal::MispredictCondTaken] += wrong_taken;
        }
        for (counts, parted) in self.counts.iter_mut().zip(&mut self.parted) {
            let parted = std::mem::take(parted);
            counts[Signal::Fused] += parted;
            counts[Signal::Uops] -= parted;
            if self.engine.is_none() {
                counts[Signal::Slots] -= parted;
            }
        }
        self.lanes_left = Lanes::BLOCKS;
    }

    /// Where a block's edge parts a pair that fuses, the branch takes no slot; whether it does.
    #[cold]
    fn fuse_over_edge(&mut self, block: &Block) -> bool {
        if !fuses(self.fuses_with, block.begins_with()) {
            return false;
        }
        self.parted[block.ring as usize] += 1;
        if self.engine.is_none() {
            // The pair's first half has passed, so there is something to take them from.
            self.clock -= 1;
            self.uops -= 1;
        }
        true
    }

    /// Runs instructions through the out-of-order engine.
    fn run(&mut self, block: &Block, range: std::ops::Range<usize>, fused: bool) {
        let Some(engine) = &mut self.engine else { return };
        self.clock += engine.run(block, range, fused, &mut self.counts[block.ring as usize]);
    }

    /// The processor is busy for `cycles` with something that is no instruction: delivering an
    /// interrupt, say.
    pub fn serialize(&mut self, ring: Ring, cycles: u32) {
        self.fuses_with = 0;
        match &mut self.engine {
            None => self.stall(ring, Signal::StallSerialize, cycles),
            Some(engine) => self.clock += engine.idle(cycles, &mut self.counts[ring as usize]),
        }
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
        self.forget_places();
        self.tlbs.flush(global_too);
    }

    /// The translation of the page at `address` was thrown away.
    pub fn flush_page(&mut self, address: u64) {
        self.forget_places();
        self.tlbs.flush_page(address >> 12);
    }

    /// Nothing is at hand any more without asking a translation buffer.
    fn forget_places(&mut self) {
        self.fetched = u64::MAX;
        self.fetched_page = u64::MAX;
        self.touched = u64::MAX;
    }

    #[inline]
    fn bump(&mut self, ring: Ring, signal: Signal) {
        self.add(ring, signal, 1);
    }

    #[inline]
    fn add(&mut self, ring: Ring, signal: Signal, amount: u64) {
        self.counts[ring as usize][signal] += amount;
    }

    /// Time passes by the interval model.
    fn stall(&mut self, ring: Ring, cause: Signal, cycles: u32) {
        let slots = u64::from(cycles) * u64::from(self.geometry.width);
        self.add(ring, cause, u64::from(cycles));
        self.add(ring, Signal::Slots, slots);
        self.clock += slots;
    }
}

#[cfg(test)]
mod tests;
