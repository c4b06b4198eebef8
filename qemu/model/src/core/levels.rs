//! The levels beyond the first, and page walks, which read through them.

use super::state::{Core, WALK_LINE_BITS};
use crate::{
    access::{Ahead, ServedBy},
    block::Privilege,
    geometry::WALK_BASE_CYCLES,
    page::PageSize,
    signal::Signal,
};

/// Purpose of an access to a level beyond the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Code,
    Data,
    PageTable,
}

impl Core {
    /// Walks the page tables: reads their entries through the caches. Returns the walk's cycles.
    /// The last entry of a large page is one level higher, or two. Entries above it are assumed to
    /// be cached in the walker, as are those above the last two levels for a page of 4 KiB.
    pub(super) fn walk(&mut self, ring: Privilege, page: u64, size: PageSize) -> u32 {
        // A substitute for the entry's address with the same locality, beyond all lines of memory.
        let table = 1 << (WALK_LINE_BITS - 2) | self.space << 26;
        let entry = |entries: u64| table | (entries ^ entries >> 26) & 0x3ff_ffff;
        // Lines of directory entries have 24 bits of the page's number, those of the level
        // above 15.
        const DIRECTORY: u64 = 1 << (WALK_LINE_BITS - 1);
        const ABOVE: u64 = DIRECTORY | 1 << 25;
        let mut cycles = WALK_BASE_CYCLES;
        let leaf = match size {
            PageSize::Small => {
                if !self.tlbs.walker_has(page) {
                    cycles += self.walker_read(ring, entry(page >> 12) | DIRECTORY);
                }
                entry(page >> 3)
            }
            PageSize::Large => entry(page >> 12) | DIRECTORY,
            PageSize::Huge => entry(page >> 21) | ABOVE,
        };
        cycles + self.walker_read(ring, leaf)
    }

    fn walker_read(&mut self, ring: Privilege, line: u64) -> u32 {
        self.bump(ring, Signal::L2WalkReads);
        let source = self.lookup(line, Stream::PageTable);
        self.latency(source)
    }

    /// The level beyond the L1 that has a line. Counts it by one of the signals `served`: for the
    /// L2, the last-level cache, and memory.
    pub(super) fn beyond_l1(
        &mut self,
        ring: Privilege,
        line: u64,
        stream: Stream,
        served: [Signal; 3],
    ) -> ServedBy {
        let source = self.lookup(line, stream);
        let [l2, llc, memory] = served;
        self.bump(
            ring,
            match source {
                ServedBy::L1 | ServedBy::L2 => l2,
                ServedBy::Llc => llc,
                ServedBy::Memory => memory,
            },
        );
        if self.prefetch.is_some() {
            self.prefetch_into_l2(ring, line, source, stream);
        }
        source
    }

    /// Shows the L2's prefetchers a request that `source` served.
    #[cold]
    pub(super) fn prefetch_into_l2(
        &mut self,
        ring: Privilege,
        line: u64,
        source: ServedBy,
        stream: Stream,
    ) {
        let Some(prefetch) = &mut self.prefetch else { return };
        let lines = prefetch.requests(line, source > ServedBy::L2);
        let [hit, miss] = match stream {
            Stream::Code => [Signal::L2PrefetchCodeHit, Signal::L2PrefetchCodeMiss],
            Stream::Data | Stream::PageTable => {
                [Signal::L2PrefetchLlcHit, Signal::L2PrefetchLlcMiss]
            }
        };
        for line in lines.into_iter().flatten() {
            let by = self.lookup(line, stream);
            if by > ServedBy::L2 {
                self.bump(ring, if by == ServedBy::Llc { hit } else { miss });
                self.fetch_ahead(Ahead { line, by, into_l1: false });
            }
        }
    }

    /// Notes a prefetcher's request, if the engine or a string instruction times it.
    pub(super) fn fetch_ahead(&mut self, ahead: Ahead) {
        if self.engine.is_some() || self.string.is_touching {
            self.ahead.push(ahead);
        }
    }

    /// The level beyond the L1 that has a line. Inserts the line into the L2. A perfect level has
    /// every line, but the levels behind it fill as behind a real one: code hits lines that data
    /// accesses brought in.
    pub(super) fn lookup(&mut self, line: u64, stream: Stream) -> ServedBy {
        let perfect = self.geometry.perfect;
        let (l2, llc) = match stream {
            Stream::Code => (perfect.l2i, perfect.llci),
            Stream::Data => (perfect.l2d, perfect.llcd),
            Stream::PageTable => (false, false),
        };
        if self.l2.touch(line) {
            return ServedBy::L2;
        }
        let is_in_llc = self.llc.touch(line);
        if perfect.l2 || l2 {
            ServedBy::L2
        } else if is_in_llc || perfect.llc || llc {
            ServedBy::Llc
        } else {
            ServedBy::Memory
        }
    }

    /// Latency of data from a level, in cycles.
    pub(super) fn latency(&self, source: ServedBy) -> u32 {
        let latency = &self.geometry.latency;
        match source {
            ServedBy::L1 => latency.l1_cycles,
            ServedBy::L2 => latency.l2_cycles,
            ServedBy::Llc => latency.llc_cycles,
            ServedBy::Memory => latency.memory_cycles,
        }
    }
}
