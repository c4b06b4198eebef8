//! A core's memory: fetch, data access, page walks, and what of their time shows.

use super::Core;
use crate::{Block, Ring, Signal, tlb::Found};

/// Share of a hidden miss's latency that still shows, as bandwidth: one part in this.
const OVERLAP: u32 = 12;
/// Load-to-use latency of the L1 data cache.
const L1_CYCLES: u32 = 5;
/// Cycles of a page walk beside its reads of page-table entries.
const WALK_BASE_CYCLES: u32 = 6;

/// One access to memory by an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Virtual address.
    pub address: u64,
    /// Size in bytes, a power of two.
    pub bytes: u64,
    /// Whether it is the instruction's first access of its kind: later parts of the same load or
    /// store move data but retire nothing.
    pub retires: bool,
    /// Whether it is a load whose address hangs on what it loaded the last time, so that nothing
    /// hides its latency.
    pub chases: bool,
}

impl Access {
    #[inline]
    fn ends_in_line(self) -> bool {
        (self.address & 63) + self.bytes <= 64
    }
}

/// Where data came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    L2,
    Llc,
    Memory,
}

impl Core {
    /// A block is about to run: fetches its lines.
    #[inline]
    pub fn fetch(&mut self, block: &Block) {
        let (first, last) = block.lines;
        if first != self.fetched {
            self.fetch_line(block.ring, block.pc >> 12, first);
        }
        let mut line = first;
        while line != last {
            // A block that crosses into a page elsewhere has its lines one after the other here.
            line = if last.wrapping_sub(line) < 64 { line + 1 } else { last };
            let page = (block.pc >> 6).wrapping_add(line.wrapping_sub(first)) >> 6;
            self.fetch_line(block.ring, page, line);
        }
        self.fetched = last;
    }

    fn fetch_line(&mut self, ring: Ring, page: u64, line: u64) {
        if page == self.fetched_page {
            self.bump(ring, Signal::ItlbHit);
        } else {
            self.fetched_page = page;
            self.translate_fetch(ring, page, line >> 6);
        }
        if self.l1i.touch(line) {
            return self.bump(ring, Signal::L1iHit);
        }
        self.bump(ring, Signal::L1iMiss);
        let source = self.beyond_l1(ring, line, Signal::L2CodeHit, Signal::L2CodeMiss);
        // Fetch runs ahead of the pipeline by about half of the L2's latency.
        let cycles = self.latency(source) - self.geometry.latency.l2_cycles / 2;
        self.stall(ring, Signal::StallL1i, cycles);
    }

    fn translate_fetch(&mut self, ring: Ring, page: u64, frame: u64) {
        match self.tlbs.code(page, frame) {
            Found::First => self.bump(ring, Signal::ItlbHit),
            Found::Second => {
                self.bump(ring, Signal::ItlbStlbHit);
                self.stall(ring, Signal::StallItlb, self.geometry.latency.stlb_cycles);
            }
            Found::Walk => {
                let cycles = self.walk(ring, page);
                self.bump(ring, Signal::ItlbWalks);
                self.add(ring, Signal::ItlbWalkCycles, u64::from(cycles));
                self.stall(ring, Signal::StallItlb, cycles);
            }
        }
    }

    /// An instruction reads or, if `STORE`, writes memory; `translate` gives the physical address of
    /// a virtual one.
    #[inline(always)] // The caller's common case is what is common here.
    pub fn access<const STORE: bool>(
        &mut self,
        ring: Ring,
        access: Access,
        translate: impl Fn(u64) -> u64,
    ) {
        if access.address >> 6 == self.touched && access.ends_in_line() {
            // The most recent everywhere already: touching it again changes nothing.
            return self.served::<STORE>(ring, access.retires, Signal::LoadL1Hit);
        }
        self.touch_data::<STORE>(ring, access, &translate);
        if !access.ends_in_line() {
            self.split::<STORE>(ring, access, &translate);
        }
    }

    /// The second half of an access that crosses a cache line.
    #[cold]
    fn split<const STORE: bool>(
        &mut self,
        ring: Ring,
        access: Access,
        translate: &impl Fn(u64) -> u64,
    ) {
        if access.retires {
            self.bump(ring, if STORE { Signal::SplitStores } else { Signal::SplitLoads });
        }
        let address = (access.address | 63).wrapping_add(1);
        self.touch_data::<STORE>(
            ring,
            Access { address, bytes: 1, retires: false, ..access },
            translate,
        );
    }

    /// Counts a load by where it was served, or a store.
    #[inline]
    fn served<const STORE: bool>(&mut self, ring: Ring, retires: bool, by: Signal) {
        self.add(ring, if STORE { Signal::Stores } else { by }, retires.into());
    }

