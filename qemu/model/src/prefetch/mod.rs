//! Hardware prefetchers: the lines that they request, determined by the order of accesses alone.
//!
//! Intel's four, as the "64 and IA-32 Architectures Optimization Reference Manual", sections "Data
//! Prefetching" of chapter 2, describes them:
//!
//! | name | of the | |
//! |---|---|---|
//! | `l1-stride` | L1 | DCU IP: a load instruction with a regular stride of up to 2 KiB |
//! | `l1-next` | L1 | DCU: the line behind ascending accesses to data loaded recently |
//! | `l2-stream` | L2 | streamer: ascending or descending requests inside a page |
//! | `l2-pair` | L2 | spatial: the other line of an aligned pair |
//!
//! AMD's follow its "Software Optimization Guide" for family 19h (56665, 57647), section "Hardware
//! Prefetching": L1 Stride, L1 Stream (here `l1-next`, in both directions), L2 Stream, and L2
//! Up/Down (here `l2-pair`), which requests the next or the previous line, by history. Its L1
//! Region is not modelled: the guide does not say what a region or a pattern is. The guide has no
//! sizes either; tables have the sizes of Intel's.
//!
//! Invariants: a prefetcher never requests a line of another page of 4 KiB, as both vendors say. It
//! knows no time: the pipeline decides when a line arrives.

mod next_line;
mod page;
mod pair;
mod stream;
mod stride;

use next_line::NextLine;
use page::share_page;
use pair::Pairs;
use stream::Streams;
use stride::Strides;

/// Maximum lines that an L2's prefetchers have in flight: the entries of Golden Cove's queue of
/// outstanding misses beyond the L2 (Intel, Architecture Day 2021); for the other cores no figure
/// is published.
pub(crate) const IN_FLIGHT: u32 = 48;

macro_rules! prefetchers {
    ($($(#[$doc:meta])* $field:ident: $name:literal),* $(,)?) => {
        /// Hardware prefetchers that are on.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Prefetchers { $($(#[$doc])* pub $field: bool),* }

        impl Prefetchers {
            /// No prefetcher.
            pub const NONE: Prefetchers = Prefetchers { $($field: false),* };
            /// All prefetchers.
            pub const ALL: Prefetchers = Prefetchers { $($field: true),* };
            /// The prefetchers' names.
            pub const NAMES: &[&str] = &[$($name),*];

            /// Turns on the prefetcher of that name; returns whether the name is known.
            pub fn set(&mut self, name: &str) -> bool {
                match name {
                    $($name => self.$field = true,)*
                    _ => return false,
                }
                true
            }
        }
    };
}

prefetchers! {
    /// By instruction and stride, into the L1.
    l1_stride: "l1-stride",
    /// The next line, into the L1.
    l1_next: "l1-next",
    /// Streams of requests, into the L2.
    l2_stream: "l2-stream",
    /// The other line of a pair of which the L2 missed one, into the L2.
    l2_pair: "l2-pair",
}

/// The lines that prefetchers request at an access; later ones are dropped.
pub(crate) type Lines<const MOST: usize> = [Option<u64>; MOST];

/// The prefetchers of a core, with their tables.
#[derive(Clone, Debug)]
pub(crate) struct Prefetch {
    pub(crate) on: Prefetchers,
    strides: Strides,
    next_line: NextLine,
    streams: Streams,
    pairs: Pairs,
}

impl Prefetch {
    /// Makes untrained prefetchers: AMD's if `both_ways`, else Intel's.
    pub(crate) fn new(on: Prefetchers, both_ways: bool) -> Prefetch {
        Prefetch {
            on,
            strides: Strides::new(),
            next_line: NextLine::new(both_ways),
            streams: Streams::new(),
            pairs: Pairs::new(both_ways),
        }
    }

    /// Replaces the strides by a table of `entries`, a power of two.
    pub(crate) fn with_table(self, entries: usize) -> Prefetch {
        Prefetch { strides: Strides::table(entries), ..self }
    }

    /// Handles a load by the instruction at `pc` from physical address `address`; returns lines to
    /// fetch into the L1.
    pub(crate) fn loads(&mut self, pc: u64, address: u64) -> Lines<2> {
        let line = address >> 6;
        let stride = self.on.l1_stride.then(|| self.strides.load(pc, address)).flatten();
        let next = self.on.l1_next.then(|| self.next_line.load(address)).flatten();
        [stride, next].map(|ahead| ahead.filter(|ahead| *ahead != line && share_page(*ahead, line)))
    }

    /// Handles a request for `line` that reaches the L2, which has the line unless `misses`;
    /// returns lines to fetch into the L2.
    pub(crate) fn requests(&mut self, line: u64, misses: bool) -> Lines<3> {
        let pair = self.on.l2_pair.then(|| self.pairs.request(line, misses)).flatten();
        let [one, other] =
            if self.on.l2_stream { self.streams.request(line) } else { [None, None] };
        [one, other, pair].map(|ahead| ahead.filter(|ahead| share_page(*ahead, line)))
    }
}

#[cfg(test)]
mod tests;
