//! The structures of a processor that can be perfect.

macro_rules! perfect {
    ($($(#[$doc:meta])* $field:ident),* $(,)?) => {
        /// Structures that cost nothing: those that can miss never do, and others have no limit.
        /// Levels behind a perfect one hold what they would hold behind a real one. Used by the
        /// reference runs of a CPI stack, and to determine what a program would gain without a
        /// cause.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Perfect { $($(#[$doc])* pub $field: bool),* }

        impl Perfect {
            /// No structure.
            pub(crate) const NONE: Perfect = Perfect { $($field: false),* };
            /// The structures' names.
            pub const NAMES: &[&str] = &[$(stringify!($field)),*];

            /// Makes the structure of that name perfect; returns whether the name is known.
            pub fn set(&mut self, name: &str) -> bool {
                match name {
                    $(stringify!($field) => self.$field = true,)*
                    _ => return false,
                }
                true
            }
        }
    };
}

perfect! {
    /// The L1 instruction cache.
    l1i,
    /// The L1 data cache.
    l1d,
    /// The L2.
    l2,
    /// The L2 for code alone.
    l2i,
    /// The L2 for data alone, page tables aside.
    l2d,
    /// The last-level cache.
    llc,
    /// The last-level cache for code alone.
    llci,
    /// The last-level cache for data alone, page tables aside.
    llcd,
    /// The first-level instruction TLB.
    itlb,
    /// The first-level data TLB.
    dtlb,
    /// The second-level TLBs.
    stlb,
    /// Directions of conditional branches.
    branch,
    /// Targets of indirect jumps and calls.
    indirect,
    /// Targets of returns.
    returns,
    /// Fetch: it continues behind a taken branch in the same cycle, knows every branch before
    /// decoding it, and decoders keep up. Misses of code stay.
    fetch,
    /// Execution units of the out-of-order pipeline: each operation takes one cycle, and a port and
    /// the divider are always free. Loads take their time in the caches.
    units,
    /// The reorder buffer, the scheduler, and the load and store queues of the out-of-order
    /// pipeline, which are never full. Fill buffers, which limit misses in flight, stay.
    queues,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_made_perfect_by_name() {
        for name in Perfect::NAMES {
            let mut perfect = Perfect::default();
            assert!(perfect.set(name), "{name}");
            assert_ne!(perfect, Perfect::default(), "{name}");
        }
        assert!(!Perfect::default().set("l4"));
    }
}
