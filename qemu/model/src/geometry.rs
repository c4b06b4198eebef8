//! The shapes and latencies of the machines that are modelled.
//!
//! Sizes are the makers' own; latencies are the published measurements of chipsandcheese.com and
//! 7-cpu.com for these cores, rounded, at a typical all-core frequency.

/// Sets and ways of a cache of 64-byte lines.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// Sets, a power of two.
    pub sets: u32,
    /// Ways.
    pub ways: u32,
}

/// Sets and ways of a translation buffer.
#[derive(Clone, Copy, Debug)]
pub struct TlbShape {
    /// Sets, a power of two.
    pub sets: u32,
    /// Ways.
    pub ways: u32,
}

/// Load-to-use latencies and penalties, in core cycles.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    /// Data from the L2.
    pub l2_cycles: u32,
    /// Data from the last-level cache.
    pub llc_cycles: u32,
    /// Data from memory.
    pub memory_cycles: u32,
    /// A second-level TLB hit.
    pub stlb_cycles: u32,
    /// A mispredicted branch, to the first right instruction.
    pub mispredict_cycles: u32,
}

/// One machine.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// L1 instruction cache.
    pub l1i: Level,
    /// L1 data cache.
    pub l1d: Level,
    /// L2.
    pub l2: Level,
    /// Last-level cache: one core complex's share of it on AMD, a socket's on Intel.
    pub llc: Level,
    /// First-level instruction TLB.
    pub itlb: TlbShape,
    /// First-level data TLB.
    pub dtlb: TlbShape,
    /// Second-level TLB.
    pub stlb: TlbShape,
    /// Slots that the pipeline allocates and retires in a cycle.
    pub width: u16,
    /// Entries of the reorder buffer.
    pub reorder_uops: u32,
    /// Latencies.
    pub latency: Latency,
    /// Time-stamp counter ticks in 1000 core cycles.
    pub ref_per_1000_cycles: u32,
}

impl Geometry {
    /// Ice Lake server (Sunny Cove): 32 KiB L1I, 48 KiB L1D, 1.25 MiB L2, 24 MiB of LLC.
    pub const ICELAKE_SERVER: Geometry = Geometry {
        l1i: Level { sets: 64, ways: 8 },
        l1d: Level { sets: 64, ways: 12 },
        l2: Level { sets: 1024, ways: 20 },
        llc: Level { sets: 32768, ways: 12 },
        itlb: TlbShape { sets: 16, ways: 8 },
        dtlb: TlbShape { sets: 16, ways: 4 },
        stlb: TlbShape { sets: 128, ways: 16 },
        width: 5,
        reorder_uops: 352,
        latency: Latency {
            l2_cycles: 14,
            llc_cycles: 70,
            memory_cycles: 250,
            stlb_cycles: 7,
            mispredict_cycles: 17,
        },
        ref_per_1000_cycles: 800,
    };

    /// Sapphire Rapids server (Golden Cove): 32 KiB L1I, 48 KiB L1D, 2 MiB L2, 30 MiB of LLC.
    pub const SAPPHIRE_RAPIDS: Geometry = Geometry {
        l2: Level { sets: 2048, ways: 16 },
        llc: Level { sets: 32768, ways: 15 },
        itlb: TlbShape { sets: 32, ways: 8 },
        dtlb: TlbShape { sets: 16, ways: 6 },
        width: 6,
        reorder_uops: 512,
        latency: Latency {
            l2_cycles: 15,
            llc_cycles: 75,
            memory_cycles: 280,
            stlb_cycles: 7,
            mispredict_cycles: 17,
        },
        ref_per_1000_cycles: 667,
        ..Geometry::ICELAKE_SERVER
    };

    /// Zen 3: 32 KiB L1I and L1D, 512 KiB L2, 32 MiB of L3 a complex.
    pub const ZEN3: Geometry = Geometry {
        l1i: Level { sets: 64, ways: 8 },
        l1d: Level { sets: 64, ways: 8 },
        l2: Level { sets: 1024, ways: 8 },
        llc: Level { sets: 32768, ways: 16 },
        // Fully associative in the machine, and 72 entries for data on Zen 4; sets keep the look-up
        // short here.
        itlb: TlbShape { sets: 16, ways: 4 },
        dtlb: TlbShape { sets: 16, ways: 4 },
        stlb: TlbShape { sets: 256, ways: 8 },
        width: 6,
        reorder_uops: 256,
        latency: Latency {
            l2_cycles: 12,
            llc_cycles: 46,
            memory_cycles: 260,
            stlb_cycles: 7,
            mispredict_cycles: 13,
        },
        ref_per_1000_cycles: 700,
    };

    /// Zen 4: 32 KiB L1I and L1D, 1 MiB L2, 32 MiB of L3 a complex.
    pub const ZEN4: Geometry = Geometry {
        l2: Level { sets: 2048, ways: 8 },
        stlb: TlbShape { sets: 256, ways: 12 },
        reorder_uops: 320,
        latency: Latency {
            l2_cycles: 14,
            llc_cycles: 50,
            memory_cycles: 280,
            stlb_cycles: 7,
            mispredict_cycles: 13,
        },
        ref_per_1000_cycles: 667,
        ..Geometry::ZEN3
    };
}