    #[inline(never)]
    fn touch_data<const STORE: bool>(
        &mut self,
        ring: Ring,
        access: Access,
        translate: &impl Fn(u64) -> u64,
    ) {
        self.touched = access.address >> 6;
        let page = access.address >> 12;
        let (frame, found) = self.tlbs.data(page, || translate(access.address) >> 12);
        if found != Found::First {
            self.data_tlb_miss(ring, page, STORE, access.chases, found);
        }
        let line = frame << 6 | access.address >> 6 & 63;
        let by = match self.l1d.find(line) {
            true => Signal::LoadL1Hit,
            false => self.data_miss(ring, line, STORE, access.chases),
        };
        self.served::<STORE>(ring, access.retires, by);
    }

    fn data_tlb_miss(&mut self, ring: Ring, page: u64, store: bool, chases: bool, found: Found) {
        let (hit, walks, walk_cycles) = if store {
            (Signal::DtlbStoreStlbHit, Signal::DtlbStoreWalks, Signal::DtlbStoreWalkCycles)
        } else {
            (Signal::DtlbLoadStlbHit, Signal::DtlbLoadWalks, Signal::DtlbLoadWalkCycles)
        };
        if found == Found::Second {
            self.bump(ring, hit);
            let cycles = self.geometry.latency.stlb_cycles;
            return self.stall(ring, Signal::StallDtlb, if chases { cycles } else { cycles / 2 });
        }
        let cycles = self.walk(ring, page);
        self.bump(ring, walks);
        self.add(ring, walk_cycles, u64::from(cycles));
        // A store's walk is behind the retirement; a load's hides about half of itself.
        let shown = match (store, chases) {
            (true, _) => cycles / 8,
            (false, true) => cycles,
            (false, false) => cycles / 2,
        };
        self.stall(ring, Signal::StallDtlb, shown);
    }

    /// A page walk: its reads of page-table entries go through the caches. Answers its cycles.
    fn walk(&mut self, ring: Ring, page: u64) -> u32 {
        // The entry's real address is the guest's affair; this one has its locality, and room in a
        // cache's tag.
        let table = 1 << 40 | self.space << 26;
        let entry = |entries: u64| table | (entries ^ entries >> 26) & 0x3ff_ffff;
        let mut cycles = WALK_BASE_CYCLES;
        if !self.tlbs.walker_has(page) {
            cycles += self.walker_read(ring, entry(page >> 12) | 1 << 41);
        }
        cycles + self.walker_read(ring, entry(page >> 3))
    }

    fn walker_read(&mut self, ring: Ring, line: u64) -> u32 {
        self.bump(ring, Signal::L2WalkReads);
        if self.l2.touch(line) {
            return self.latency(Source::L2);
        }
        let source = if self.llc.0.touch(line) { Source::Llc } else { Source::Memory };
        self.latency(source)
    }

    /// Brings a line into the L1; answers the signal of a load that is served so.
    fn data_miss(&mut self, ring: Ring, line: u64, store: bool, chases: bool) -> Signal {
        self.l1d.fill(line);
        self.bump(ring, Signal::L1dFills);
        let (hit, miss) = match store {
            true => (Signal::L2RfoHit, Signal::L2RfoMiss),
            false => (Signal::L2ReadHit, Signal::L2ReadMiss),
        };
        let source = self.beyond_l1(ring, line, hit, miss);
        let (by, stall) = match source {
            Source::L2 => (Signal::LoadL2Hit, Signal::StallL2Hit),
            Source::Llc => (Signal::LoadL3Hit, Signal::StallL3Hit),
            Source::Memory => (Signal::LoadL3Miss, Signal::StallMemory),
        };
        let cycles = match chases {
            // The block's own time has the L1's latency.
            true => self.latency(source) - L1_CYCLES,
            false => self.exposed_cycles(source, store),
        };
        self.stall(ring, stall, cycles);
        by
    }

    /// What shows of a data miss, after what the reorder buffer hides.
    fn exposed_cycles(&mut self, source: Source, store: bool) -> u32 {
        let latency = self.latency(source);
        let ahead = self.geometry.reorder_uops / u32::from(self.geometry.width);
        if source == Source::L2 {
            return if store { 0 } else { latency / 4 };
        }
        if store || self.uops < self.shadow_ends_uops {
            return latency / OVERLAP;
        }
        self.shadow_ends_uops = self.uops + u64::from(self.geometry.reorder_uops);
        latency - (latency / 2).min(ahead / 2)
    }

    fn beyond_l1(&mut self, ring: Ring, line: u64, hit: Signal, miss: Signal) -> Source {
        if self.l2.touch(line) {
            self.bump(ring, hit);
            return Source::L2;
        }
        self.bump(ring, miss);
        if self.llc.0.touch(line) {
            self.bump(ring, Signal::LlcHit);
            return Source::Llc;
        }
        self.bump(ring, Signal::LlcMiss);
        Source::Memory
    }

    fn latency(&self, source: Source) -> u32 {
        match source {
            Source::L2 => self.geometry.latency.l2_cycles,
            Source::Llc => self.geometry.latency.llc_cycles,
            Source::Memory => self.geometry.latency.memory_cycles,
        }
    }
}
