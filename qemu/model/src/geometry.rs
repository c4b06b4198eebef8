//! The parameters of a modelled processor: structures, latencies, pipeline, perfect structures.

use crate::{
    assist::Assist, operation::Unit, perfect::Perfect, prefetch::Prefetchers, strings::StringShape,
};

/// Sets and ways of a cache of 64-byte lines.
#[derive(Clone, Copy, Debug)]
pub struct CacheShape {
    /// Sets, a power of two.
    pub sets: u32,
    /// Ways.
    pub ways: u32,
}

impl CacheShape {
    /// Capacity in bytes.
    pub const fn bytes(self) -> u64 {
        self.sets as u64 * self.ways as u64 * 64
    }

    /// Returns the shape with half of the ways.
    fn half(self) -> CacheShape {
        CacheShape { ways: self.ways / 2, ..self }
    }
}

/// Sets and ways of a TLB.
#[derive(Clone, Copy, Debug)]
pub struct TlbShape {
    /// Sets, a power of two.
    pub sets: u32,
    /// Ways.
    pub ways: u32,
}

impl TlbShape {
    /// Returns the shape with half of the ways.
    fn half(self) -> TlbShape {
        TlbShape { ways: self.ways / 2, ..self }
    }
}

/// Entries of a TLB for pages of one large size.
#[derive(Clone, Copy, Debug)]
pub enum LargeEntries {
    /// Shared with 4 KiB pages, without limit.
    Shared,
    /// Shared with 4 KiB pages, in at most half of the ways of a set.
    SharedHalf,
    /// Separate entries.
    Own(TlbShape),
    /// No entries: a page takes an entry of the next smaller size for each part that is accessed.
    Parts,
}

impl LargeEntries {
    fn half(self) -> LargeEntries {
        match self {
            LargeEntries::Own(shape) => LargeEntries::Own(shape.half()),
            shared => shared,
        }
    }
}

/// A TLB's entries for large pages: of 2 MiB and of 1 GiB.
pub type LargeTlb = [LargeEntries; 2];

/// Entries for large pages in each TLB of a core.
#[derive(Clone, Copy, Debug)]
pub struct LargePages {
    /// The first-level instruction TLB.
    pub itlb: LargeTlb,
    /// The first-level data TLB.
    pub dtlb: LargeTlb,
    /// The second-level TLB for data, and for code too if there is no separate one.
    pub stlb: LargeTlb,
    /// The second-level TLB for code, if it is separate.
    pub stlb_code: LargeTlb,
}

impl LargePages {
    /// Returns the entries with half of the ways.
    fn half(self) -> LargePages {
        let half = |tlb: LargeTlb| tlb.map(LargeEntries::half);
        LargePages {
            itlb: half(self.itlb),
            dtlb: half(self.dtlb),
            stlb: half(self.stlb),
            stlb_code: half(self.stlb_code),
        }
    }
}

/// Sets and ways of a branch target buffer.
#[derive(Clone, Copy, Debug)]
pub struct BufferShape {
    /// Sets, a power of two.
    pub sets: u32,
    /// Ways.
    pub ways: u32,
}

/// The decoders and the micro-op cache. An entry of the cache has the micro-operations of a part of
/// a line of code.
#[derive(Clone, Copy, Debug)]
pub struct DecodeShape {
    /// Sets of the cache, any number.
    pub sets: u32,
    /// Ways.
    pub ways: u32,
    /// Maximum micro-operations of an entry; the cache delivers an entry in a cycle.
    pub entry_uops: u8,
    /// Bytes of code, aligned, that the decoders take in a cycle.
    pub fetch_bytes: u8,
    /// Instructions that the decoders decode in a cycle.
    pub decoders: u8,
    /// Cycles until the decoders deliver after a miss of the cache.
    pub switch_cycles: u8,
}

impl DecodeShape {
    /// Returns the shape with half of the cache's ways.
    fn half(self) -> DecodeShape {
        DecodeShape { ways: self.ways / 2, ..self }
    }
}

