//! A core's state: its structures, and its counts.

use super::{
    activity::{self, Cycles, KINDS},
    exposure::{CAUSES, LOST},
    path::WrongPath,
    sampler::{Domain, Sampler},
    string_run::StringRun,
};
use crate::{
    access::{Ahead, DataAccess, FetchedLine, Noted},
    assist::{Assist, ENTRIES},
    block::Privilege,
    branch::Predictor,
    cache::{Cache, NARROW, WIDE},
    counts::{Counts, Lanes},
    decode::Decode,
    geometry::{CacheShape, Geometry, Pipeline},
    llc::Llc,
    ooo::Engine,
    page::{PageSize, PageSizes},
    prefetch::{Prefetch, Prefetchers},
    signal::Signal,
    stacks::charge_products,
    tlb::{FRAME_BITS, Tlbs},
};

/// Bits of a physical line number.
pub(crate) const LINE_BITS: u32 = FRAME_BITS + 6;

/// Bits of the line numbers that stand for page-table entries.
pub(crate) const WALK_LINE_BITS: u32 = 42;

/// Static signals that are times of the interval pipeline; the out-of-order pipeline computes these
/// signals itself.
pub(super) const TIMES: [Signal; 2] = [Signal::Slots, Signal::StallSerialize];

/// A core: its caches, TLBs and predictors, and all its counts.
#[derive(Clone, Debug)]
pub struct Core {
    /// The counts, without those still in `lanes`, `outcomes` and `split_pairs`.
    pub(super) counts: [Counts; 2],
    /// Static counts of the last blocks, and the number of further blocks that fit.
    pub(super) lanes: [Lanes; 2],
    pub(super) lanes_left: u16,
    /// Conditional branches: right and not taken, right and taken, wrong and not taken, wrong and
    /// taken.
    pub(super) outcomes: [[u64; 4]; 2],
    /// Fused pairs that a block's edge separates: each is one micro-operation fewer than counted.
    pub(super) split_pairs: [u64; 2],
    pub(super) clock: u64,
    /// Slots of the clock that were charged for the last misprediction, in pipeline `interval`.
    pub(super) recovery: u64,
    pub(super) l1i: Cache<NARROW>,
    pub(super) l1d: Cache<NARROW>,
    pub(super) l2: Cache<WIDE>,
    pub(super) llc: Llc,
    pub(super) tlbs: Tlbs,
    /// The virtual line of data accessed last. It is the most recent in all structures, so that
    /// another access changes nothing. Never set while every access is needed.
    pub(super) touched: u64,
    /// All ones if the pipeline, prefetchers or other cores need every access; else 0.
    pub(super) all_accesses: u64,
    /// Whether other cores run beside this one on the same instruction stream.
    pub(super) has_others: bool,
    /// The access of the running instruction, for precise records.
    pub(super) noted: Noted,
    /// Cycles of latency above which a load is slow.
    pub(super) slow_load_cycles: u32,
    pub(super) predictor: Predictor,
    /// Whether the last branch was taken, not mispredicted, and unknown to fetch until decoded.
    pub(super) is_resteered: bool,
    /// The decoders, if they are modelled.
    pub(super) decode: Option<Box<Decode>>,
    /// The wrong path behind mispredicted branches, if wrong paths are modelled.
    pub(super) wrong_path: Option<Box<WrongPath>>,
    /// The line of code fetched last.
    pub(super) fetched: u64,
    /// The virtual page of code fetched from last.
    pub(super) fetched_page: u64,
    /// The size of `fetched_page`.
    pub(super) fetched_size: PageSize,
    /// The source of page sizes, if large pages are modelled.
    pub(super) page_sizes: PageSizes,
    /// Lines of the running block that have been fetched. A line is fetched when its first
    /// instruction is known to run. So the order in which code and data access shared structures
    /// does not depend on how the stream is divided into blocks.
    pub(super) lines_done: u32,
    /// The condition codes that the last retired instruction fuses with.
    pub(super) fuses_with: u16,
    /// The number of the address space, for the addresses of page-table entries.
    pub(super) space: u64,
    /// The ring of the running block.
    pub(super) ring: Privilege,
    /// The repeated string instruction that runs.
    pub(super) string: StringRun,
    /// The out-of-order engine: the pipeline's, or during a sample the interval pipeline's.
    pub(super) engine: Option<Box<Engine>>,
    /// Whether the engine determines the time.
    pub(super) is_out_of_order: bool,
    /// The interval pipeline's sampler of the running domain, and those of other domains.
    pub(super) sampler: Option<Sampler>,
    pub(super) other_samplers: Vec<Sampler>,
    /// Cycles by which blocks' costs advanced the clock, by ring and cause, the last entry without
    /// a stall; not yet in `counts`.
    pub(super) costs_charged: [[u64; CAUSES + 1]; 2],
    /// Cycles whose slots were lost, by ring and cause; not yet in `counts`. The entry of the last
    /// cause is not read: that cause gets the slots that the others leave.
    pub(super) slots_charged: [[u64; LOST]; 2],
    /// The interval pipeline's cycles by activity and ring, as far as they are attributed.
    pub(super) active: [Cycles; 2],
    /// The hardware prefetchers, if any.
    pub(super) prefetch: Option<Box<Prefetch>>,
    /// Prefetch requests of the present access, if it is timed: by the engine, or as one of a
    /// string instruction.
    pub(super) ahead: Vec<Ahead>,
    pub(super) geometry: Geometry,
}

