//! Data: loads and stores, their translations, and the levels beyond the first.

use super::{Access, Core, Source};
use crate::{Block, Ring, Signal, ooo::Touch, tlb::Found};

/// Cycles of a page walk beside its reads of page-table entries.
const WALK_BASE_CYCLES: u32 = 6;

impl Core {
    /// The common case of [`Core::access`], as small as it can be: a whole load or store in one line
    /// that is the most recent everywhere already, so that nothing but counts changes. Whether it was
    /// that; if not, nothing was done.
    #[inline(always)]
    pub fn access_recent<const STORE: bool>(&mut self, ring: Ring, address: u64) -> bool {
        let line = address >> 6;
        if line != self.touched {
            let Some(frame) = self.tlbs.recent_data(address >> 12) else { return false };
            if !self.l1d.is_recent(frame << 6 | line & 63) || self.sees_all != 0 {
                return false;
            }
            self.touched = line;
        }
        self.served::<STORE>(ring, true, Source::L1);
        true
    }

    /// An instruction of `block` reads or, if `STORE`, writes memory; `translate` gives the physical
    /// address of a virtual one.
    pub fn access<const STORE: bool>(
        &mut self,
        block: &Block,
        access: Access,
        translate: impl Fn(u64) -> u64,
    ) {
        self.touch_data::<STORE>(block, access, &translate);
        if !access.ends_in_line() {
            self.split::<STORE>(block, access, &translate);
        }
    }

    /// The second half of an access that crosses a cache line.
    #[cold]
    fn split<const STORE: bool>(
        &mut self,
        block: &Block,
        access: Access,
        translate: &impl Fn(u64) -> u64,
    ) {
        if access.retires {
            self.bump(block.ring, if STORE { Signal::SplitStores } else { Signal::SplitLoads });
        }
        let address = (access.address | 63).wrapping_add(1);
        let bytes = (access.address + access.bytes).wrapping_sub(address);
        let rest = Access { address, bytes, retires: false, ..access };
        self.touch_data::<STORE>(block, rest, translate);
    }

    /// Counts a load by where it was served, or a store.
    #[inline]
    fn served<const STORE: bool>(&mut self, ring: Ring, retires: bool, by: Source) {
        let load = match by {
            Source::L1 => Signal::LoadL1Hit,
            Source::L2 => Signal::LoadL2Hit,
            Source::Llc => Signal::LoadL3Hit,
            Source::Memory => Signal::LoadL3Miss,
        };
        self.add(ring, if STORE { Signal::Stores } else { load }, retires.into());
    }

    #[inline]
    fn touch_data<const STORE: bool>(
        &mut self,
        block: &Block,
        access: Access,
        translate: &impl Fn(u64) -> u64,
    ) {
        self.touched = access.address >> 6 | self.sees_all;
        let mut walk_cycles = 0;
        let frame = match self.tlbs.data(access.address >> 12) {
            Some(frame) => frame,
            None => {
                let (frame, cycles) = self.data_tlb_miss::<STORE>(block, access, translate);
                walk_cycles = cycles;
                frame
            }
        };
        let line = frame << 6 | access.address >> 6 & 63;
        let by = match self.l1d.find(line) {
            true => Source::L1,
            false => self.data_miss::<STORE>(block, access, line),
        };
        self.served::<STORE>(block.ring, access.retires, by);
        if let Some(engine) = &mut self.engine {
            let repeats = block.insns().get(access.insn).is_some_and(|insn| insn.repeats);
            engine.touch(Touch { access, store: STORE, line, by, walk_cycles }, repeats);
        }
    }

    /// Answers the frame and the cycles that translation took.
    #[cold]
    fn data_tlb_miss<const STORE: bool>(
        &mut self,
        block: &Block,
        access: Access,
        translate: &impl Fn(u64) -> u64,
    ) -> (u64, u32) {
        self.fetch_rest(block, block.lines_through(access.insn));
        let page = access.address >> 12;
        let perfect = self.geometry.perfect;
        let stlb_cycles = self.geometry.latency.stlb_cycles;
        let (frame, found) = self.tlbs.refill_data(page, || translate(access.address) >> 12);
        if perfect.dtlb {
            return (frame, 0);
        }
        let (hit, walks, walk_cycles) = if STORE {
            (Signal::DtlbStoreStlbHit, Signal::DtlbStoreWalks, Signal::DtlbStoreWalkCycles)
        } else {
            (Signal::DtlbLoadStlbHit, Signal::DtlbLoadWalks, Signal::DtlbLoadWalkCycles)
        };
        if found == Found::Second || perfect.stlb {
            self.bump(block.ring, hit);
            self.expose(
                block.ring,
                Signal::StallDtlb,
                stlb_cycles / if access.chases { 1 } else { 2 },
            );
            return (frame, stlb_cycles);
        }
        let cycles = self.walk(block.ring, page);
        self.bump(block.ring, walks);
        self.add(block.ring, walk_cycles, u64::from(cycles));
        // A store's walk is behind the retirement; a load's hides about half of itself.
        let shown = match (STORE, access.chases) {
            (true, _) => cycles / 8,
            (false, true) => cycles,
            (false, false) => cycles / 2,
        };
        self.expose(block.ring, Signal::StallDtlb, shown);
        (frame, stlb_cycles + cycles)
    }

    /// A page walk: its reads of page-table entries go through the caches. Answers its cycles.
    pub(super) fn walk(&mut self, ring: Ring, page: u64) -> u32 {
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
        let source = self.lookup(line);
        self.latency(source)
    }

    /// Brings a line into the L1; answers where it was.
    fn data_miss<const STORE: bool>(&mut self, block: &Block, access: Access, line: u64) -> Source {
        if self.geometry.perfect.l1d {
            return Source::L1;
        }
        if block.line_count() > self.lines_done {
            self.fetch_rest(block, block.lines_through(access.insn));
        }
        self.l1d.fill(line);
        self.bump(block.ring, Signal::L1dFills);
        let served = match STORE {
            true => [Signal::L2RfoHit, Signal::LlcRfoHit, Signal::LlcRfoMiss],
            false => [Signal::L2ReadHit, Signal::LlcReadHit, Signal::LlcReadMiss],
        };
        let source = self.beyond_l1(block.ring, line, served);
        if self.engine.is_none() {
            let cycles = self.exposed_cycles::<STORE>(block, access, source);
            self.stall(block.ring, source.stall(), cycles);
        }
        source
    }

    /// Where a line beyond the L1 was, counted by one of three signals: for the L2, the last-level
    /// cache, and memory.
    pub(super) fn beyond_l1(&mut self, ring: Ring, line: u64, served: [Signal; 3]) -> Source {
        let source = self.lookup(line);
        let [l2, llc, memory] = served;
        self.bump(
            ring,
            match source {
                Source::L1 | Source::L2 => l2,
                Source::Llc => llc,
                Source::Memory => memory,
            },
        );
        source
    }

    /// Where a line beyond the L1 is; it is in the L2 afterwards.
    fn lookup(&mut self, line: u64) -> Source {
        let perfect = self.geometry.perfect;
        if self.l2.touch(line) || perfect.l2 {
            Source::L2
        } else if self.llc.touch(line) || perfect.llc {
            Source::Llc
        } else {
            Source::Memory
        }
    }

    /// What shows of a penalty, where the pipeline goes by penalties.
    fn expose(&mut self, ring: Ring, cause: Signal, cycles: u32) {
        if self.engine.is_none() {
            self.stall(ring, cause, cycles);
        }
    }
}