/// Cycles of issue and execution of the branch itself, which a published misprediction penalty
/// (from dispatch to dispatch) includes.
pub(crate) const RESOLVE_CYCLES: u32 = 2;

/// Cycles of a page walk besides its reads of page-table entries.
pub(crate) const WALK_BASE_CYCLES: u32 = 6;

/// Load-to-use latencies and penalties, in core cycles.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// Data from the L1.
    pub l1_cycles: u32,
    /// Data from the L2.
    pub l2_cycles: u32,
    /// Data from the last-level cache.
    pub llc_cycles: u32,
    /// Data from memory.
    pub memory_cycles: u32,
    /// Data from a store that is still in the store queue.
    pub forward_cycles: u32,
    /// A second-level TLB hit.
    pub stlb_cycles: u32,
    /// A mispredicted branch, to the first right instruction.
    pub mispredict_cycles: u32,
    /// Penalty of a taken branch that fetch did not know: from the fetch of the code behind it,
    /// which is dropped when the branch is decoded, to the fetch of its target.
    pub resteer_cycles: u32,
}

/// A kind of functional unit.
#[derive(Clone, Copy, Debug)]
pub struct UnitShape {
    /// The issue ports that have such a unit, one bit each.
    pub ports: u16,
    /// Cycles from issue to result, without the divider's own cycles.
    pub latency_cycles: u8,
}

impl UnitShape {
    pub(crate) const fn new(ports: u16, latency_cycles: u8) -> UnitShape {
        UnitShape { ports, latency_cycles }
    }
}

/// The out-of-order engine's structures.
#[derive(Clone, Copy, Debug)]
pub struct Backend {
    /// Micro-operations that retire in a cycle.
    pub retire_width: u16,
    /// Micro-operations in the queue between fetch and dispatch.
    pub queue_uops: u16,
    /// Scheduler entries, all schedulers together.
    pub scheduler_uops: u16,
    /// Load-queue entries.
    pub loads: u16,
    /// Store-queue entries.
    pub stores: u16,
    /// Delay in cycles until a load is reissued because the low 12 bits of its address equal an
    /// older store's; 0 if the core compares all bits at once.
    pub alias_cycles: u16,
    /// L1 data misses in flight.
    pub fill_buffers: u16,
    /// Ports that loads issue to.
    pub load_ports: u16,
    /// Ports that compute stores' addresses.
    pub store_ports: u16,
    /// Units by [`Unit`]; a unit without ports takes no time.
    pub units: [UnitShape; Unit::COUNT],
}

/// The model of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pipeline {
    /// Interval model: penalties, with overlap of long misses within the reorder buffer.
    #[default]
    Interval,
    /// Instruction by instruction, out of order.
    OutOfOrder(PipelineMode),
}

/// Modes of the out-of-order pipeline, from "Online performance analysis by statistical sampling of
/// microprocessor performance counters" (Azimi, Stumm, Wisniewski, ICS 2005), 6.3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PipelineMode {
    /// The processor's own dispatch and retirement.
    #[default]
    Real,
    /// The processor's dispatch, but at most this number of instructions are dispatched in a cycle,
    /// and they retire together.
    Bundles(u8),
    /// Single dispatch: one instruction is dispatched, and one retires, in a cycle.
    SingleDispatch,
    /// In order: single dispatch, and an instruction issues only after the previous one has
    /// retired.
    InOrder,
}