impl Core {
    /// Makes a core with empty caches, alone in its machine.
    pub fn new(geometry: &Geometry) -> Core {
        Core::sharing(geometry, Llc::new(geometry.llc))
    }

    /// Makes a core that shares the last-level cache with others.
    #[expect(clippy::too_many_lines, reason = "one value of many fields")]
    pub fn sharing(geometry: &Geometry, llc: Llc) -> Core {
        let cache = |level: CacheShape| Cache::new(level.sets, level.ways);
        let engine = engine_of(geometry);
        let prefetch = prefetch_of(geometry).map(Box::new);
        let sampler = || Sampler::new(geometry, Domain::of(Privilege::User, 0));
        Core {
            touched: u64::MAX,
            all_accesses: if engine.is_some() || prefetch.is_some() { u64::MAX } else { 0 },
            has_others: false,
            noted: Noted::default(),
            slow_load_cycles: u32::MAX,
            counts: [Counts::ZERO, Counts::ZERO],
            lanes: [Lanes::ZERO; 2],
            lanes_left: Lanes::BLOCKS,
            outcomes: [[0; 4]; 2],
            split_pairs: [0; 2],
            clock: 0,
            recovery: 0,
            l1i: cache(geometry.l1i),
            l1d: cache(geometry.l1d),
            l2: Cache::new(geometry.l2.sets, geometry.l2.ways),
            llc,
            tlbs: Tlbs::new(geometry),
            predictor: Predictor::new(geometry),
            is_resteered: false,
            decode: Decode::of(geometry),
            wrong_path: WrongPath::of(geometry),
            fetched: u64::MAX,
            fetched_page: u64::MAX,
            fetched_size: PageSize::Small,
            page_sizes: PageSizes::SMALL,
            // No block is running.
            lines_done: u32::MAX,
            fuses_with: 0,
            space: 0,
            ring: Privilege::User,
            string: StringRun::default(),
            is_out_of_order: engine.is_some(),
            sampler: engine.is_none().then(sampler),
            other_samplers: Vec::new(),
            costs_charged: [[0; CAUSES + 1]; 2],
            slots_charged: [[0; LOST]; 2],
            active: [[0; KINDS]; 2],
            engine,
            prefetch,
            ahead: Vec::with_capacity(16),
            geometry: *geometry,
        }
    }

    /// Enables leading: other cores run beside this one on the same stream, and need every access.
    pub fn lead_others(&mut self) {
        self.has_others = true;
        self.follow_accesses();
    }

    /// Makes the core note each instruction's access and each fetch, or no longer. It then needs
    /// every access.
    pub fn note_data(&mut self, is_on: bool) {
        if self.noted.is_on != is_on {
            self.noted = Noted::new(is_on);
            self.follow_accesses();
        }
    }

    /// Sets the latency above which loads count as [`Signal::SlowLoads`](crate::Signal); `None` for
    /// none.
    pub fn set_slow_loads(&mut self, above_cycles: Option<u32>) {
        let above_cycles = above_cycles.unwrap_or(u32::MAX);
        if self.slow_load_cycles != above_cycles {
            self.slow_load_cycles = above_cycles;
            self.follow_accesses();
        }
    }

    /// Takes the noted access of the instruction with this index in its block.
    pub fn take_data(&mut self, insn: usize) -> Option<DataAccess> {
        self.noted.take(insn)
    }

    /// Takes the noted fetch since the last call; of several the last one.
    pub fn take_fetch(&mut self) -> Option<FetchedLine> {
        self.noted.fetched.take()
    }

    /// The counts, by [`Privilege`].
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

    /// Slots that had passed when the last branch, which `is_wrong` if it was mispredicted,
    /// retired: the pipeline fills again afterwards.
    pub fn clock_at_branch(&self, is_wrong: bool) -> u64 {
        self.clock - if is_wrong { self.recovery } else { 0 }
    }

    /// Cycles from the dispatch of the last instruction to its retirement; `None` in a pipeline
    /// that does not know them.
    pub fn flight_cycles(&self) -> Option<u64> {
        let engine = self.engine.as_ref().filter(|_| self.is_out_of_order);
        engine.and_then(|engine| engine.flight_cycles())
    }

    /// The core's parameters.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns whether the core needs the size of every access.
    #[inline]
    pub fn needs_sizes(&self) -> bool {
        self.all_accesses != 0
    }

    /// Sets the source of page sizes. Without large pages in the geometry it is not used.
    pub fn set_page_sizes(&mut self, sizes: PageSizes) {
        if self.geometry.has_large_pages {
            self.page_sizes = sizes;
        }
    }

    /// Turns prefetchers on and off, if there are any; their state stays.
    pub fn set_prefetchers(&mut self, on: Prefetchers) {
        if let Some(prefetch) = &mut self.prefetch {
            prefetch.on = on;
        }
    }

