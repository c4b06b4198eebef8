//! The processors that are modelled.
//!
//! Sizes of structures are those of the vendors' publications: Intel's "64 and IA-32 Architectures
//! Optimization Reference Manual", chapter 2, sections on Sunny Cove and Golden Cove; AMD's
//! "Software Optimization Guide" for family 19h models 00h (Zen 3, publication 56665) and 10h (Zen
//! 4, 57647), chapter 2. Where the makers are silent (schedulers' sums, fill buffers, return
//! stacks, latencies beyond the L2) they are the measurements published by chipsandcheese.com for
//! these cores, rounded, and for servers at a typical all-core frequency; TLBs and return stacks
//! also by jia.je's "Comparisons across microarchitectures". Units' ports and latencies are those
//! of uops.info and of Agner Fog's instruction tables.

use crate::{
    geometry::{Backend, Geometry, Latency, Level, Mode, Perfect, Pipeline, TlbShape, UnitShape},
    operation::Unit,
};

const fn unit(ports: u16, latency_cycles: u8) -> UnitShape {
    UnitShape { ports, latency_cycles }
}

/// Sunny Cove's ports by number: 0, 1, 5, 6 compute, 2 and 3 load, 7 and 8 address stores.
const SUNNY_COVE: Backend = Backend {
    retire_width: 8,
    queue_uops: 70,
    // 97 for computing, 70 for addresses and store data.
    scheduler_uops: 167,
    loads: 128,
    stores: 72,
    fill_buffers: 12,
    load_ports: 0b1100,
    store_ports: 0b1_1000_0000,
    units: [
        unit(0, 0),
        unit(0b110_0011, 1),
        unit(0b100_0001, 1),
        unit(0b100_0001, 1),
        unit(0b000_0010, 3),
        unit(0b000_0010, 5),
        unit(0b010_0011, 1),
        unit(0b010_0000, 1),
        unit(0b000_0011, 4),
        unit(0b000_0011, 4),
        unit(0b000_0001, 9),
        unit(0b000_0011, 4),
        // Elimination is switched off by microcode (Ice Lake erratum ICL065).
        unit(0b110_0011, 1),
    ],
};

/// Golden Cove adds port 10 for integers, port 11 for loads, and adders on ports 1 and 5.
const GOLDEN_COVE: Backend = Backend {
    retire_width: 8,
    queue_uops: 144,
    // 97 for computing, 70 for loads, 38 for stores.
    scheduler_uops: 205,
    loads: 192,
    stores: 114,
    fill_buffers: 16,
    load_ports: 0b1000_0000_1100,
    store_ports: 0b1_1000_0000,
    units: [
        unit(0, 0),
        unit(0b100_0110_0011, 1),
        unit(0b000_0100_0001, 1),
        unit(0b000_0100_0001, 1),
        unit(0b000_0000_0010, 3),
        unit(0b000_0000_0010, 4),
        unit(0b000_0010_0011, 1),
        unit(0b000_0010_0010, 1),
        unit(0b000_0010_0010, 3),
        unit(0b000_0000_0011, 4),
        unit(0b000_0000_0001, 9),
        unit(0b000_0000_0011, 4),
        unit(0, 0),
    ],
};

/// Zen 3's ports: 0 to 3 integer pipes, 4 a branch pipe, 5 to 7 addresses, 8 to 11 vector pipes.
const ZEN3_BACKEND: Backend = Backend {
    retire_width: 8,
    queue_uops: 72,
    // Four of 24 for integers and addresses, two of 32 for vectors.
    scheduler_uops: 160,
    // 72 waiting for data, and 44 with data waiting for retirement.
    loads: 116,
    stores: 64,
    fill_buffers: 24,
    load_ports: 0b1110_0000,
    store_ports: 0b0110_0000,
    units: [
        unit(0, 0),
        unit(0b1111, 1),
        unit(0b0110, 1),
        unit(0b1_0001, 1),
        unit(0b0010, 3),
        unit(0b0100, 4),
        unit(0b1111_0000_0000, 1),
        unit(0b0110_0000_0000, 1),
        unit(0b1100_0000_0000, 3),
        unit(0b0011_0000_0000, 4),
        unit(0b0010_0000_0000, 9),
        unit(0b1100_0000_0000, 3),
        unit(0, 0),
    ],
};

impl Geometry {
    /// Ice Lake server (Sunny Cove): 32 KiB L1I, 48 KiB L1D, 1.25 MiB L2, 24 MiB of LLC (16 slices
    /// of 1.5 MiB).
    pub const ICELAKE_SERVER: Geometry = Geometry {
        l1i: Level { sets: 64, ways: 8 },
        l1d: Level { sets: 64, ways: 12 },
        l2: Level { sets: 1024, ways: 20 },
        llc: Level { sets: 32768, ways: 12 },
        itlb: TlbShape { sets: 16, ways: 8 },
        dtlb: TlbShape { sets: 16, ways: 4 },
        stlb: TlbShape { sets: 128, ways: 16 },
        stlb_code: None,
        returns: 22,
        width: 5,
        reorder_uops: 352,
        backend: SUNNY_COVE,
        latency: Latency {
            l1_cycles: 5,
            l2_cycles: 14,
            llc_cycles: 70,
            memory_cycles: 250,
            forward_cycles: 5,
            stlb_cycles: 7,
            mispredict_cycles: 17,
        },
        ref_per_1000_cycles: 800,
        pipeline: Pipeline::Interval,
        perfect: NOTHING,
    };

