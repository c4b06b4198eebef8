//! The parameters of a modelled processor: structures, latencies, pipeline, perfect structures.

use crate::{assist::Assist, operation::Unit, perfect::Perfect, prefetch::Prefetchers};

/// Sets and ways of a cache of 64-byte lines.
#[derive(Clone, Copy, Debug)]
pub struct CacheShape {
    /// Sets, a power of two.
    pub sets: u32,
    /// Ways.
    pub ways: u32,
}

impl CacheShape {
    /// Its capacity in bytes.
    pub const fn bytes(self) -> u64 {
        self.sets as u64 * self.ways as u64 * 64
    }

    /// One with half of the ways.
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
    /// One with half of the ways.
    fn half(self) -> TlbShape {
        TlbShape { ways: self.ways / 2, ..self }
    }
}

/// The entries that a TLB has for pages of one large size.
#[derive(Clone, Copy, Debug)]
pub enum LargeEntries {
    /// Those of 4 KiB pages, all of them.
    Shared,
    /// Those of 4 KiB pages, in at most half of the ways of a set.
    SharedHalf,
    /// Entries of their own.
    Own(TlbShape),
    /// None: a page takes an entry of the next smaller size for each part that is accessed.
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

/// What each TLB of a core has for large pages.
#[derive(Clone, Copy, Debug)]
pub struct LargePages {
    /// The first-level instruction TLB.
    pub itlb: LargeTlb,
    /// The first-level data TLB.
    pub dtlb: LargeTlb,
    /// The second level: for data, and also for code if it is not separate.
    pub stlb: LargeTlb,
    /// The second level for code, if it is separate.
    pub stlb_code: LargeTlb,
}

impl LargePages {
    /// One with half of the ways.
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

/// The decoders, and the cache of what they have decoded, whose entries have the micro-operations
/// of a part of a line of code.
#[derive(Clone, Copy, Debug)]
pub struct DecodeShape {
    /// Sets of the cache, any number.
    pub sets: u32,
    /// Ways.
    pub ways: u32,
    /// The most micro-operations of an entry; the cache delivers an entry in a cycle.
    pub entry_uops: u8,
    /// Bytes of code, aligned, that the decoders take in a cycle.
    pub fetch_bytes: u8,
    /// Instructions that they decode in a cycle.
    pub decoders: u8,
    /// Cycles until the decoders deliver, after the cache did.
    pub switch_cycles: u8,
}

impl DecodeShape {
    /// One whose cache has half of the ways.
    fn half(self) -> DecodeShape {
        DecodeShape { ways: self.ways / 2, ..self }
    }
}

/// Cycles of a misprediction's published penalty, which is from dispatch to dispatch, in which the
/// branch itself issues and executes.
pub(crate) const RESOLVE_CYCLES: u32 = 2;

/// Cycles of a page walk beside its reads of page-table entries.
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
    /// A taken branch of which fetch did not know: from the fetch behind it, which is dropped when
    /// it is decoded, to that of its target.
    pub resteer_cycles: u32,
}

/// A kind of functional unit.
#[derive(Clone, Copy, Debug)]
pub struct UnitShape {
    /// The issue ports that have one, a bit each.
    pub ports: u16,
    /// Cycles from issue to result, without the divider's own.
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
    /// Cycles until a load is issued again whose address has the low 12 bits of an older store's;
    /// 0 if all of them are compared at once.
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
    /// Penalties, with overlap of long misses within the reorder buffer.
    #[default]
    Interval,
    /// Instruction by instruction, out of order.
    OutOfOrder(PipelineMode),
}

/// The modes of the out-of-order pipeline: those of "Online performance analysis by statistical
/// sampling of microprocessor performance counters" (Azimi, Stumm, Wisniewski, ICS 2005), 6.3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PipelineMode {
    /// As the processor is.
    #[default]
    Real,
    /// As the processor is, but at most this number of instructions are dispatched, and retire
    /// together, in a cycle.
    Bundles(u8),
    /// One instruction is dispatched and retires in a cycle.
    SingleDispatch,
    /// Likewise, and an instruction issues after the previous one has retired.
    InOrder,
}

/// One processor.
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
    /// Second-level TLB: for data, and also for code if `stlb_code` is none.
    pub stlb: TlbShape,
    /// Second-level TLB for code only.
    pub stlb_code: Option<TlbShape>,
    /// What the TLBs have for large pages.
    pub large_pages: LargePages,
    /// Whether large pages are modelled. Without it each takes an entry for each 4 KiB accessed.
    pub has_large_pages: bool,
    /// Entries of the return-address stack.
    pub returns: u8,
    /// The branch target buffer, its levels as one.
    pub target_buffer: BufferShape,
    /// Whether there is one. Without it fetch knows of every branch.
    pub has_target_buffer: bool,
    /// The decoders, and their cache.
    pub decode: DecodeShape,
    /// Whether fetch goes through them. Without it micro-operations are there when their line is.
    pub has_uop_cache: bool,
    /// Whether fetch goes on behind mispredicted branches. Without it they cost time and slots.
    pub has_wrong_paths: bool,
    /// Whether loads are executed ahead of older stores, and rejected for addresses that only look
    /// like theirs. Without it each waits for the stores that it overlaps, and for no other.
    pub has_rejections: bool,
    /// Slots that the pipeline allocates in a cycle.
    pub width: u16,
    /// Entries of the reorder buffer.
    pub reorder_uops: u32,
    /// The rest of the out-of-order engine.
    pub backend: Backend,
    /// What loads and stores of a repeated string instruction count: one load and one store when
    /// it retires, or each element's. Intel's events count retired instructions, AMD's dispatched
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
    /// The hardware prefetchers that are on at first; none if the core has no prefetchers.
    pub prefetch: Option<Prefetchers>,
    /// Whether those of neighbouring lines fetch previous ones too, as AMD's do.
    pub prefetches_both_ways: bool,
    /// The structure that the table of paper 004 assists, if there is one.
    pub assist: Option<Assist>,
    /// Whether the out-of-order pipeline counts the CPI stacks of paper 001's architectures too.
    pub stacks: bool,
}

impl Geometry {
    /// The same processor with the out-of-order pipeline.
    #[must_use]
    pub const fn out_of_order(self, mode: PipelineMode) -> Geometry {
        Geometry { pipeline: Pipeline::OutOfOrder(mode), ..self }
    }

    /// What each of two hardware threads has of the core when both run. Caches and TLBs, for which
    /// threads compete, are divided like the queues, which processors divide (Intel, "Optimization
    /// Reference Manual", "Intel Hyper-Threading Technology"); the last-level cache, the predictors
    /// and the ports are the same.
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
