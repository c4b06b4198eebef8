//! The processors that are modelled.
//!
//! Sizes of structures are from the vendors' publications: Intel's "64 and IA-32 Architectures
//! Optimization Reference Manual", chapter 2, sections on Sunny Cove and Golden Cove; AMD's
//! "Software Optimization Guide" for family 19h models 00h (Zen 3, publication 56665) and 10h (Zen
//! 4, 57647), chapter 2. The vendors do not publish sums of schedulers, fill buffers, return stacks
//! and latencies beyond the L2. These are measurements of these cores by chipsandcheese.com,
//! rounded, for servers at a typical all-core frequency; for TLBs and return stacks also by
//! jia.je's "Comparisons across microarchitectures". Ports and latencies of units are from
//! uops.info and Agner Fog's instruction tables.
//!
//! Each file has one profile's parameters. A new one needs a file, a `mod` line and a line in
//! [`Geometry::ALL`], under the name that the profile has in `tally-vpmu`.

mod icelake_server;
mod sapphire_rapids;
mod zen3;
mod zen4;

use crate::geometry::Geometry;

impl Geometry {
    /// Ice Lake server.
    pub const ICELAKE_SERVER: Geometry = icelake_server::GEOMETRY;
    /// Zen 3.
    pub const ZEN3: Geometry = zen3::GEOMETRY;
    /// Zen 4.
    pub const ZEN4: Geometry = zen4::GEOMETRY;

    /// Every profile's parameters, by its name.
    pub const ALL: &[(&str, Geometry)] = &[
        ("icelake-server", icelake_server::GEOMETRY),
        ("sapphire-rapids", sapphire_rapids::GEOMETRY),
        ("zen3", zen3::GEOMETRY),
        ("zen4", zen4::GEOMETRY),
    ];

    /// The parameters of the profile with that name. Panics if there is none: at compile time if
    /// called in a constant.
    pub const fn of(name: &str) -> Geometry {
        let mut index = 0;
        while index < Geometry::ALL.len() {
            let (known, geometry) = Geometry::ALL[index];
            if is_equal(known, name) {
                return geometry;
            }
            index += 1;
        }
        panic!("the model has no profile of that name: add it to Geometry::ALL")
    }
}

/// Returns whether two names are equal, for constants, which cannot compare strings by `==`.
pub const fn is_equal(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    index == one.len() && index == other.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        core::{LINE_BITS, WALK_LINE_BITS},
        geometry::CacheShape,
        operation::Unit,
        tlb::PAGE_BITS,
    };

    #[test]
    fn caches_have_the_published_sizes() {
        let kib = |level: CacheShape| level.bytes() >> 10;
        for (geometry, l1d, l2, llc) in [
            (Geometry::ICELAKE_SERVER, 48, 1280, 24 << 10),
            (Geometry::of("sapphire-rapids"), 48, 2048, 30 << 10),
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