    /// Sapphire Rapids server (Golden Cove): 32 KiB L1I, 48 KiB L1D, 2 MiB L2, 30 MiB of LLC (16
    /// slices of 1.875 MiB).
    pub const SAPPHIRE_RAPIDS: Geometry = Geometry {
        l2: Level { sets: 2048, ways: 16 },
        llc: Level { sets: 32768, ways: 15 },
        itlb: TlbShape { sets: 32, ways: 8 },
        dtlb: TlbShape { sets: 16, ways: 6 },
        returns: 20,
        width: 6,
        reorder_uops: 512,
        backend: GOLDEN_COVE,
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
        // Fully associative on the processor, with 72 entries for data on Zen 4; the model has
        // sets, which make its look-up short.
        itlb: TlbShape { sets: 16, ways: 4 },
        dtlb: TlbShape { sets: 16, ways: 4 },
        stlb: TlbShape { sets: 128, ways: 16 },
        stlb_code: Some(TlbShape { sets: 64, ways: 8 }),
        returns: 32,
        width: 6,
        reorder_uops: 256,
        backend: ZEN3_BACKEND,
        latency: Latency {
            l1_cycles: 4,
            l2_cycles: 12,
            llc_cycles: 46,
            memory_cycles: 260,
            forward_cycles: 7,
            stlb_cycles: 7,
            mispredict_cycles: 13,
        },
        ref_per_1000_cycles: 700,
        pipeline: Pipeline::Interval,
        perfect: NOTHING,
    };

    /// Zen 4: 32 KiB L1I and L1D, 1 MiB L2, 32 MiB of L3 a complex.
    pub const ZEN4: Geometry = Geometry {
        l2: Level { sets: 2048, ways: 8 },
        stlb: TlbShape { sets: 256, ways: 12 },
        reorder_uops: 320,
        backend: Backend { queue_uops: 144, loads: 136, ..ZEN3_BACKEND },
        latency: Latency {
            l1_cycles: 4,
            l2_cycles: 14,
            llc_cycles: 50,
            memory_cycles: 280,
            forward_cycles: 7,
            stlb_cycles: 7,
            mispredict_cycles: 13,
        },
        ref_per_1000_cycles: 667,
        ..Geometry::ZEN3
    };

    /// Every profile's parameters, by name.
    pub const ALL: &[(&str, Geometry)] = &[
        ("icelake-server", Geometry::ICELAKE_SERVER),
        ("sapphire-rapids", Geometry::SAPPHIRE_RAPIDS),
        ("zen3", Geometry::ZEN3),
        ("zen4", Geometry::ZEN4),
    ];

    /// The same processor with the out-of-order pipeline.
    #[must_use]
    pub const fn out_of_order(self, mode: Mode) -> Geometry {
        Geometry { pipeline: Pipeline::OutOfOrder(mode), ..self }
    }

    pub(crate) const fn unit(&self, unit: Unit) -> UnitShape {
        self.backend.units[unit as usize]
    }
}

const NOTHING: Perfect = Perfect {
    l1i: false,
    l1d: false,
    l2: false,
    llc: false,
    itlb: false,
    dtlb: false,
    stlb: false,
    branch: false,
    indirect: false,
    returns: false,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        core::{LINE_BITS, WALK_LINE_BITS},
        tlb::PAGE_BITS,
    };

    #[test]
    fn caches_have_the_published_sizes() {
        let kib = |level: Level| level.bytes() >> 10;
        for (geometry, l1d, l2, llc) in [
            (Geometry::ICELAKE_SERVER, 48, 1280, 24 << 10),
            (Geometry::SAPPHIRE_RAPIDS, 48, 2048, 30 << 10),
            (Geometry::ZEN3, 32, 512, 32 << 10),
            (Geometry::ZEN4, 32, 1024, 32 << 10),
        ] {
            assert_eq!((kib(geometry.l1i), kib(geometry.l1d)), (32, l1d));
            assert_eq!((kib(geometry.l2), kib(geometry.llc)), (l2, llc));
        }
    }

    #[test]
    fn tags_of_every_structure_fit_in_32_bits() {
        for (name, geometry) in Geometry::ALL {
            for level in [geometry.l1i, geometry.l1d] {
                assert!(LINE_BITS <= 32 + level.sets.trailing_zeros(), "{name}: {level:?}");
            }
            for level in [geometry.l2, geometry.llc] {
                assert!(WALK_LINE_BITS <= 32 + level.sets.trailing_zeros(), "{name}: {level:?}");
            }
            let second = [geometry.stlb].into_iter().chain(geometry.stlb_code);
            for tlb in [geometry.itlb, geometry.dtlb].into_iter().chain(second) {
                assert!(PAGE_BITS <= 32 + tlb.sets.trailing_zeros(), "{name}: {tlb:?}");
            }
        }
    }

    #[test]
    fn every_unit_has_a_port_to_be_issued_to() {
        for (name, geometry) in Geometry::ALL {
            for (kind, shape) in geometry.backend.units.iter().enumerate() {
                let optional = kind == Unit::None as usize || kind == Unit::Move as usize;
                let complete = shape.ports != 0 && shape.latency_cycles != 0;
                assert!(complete || optional, "{name}: unit {kind}");
            }
        }
    }
}
