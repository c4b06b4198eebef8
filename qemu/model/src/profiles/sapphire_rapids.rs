//! Sapphire Rapids server (Golden Cove).

use super::icelake_server::{self, LARGE_DTLB, LARGE_STLB};
use crate::geometry::{
    Backend, BufferShape, CacheShape, DecodeShape, Geometry, LargeEntries, LargePages, Latency,
    TlbShape, UnitShape,
};

/// Golden Cove's ports: Sunny Cove's, and port 10 for integers, port 11 for loads, adders on ports
/// 1 and 5.
const BACKEND: Backend = Backend {
    retire_width: 8,
    queue_uops: 144,
    // 97 entries for computing, 70 for loads, 38 for stores.
    scheduler_uops: 205,
    loads: 192,
    stores: 114,
    alias_cycles: 5,
    fill_buffers: 16,
    load_ports: 0b1000_0000_1100,
    store_ports: 0b1_1000_0000,
    units: [
        UnitShape::new(0, 0),
        UnitShape::new(0b100_0110_0011, 1),
        UnitShape::new(0b000_0100_0001, 1),
        UnitShape::new(0b000_0100_0001, 1),
        UnitShape::new(0b000_0000_0010, 3),
        UnitShape::new(0b000_0000_0010, 4),
        UnitShape::new(0b000_0010_0011, 1),
        UnitShape::new(0b000_0010_0010, 1),
        UnitShape::new(0b000_0010_0010, 3),
        UnitShape::new(0b000_0000_0011, 4),
        UnitShape::new(0b000_0000_0001, 9),
        UnitShape::new(0b000_0000_0011, 4),
        UnitShape::new(0, 0),
    ],
};

/// Sapphire Rapids server (Golden Cove): 32 KiB L1I, 48 KiB L1D, 2 MiB L2, 30 MiB of LLC (16
/// slices of 1.875 MiB).
pub(super) const GEOMETRY: Geometry = Geometry {
    l2: CacheShape { sets: 2048, ways: 16 },
    llc: CacheShape { sets: 32768, ways: 15 },
    itlb: TlbShape { sets: 32, ways: 8 },
    dtlb: TlbShape { sets: 16, ways: 6 },
    large_pages: LargePages {
        itlb: [LargeEntries::Own(TlbShape { sets: 4, ways: 8 }), LargeEntries::Parts],
        // The manual has the sizes of the first levels. The division of the second is Ice Lake's.
        dtlb: LARGE_DTLB,
        stlb: LARGE_STLB,
        stlb_code: LARGE_STLB,
    },
    string_is_one_access: true,
    returns: 20,
    target_buffer: BufferShape { sets: 1024, ways: 12 },
    decode: DecodeShape {
        sets: 64,
        ways: 8,
        entry_uops: 8,
        fetch_bytes: 32,
        decoders: 6,
        switch_cycles: 2,
    },
    width: 6,
    reorder_uops: 512,
    backend: BACKEND,
    latency: Latency {
        l1_cycles: 5,
        l2_cycles: 16,
        // 33 ns at 3 GHz, quoted from chipsandcheese.com/p/a-peek-at-sapphire-rapids; not
        // verified.
        llc_cycles: 100,
        memory_cycles: 280,
        forward_cycles: 5,
        stlb_cycles: 7,
        mispredict_cycles: 17,
        resteer_cycles: 10,
    },
    ref_per_1000_cycles: 667,
    ..icelake_server::GEOMETRY
};
