//! Zen 3.

use crate::{
    geometry::{
        Backend, BufferShape, CacheShape, DecodeShape, Geometry, LargeEntries, LargePages, Latency,
        Pipeline, TlbShape, UnitShape,
    },
    perfect::Perfect,
    strings::StringShape,
};

/// Zen 3's ports: 0 to 3 integer pipes, 4 a branch pipe, 5 to 7 addresses, 8 to 11 vector pipes.
pub(super) const BACKEND: Backend = Backend {
    retire_width: 8,
    queue_uops: 72,
    // Four schedulers of 24 entries for integers and addresses, two of 32 for vectors.
    scheduler_uops: 160,
    // 72 loads waiting for data, and 44 with data waiting for retirement.
    loads: 116,
    stores: 64,
    alias_cycles: 0,
    fill_buffers: 24,
    load_ports: 0b1110_0000,
    store_ports: 0b0110_0000,
    units: [
        UnitShape::new(0, 0),
        UnitShape::new(0b1111, 1),
        UnitShape::new(0b0110, 1),
        UnitShape::new(0b1_0001, 1),
        UnitShape::new(0b0010, 3),
        UnitShape::new(0b0100, 4),
        UnitShape::new(0b1111_0000_0000, 1),
        UnitShape::new(0b0110_0000_0000, 1),
        UnitShape::new(0b1100_0000_0000, 3),
        UnitShape::new(0b0011_0000_0000, 4),
        UnitShape::new(0b0010_0000_0000, 9),
        UnitShape::new(0b1100_0000_0000, 3),
        UnitShape::new(0, 0),
    ],
};

/// The op cache has 4,096 operations, and delivers an entry in a cycle; fetch reads 32 bytes, and
/// four instructions are decoded (AMD, software optimization guide 56665, "Instruction Fetch and
/// Decode"). The cost of a switch is not published: the value is Intel's.
pub(super) const DECODE: DecodeShape = DecodeShape {
    sets: 64,
    ways: 8,
    entry_uops: 8,
    fetch_bytes: 32,
    decoders: 4,
    switch_cycles: 2,
};

/// MOVS and STOS pass as much as the L1 stores in a cycle. AMD publishes the rest for older cores
/// only: a start of 14 to 16 cycles, 5/2 for each element of SCAS and 10/3 of CMPS ("Software
/// Optimization Guide for AMD64 Processors", 25112, table 6).
const STRINGS: StringShape = StringShape {
    start_cycles: 15,
    fast_start_cycles: 0,
    fast_bytes: 32,
    element_cycles: 2,
    element_uops: 6,
};

/// Zen 3: 32 KiB L1I and L1D, 512 KiB L2, 32 MiB of L3 for a complex.
pub(super) const GEOMETRY: Geometry = Geometry {
    l1i: CacheShape { sets: 64, ways: 8 },
    l1d: CacheShape { sets: 64, ways: 8 },
    l2: CacheShape { sets: 1024, ways: 8 },
    llc: CacheShape { sets: 32768, ways: 16 },
    // First-level TLBs are fully associative on the processor, with 72 entries for data on Zen 4;
    // the model has sets, which make its look-up short.
    itlb: TlbShape { sets: 16, ways: 4 },
    dtlb: TlbShape { sets: 16, ways: 4 },
    stlb: TlbShape { sets: 128, ways: 16 },
    stlb_code: Some(TlbShape { sets: 64, ways: 8 }),
    // First levels have entries for all sizes, second levels for 4 KiB and 2 MiB: pages of 1 GiB
    // are "smashed" in the second level, and whole again in the first.
    large_pages: LargePages {
        itlb: [LargeEntries::Shared; 2],
        dtlb: [LargeEntries::Shared; 2],
        stlb: [LargeEntries::Shared, LargeEntries::Parts],
        stlb_code: [LargeEntries::Shared, LargeEntries::Parts],
    },
    has_large_pages: false,
    strings: STRINGS,
    string_is_one_access: false,
    returns: 32,
    target_buffer: BufferShape { sets: 512, ways: 13 },
    has_target_buffer: false,
    decode: DECODE,
    has_uop_cache: false,
    has_wrong_paths: false,
    has_rejections: false,
    width: 6,
    reorder_uops: 256,
    backend: BACKEND,
    latency: Latency {
        l1_cycles: 4,
        l2_cycles: 12,
        llc_cycles: 46,
        memory_cycles: 260,
        forward_cycles: 7,
        stlb_cycles: 7,
        mispredict_cycles: 13,
        resteer_cycles: 10,
    },
    ref_per_1000_cycles: 700,
    pipeline: Pipeline::Interval,
    perfect: Perfect::NONE,
    prefetch: None,
    prefetches_both_ways: true,
    assist: None,
    stacks: false,
    oracle: false,
};
