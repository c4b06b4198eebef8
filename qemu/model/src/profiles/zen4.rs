//! Zen 4.

use super::zen3;
use crate::geometry::{Backend, BufferShape, CacheShape, DecodeShape, Geometry, Latency, TlbShape};

/// Zen 4: 32 KiB L1I and L1D, 1 MiB L2, 32 MiB of L3 for a complex.
pub(super) const GEOMETRY: Geometry = Geometry {
    l2: CacheShape { sets: 2048, ways: 8 },
    stlb: TlbShape { sets: 256, ways: 12 },
    target_buffer: BufferShape { sets: 512, ways: 14 },
    decode: DecodeShape { ways: 12, entry_uops: 9, ..zen3::DECODE },
    reorder_uops: 320,
    backend: Backend { queue_uops: 144, loads: 136, ..zen3::BACKEND },
    latency: Latency {
        l1_cycles: 4,
        l2_cycles: 14,
        llc_cycles: 50,
        memory_cycles: 280,
        forward_cycles: 7,
        stlb_cycles: 7,
        mispredict_cycles: 13,
        resteer_cycles: 10,
    },
    ref_per_1000_cycles: 667,
    ..zen3::GEOMETRY
};