    /// Adds the separately collected sums to the counts. Must be called between blocks: then every
    /// amount that is subtracted was added before.
    #[inline(never)]
    pub(super) fn gather(&mut self) {
        for (counts, lanes) in self.counts.iter_mut().zip(&mut self.lanes) {
            if self.is_out_of_order {
                TIMES.iter().for_each(|signal| lanes.clear(*signal));
            }
            counts.add_lanes(lanes);
            *lanes = Lanes::ZERO;
        }
        let outcomes = self.counts.iter_mut().zip(&mut self.outcomes);
        outcomes.for_each(|(counts, outcomes)| add_outcomes(counts, std::mem::take(outcomes)));
        for (counts, split_pairs) in self.counts.iter_mut().zip(&mut self.split_pairs) {
            let split_pairs = std::mem::take(split_pairs);
            counts[Signal::Fused] += split_pairs;
            counts[Signal::Uops] -= split_pairs;
            if !self.is_out_of_order {
                counts[Signal::Slots] -= split_pairs;
            }
        }
        if self.decode.is_none() {
            self.counts.iter_mut().for_each(decode_all);
        }
        let width = u64::from(self.geometry.width);
        for (counts, charged) in self.counts.iter_mut().zip(&mut self.costs_charged) {
            let charged = std::mem::take(charged);
            counts[Signal::Slots] += charged.iter().sum::<u64>() * width;
            Signal::STALLS.iter().zip(charged).for_each(|(cause, cycles)| counts[*cause] += cycles);
        }
        if let Some(sampler) = &self.sampler {
            let charged = self.counts.iter_mut().zip(&mut self.slots_charged);
            charged.for_each(|(counts, charged)| charge_slots(counts, charged, width));
            let mut active = self.active;
            sampler.add_active(self.clock, width, &mut active);
            let rings = active.iter().zip(&mut self.counts);
            rings.for_each(|(active, counts)| activity::store(active, counts));
        } else if self.geometry.stacks {
            self.counts.iter_mut().for_each(|counts| charge_products(counts, &self.geometry));
        }
        self.lanes_left = Lanes::BLOCKS;
    }

    #[inline]
    pub(super) fn bump(&mut self, ring: Privilege, signal: Signal) {
        self.add(ring, signal, 1);
    }

    #[inline]
    pub(super) fn add(&mut self, ring: Privilege, signal: Signal, amount: u64) {
        self.counts[ring as usize][signal] += amount;
    }

    /// Advances the time of the interval pipeline.
    pub(super) fn stall(&mut self, ring: Privilege, cause: Signal, cycles: u32) {
        let slots = u64::from(cycles) * u64::from(self.geometry.width);
        self.add(ring, cause, u64::from(cycles));
        self.add(ring, Signal::Slots, slots);
        self.clock += slots;
    }
}

/// Makes the engine, if it determines the time.
fn engine_of(geometry: &Geometry) -> Option<Box<Engine>> {
    match geometry.pipeline {
        Pipeline::Interval => None,
        Pipeline::OutOfOrder(mode) => Some(Box::new(Engine::new(geometry, mode))),
    }
}

/// Makes the core's prefetchers: the processor's, and the table's if it assists the data cache.
fn prefetch_of(geometry: &Geometry) -> Option<Prefetch> {
    let of = |on| Prefetch::new(on, geometry.prefetches_both_ways);
    match (geometry.prefetch, geometry.assist) {
        (on, Some(Assist::Data)) => {
            let on = Prefetchers { l1_stride: true, ..on.unwrap_or_default() };
            Some(of(on).with_table(ENTRIES))
        }
        (on, _) => on.map(of),
    }
}

/// Adds conditional branches: right and not taken, right and taken, wrong and not taken, wrong and
/// taken.
fn add_outcomes(counts: &mut Counts, [not_taken, taken, wrong, wrong_taken]: [u64; 4]) {
    counts[Signal::CondNotTaken] += not_taken + wrong;
    counts[Signal::MispredictCondNotTaken] += wrong;
    counts[Signal::CondTaken] += taken + wrong_taken;
    counts[Signal::Taken] += taken + wrong_taken;
    counts[Signal::MispredictCond] += wrong + wrong_taken;
    counts[Signal::MispredictCondTaken] += wrong_taken;
}

/// Counts as decoded all micro-operations except microcode, for a core without a cache of them.
fn decode_all(counts: &mut Counts) {
    counts[Signal::UopsDecoded] = counts[Signal::Uops] - counts[Signal::UopsMicrocode];
}

/// Charges lost slots of the interval pipeline. It delays whole cycles. Slots that have neither a
/// micro-operation nor another cause go to the last cause.
fn charge_slots(counts: &mut Counts, charged: &mut [u64; LOST], width: u64) {
    let (last, others) = Signal::LOST_SLOTS.split_last().expect("there are causes");
    let mut used = counts[Signal::Uops];
    for (cause, cycles) in others.iter().zip(std::mem::take(charged)) {
        counts[*cause] += cycles * width;
        used += counts[*cause];
    }
    counts[*last] = counts[Signal::Slots] - used;
}