/// The parameters of a processor.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// L1 instruction cache.
    pub l1i: CacheShape,
    /// L1 data cache.
    pub l1d: CacheShape,
    /// L2.
    pub l2: CacheShape,
    /// Last-level cache: of one core complex on AMD, of a socket on Intel.
    pub llc: CacheShape,
    /// First-level instruction TLB.
    pub itlb: TlbShape,
    /// First-level data TLB.
    pub dtlb: TlbShape,
    /// Second-level TLB: for data, and for code too if `stlb_code` is `None`.
    pub stlb: TlbShape,
    /// Second-level TLB for code only.
    pub stlb_code: Option<TlbShape>,
    /// The TLBs' entries for large pages.
    pub large_pages: LargePages,
    /// Whether large pages are modelled. If not, a large page takes a TLB entry for each 4 KiB
    /// accessed.
    pub has_large_pages: bool,
    /// Entries of the return-address stack.
    pub returns: u8,
    /// The branch target buffer, all its levels as one.
    pub target_buffer: BufferShape,
    /// Whether the branch target buffer is modelled. If not, fetch knows every branch.
    pub has_target_buffer: bool,
    /// The decoders and the micro-op cache.
    pub decode: DecodeShape,
    /// Whether decoders and micro-op cache are modelled. If not, micro-operations are available
    /// with their line.
    pub has_uop_cache: bool,
    /// Whether fetch on wrong paths is modelled. If not, mispredictions cost only time and slots.
    pub has_wrong_paths: bool,
    /// Whether loads execute ahead of older stores, and are rejected for addresses that only look
    /// like a store's. If not, each load waits for exactly the stores that it overlaps.
    pub has_rejections: bool,
    /// Slots that the pipeline allocates in a cycle.
    pub width: u16,
    /// Entries of the reorder buffer.
    pub reorder_uops: u32,
    /// The rest of the out-of-order engine.
    pub backend: Backend,
    /// The time of repeated string instructions.
    pub strings: StringShape,
    /// Whether a repeated string instruction counts one load and one store when it retires, instead
    /// of one for each element. Intel's events count retired instructions, AMD's dispatched
    /// operations.
    pub string_is_one_access: bool,
    /// Latencies.
    pub latency: Latency,
    /// Time-stamp counter ticks in 1000 core cycles.
    pub ref_per_1000_cycles: u32,
    /// The model of time.
    pub pipeline: Pipeline,
    /// The structures that never miss.
    pub perfect: Perfect,
    /// The hardware prefetchers that are on at reset; `None` if the core has no prefetchers.
    pub prefetch: Option<Prefetchers>,
    /// Whether the next-line and pair prefetchers also fetch previous lines, as AMD's do.
    pub prefetches_both_ways: bool,
    /// The structure that the table of paper 004 assists, if any.
    pub assist: Option<Assist>,
    /// Whether the out-of-order pipeline also counts the CPI stacks of paper 001's architectures.
    pub stacks: bool,
    /// Whether the out-of-order pipeline also keeps the time of each instruction.
    pub oracle: bool,
}

impl Geometry {
    /// Returns the processor with the out-of-order pipeline.
    #[must_use]
    pub const fn out_of_order(self, mode: PipelineMode) -> Geometry {
        Geometry { pipeline: Pipeline::OutOfOrder(mode), ..self }
    }

    /// The share of one of two hardware threads that both run. Caches and TLBs, for which threads
    /// compete, are halved like the queues, which processors divide (Intel, "Optimization Reference
    /// Manual", "Intel Hyper-Threading Technology"). The last-level cache, the predictors and the
    /// ports stay whole.
    #[must_use]
    pub fn half_of_core(self) -> Geometry {
        let Backend { queue_uops, scheduler_uops, loads, stores, .. } = self.backend;
        Geometry {
            l1i: self.l1i.half(),
            l1d: self.l1d.half(),
            l2: self.l2.half(),
            itlb: self.itlb.half(),
            dtlb: self.dtlb.half(),
            stlb: self.stlb.half(),
            stlb_code: self.stlb_code.map(TlbShape::half),
            decode: self.decode.half(),
            large_pages: self.large_pages.half(),
            reorder_uops: self.reorder_uops / 2,
            backend: Backend {
                queue_uops: queue_uops / 2,
                scheduler_uops: scheduler_uops / 2,
                loads: loads / 2,
                stores: stores / 2,
                ..self.backend
            },
            ..self
        }
    }

    pub(crate) const fn unit(&self, unit: Unit) -> UnitShape {
        self.backend.units[unit as usize]
    }
}
