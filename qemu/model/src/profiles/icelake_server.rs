//! Ice Lake server (Sunny Cove).

use crate::{
    geometry::{
        Backend, BufferShape, CacheShape, DecodeShape, Geometry, LargeEntries, LargePages,
        LargeTlb, Latency, Pipeline, TlbShape, UnitShape,
    },
    perfect::Perfect,
    strings::StringShape,
};

/// Sunny Cove's ports by number: 0, 1, 5, 6 compute, 2 and 3 load, 7 and 8 address stores.
const BACKEND: Backend = Backend {
    retire_width: 8,
    queue_uops: 70,
    // 97 entries for computing, 70 for addresses and store data.
    scheduler_uops: 167,
    loads: 128,
    stores: 72,
    alias_cycles: 5,
    fill_buffers: 12,
    load_ports: 0b1100,
    store_ports: 0b1_1000_0000,
    units: [
        UnitShape::new(0, 0),
        UnitShape::new(0b110_0011, 1),
        UnitShape::new(0b100_0001, 1),
        UnitShape::new(0b100_0001, 1),
        UnitShape::new(0b000_0010, 3),
        UnitShape::new(0b000_0010, 5),
        UnitShape::new(0b010_0011, 1),
        UnitShape::new(0b010_0000, 1),
        UnitShape::new(0b000_0011, 4),
        UnitShape::new(0b000_0011, 4),
        UnitShape::new(0b000_0001, 9),
        UnitShape::new(0b000_0011, 4),
        // Move elimination is switched off by microcode (Ice Lake erratum ICL065).
        UnitShape::new(0b110_0011, 1),
    ],
};

/// MOVS and STOS start in about 15 cycles, or 35 if they are longer ("Optimization Reference
/// Manual", "REP String Enhancement", "Enhanced REP MOVSB and STOSB Operation"), and pass 32 bytes
/// in a cycle of the L1. CMPS and SCAS take two cycles for each element, in about six
/// micro-operations (Agner Fog's tables: at least 2n and 6n).
const STRINGS: StringShape = StringShape {
    start_cycles: 15,
    fast_start_cycles: 20,
    fast_bytes: 32,
    element_cycles: 2,
    element_uops: 6,
};

/// The first-level data TLB: 32 entries for 2 MiB, 8 for 1 GiB (CPUID leaf 18H of Ice Lake
/// processors).
pub(super) const LARGE_DTLB: LargeTlb = [
    LargeEntries::Own(TlbShape { sets: 8, ways: 4 }),
    LargeEntries::Own(TlbShape { sets: 1, ways: 8 }),
];
/// The second-level TLB has two halves: one for 4 KiB and 2 MiB, one for 4 KiB and 1 GiB (CPUID
/// leaf 18H).
pub(super) const LARGE_STLB: LargeTlb = [LargeEntries::SharedHalf; 2];

/// Ice Lake server (Sunny Cove): 32 KiB L1I, 48 KiB L1D, 1.25 MiB L2, 24 MiB of LLC (16 slices
/// of 1.5 MiB).
pub(super) const GEOMETRY: Geometry = Geometry {
    l1i: CacheShape { sets: 64, ways: 8 },
    l1d: CacheShape { sets: 64, ways: 12 },
    l2: CacheShape { sets: 1024, ways: 20 },
    llc: CacheShape { sets: 32768, ways: 12 },
    itlb: TlbShape { sets: 16, ways: 8 },
    dtlb: TlbShape { sets: 16, ways: 4 },
    stlb: TlbShape { sets: 128, ways: 16 },
    stlb_code: None,
    large_pages: LargePages {
        // The manual has 16 entries. Leaf 18H reports eight, which may be one thread's.
        itlb: [LargeEntries::Own(TlbShape { sets: 2, ways: 8 }), LargeEntries::Parts],
        dtlb: LARGE_DTLB,
        stlb: LARGE_STLB,
        stlb_code: LARGE_STLB,
    },
    has_large_pages: false,
    strings: STRINGS,
    string_is_one_access: true,
    returns: 22,
    target_buffer: BufferShape { sets: 512, ways: 10 },
    has_target_buffer: false,
    // Sources: docs/decisions/archive/0090-micro-op-cache.md.
    decode: DecodeShape {
        sets: 48,
        ways: 8,
        entry_uops: 6,
        fetch_bytes: 16,
        decoders: 5,
        switch_cycles: 2,
    },
    has_uop_cache: false,
    has_wrong_paths: false,
    has_rejections: false,
    width: 5,
    reorder_uops: 352,
    backend: BACKEND,
    latency: Latency {
        l1_cycles: 5,
        l2_cycles: 14,
        llc_cycles: 70,
        memory_cycles: 250,
        forward_cycles: 5,
        stlb_cycles: 7,
        mispredict_cycles: 17,
        resteer_cycles: 10,
    },
    ref_per_1000_cycles: 800,
    pipeline: Pipeline::Interval,
    perfect: Perfect::NONE,
    prefetch: None,
    prefetches_both_ways: false,
    assist: None,
    stacks: false,
    oracle: false,
};
