//! Loads and stores, and their translations.

use super::{levels::Stream, state::Core};
use crate::{
    access::{Access, Ahead, DataAccess, ServedBy},
    block::{Block, Insn, Privilege},
    ooo::Touch,
    signal::Signal,
    tlb::{Found, TlbLevel},
};

/// The signal of accesses that cross a cache line.
pub(super) const fn crossed<const STORE: bool>() -> Signal {
    if STORE { Signal::SplitStores } else { Signal::SplitLoads }
}

/// The signal of accesses that take a page walk.
pub(super) const fn walked<const STORE: bool>() -> Signal {
    if STORE { Signal::StoresWalked } else { Signal::LoadsWalked }
}

/// Result of a look-up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touched {
    /// The physical line.
    pub(super) line: u64,
    /// The level that served the access.
    pub(super) by: ServedBy,
    /// Cycles of the translation beyond the first-level TLB.
    pub(super) walk_cycles: u32,
    /// Whether a page walk was among them.
    pub(super) walks: bool,
}

impl Core {
    /// Fast path of [`Core::access`], as small as possible: a whole load or store in one line that
    /// is the most recent everywhere, so that only counts change. Returns whether it applied; if
    /// not, nothing has changed.
    #[inline(always)]
    pub fn access_recent<const STORE: bool>(&mut self, ring: Privilege, address: u64) -> bool {
        let line = address >> 6;
        if line != self.touched {
            let Some(frame) = self.tlbs.recent_data(address >> 12) else { return false };
            if !self.l1d.is_recent(frame << 6 | line & 63) || self.all_accesses != 0 {
                return false;
            }
            self.touched = line;
        }
        self.served::<STORE>(ring, true, ServedBy::L1);
        true
    }

    /// Handles a memory access of an instruction of `block`: a store if `STORE`, else a load.
    /// `translate` gives the physical address of a virtual one.
    pub fn access<const STORE: bool>(
        &mut self,
        block: &Block,
        access: Access,
        translate: impl Fn(u64) -> u64,
    ) {
        if block.insns().get(access.insn).is_some_and(|insn| insn.string.is_some()) {
            return self.access_string::<STORE>(block, access, &translate);
        }
        let (mut latency, mut walks) = self.touch_data::<STORE>(block, access, &translate);
        if !access.ends_in_line() {
            let (second_latency, second_walks) = self.split::<STORE>(block, access, &translate);
            latency = latency.max(second_latency);
            walks |= second_walks;
        }
        if walks && access.retires {
            self.bump(block.ring, walked::<STORE>());
        }
        if !STORE && latency > self.slow_load_cycles && access.retires {
            self.bump(block.ring, Signal::SlowLoads);
        }
    }

    /// Handles the second half of an access that crosses a cache line; returns its latency in
    /// cycles and whether it took a page walk.
    #[cold]
    fn split<const STORE: bool>(
        &mut self,
        block: &Block,
        access: Access,
        translate: &impl Fn(u64) -> u64,
    ) -> (u32, bool) {
        if access.retires {
            self.bump(block.ring, crossed::<STORE>());
        }
        self.touch_data::<STORE>(block, access.behind_line(), translate)
    }

    /// Counts a load by the level that served it, or a store.
    #[inline]
    pub(super) fn served<const STORE: bool>(
        &mut self,
        ring: Privilege,
        retires: bool,
        by: ServedBy,
    ) {
        let load = match by {
            ServedBy::L1 => Signal::LoadL1Hit,
            ServedBy::L2 => Signal::LoadL2Hit,
            ServedBy::Llc => Signal::LoadL3Hit,
            ServedBy::Memory => Signal::LoadL3Miss,
        };
        self.add(ring, if STORE { Signal::Stores } else { load }, retires.into());
    }

    /// Touches the line of an access, with its time; returns its latency in cycles and whether it
    /// took a page walk.
    #[inline]
    fn touch_data<const STORE: bool>(
        &mut self,
        block: &Block,
        access: Access,
        translate: &impl Fn(u64) -> u64,
    ) -> (u32, bool) {
        let touched = self.look_up::<STORE>(block, access, translate);
        let Touched { line, by, walk_cycles, walks } = touched;
        self.served::<STORE>(block.ring, access.retires, by);
        let latency = self.latency(by) + walk_cycles;
        if self.noted.is_on {
            self.note::<STORE>(block, access, &touched);
        }
        if walk_cycles != 0 {
            self.expose::<STORE>(block, Signal::StallDtlb, walk_cycles);
        }
        if by != ServedBy::L1 {
            self.expose::<STORE>(block, by.stall(), self.latency(by));
        }
        if let Some(engine) = &mut self.engine {
            let touch = Touch { access, store: STORE, line, by, walk_cycles, ahead: (0, 0) };
            engine.touch(touch, &self.ahead);
            self.ahead.clear();
        }
        (latency, walks)
    }

    /// Notes an access for a precise record.
    #[cold]
    fn note<const STORE: bool>(&mut self, block: &Block, access: Access, touched: &Touched) {
        let Touched { line, by, walk_cycles, walks } = *touched;
        let locked = |insn: &Insn| insn.adds >> Signal::Locked as u32 & 1 == 1;
        let data = DataAccess {
            address: access.address,
            is_store: STORE,
            by,
            latency_cycles: self.latency(by) + walk_cycles,
            tlb_cycles: walk_cycles,
            walks,
            is_locked: block.insns().get(access.insn).is_some_and(locked),
            physical: line << 6 | access.address & 63,
            bytes: access.bytes.min(64) as u8,
            stores_too: false,
        };
        self.noted.note(access.insn, data);
    }

    /// Looks up the line of an access, and inserts it where it is missing.
    #[inline(always)] // Into `touch_data`.
    pub(super) fn look_up<const STORE: bool>(
        &mut self,
        block: &Block,
        access: Access,
        translate: &impl Fn(u64) -> u64,
    ) -> Touched {
        self.touched = access.address >> 6 | self.all_accesses;
        let (frame, walk_cycles, walks) = match self.tlbs.data(access.address >> 12) {
            Some(frame) => (frame, 0, false),
            None => self.data_tlb_miss::<STORE>(block, access, translate),
        };
        let line = frame << 6 | access.address >> 6 & 63;
        let by = if self.l1d.find(line) {
            ServedBy::L1
        } else {
            self.data_miss::<STORE>(block, access, line)
        };
        if !STORE && self.prefetch.is_some() {
            self.prefetch_into_l1(block, access, line);
        }
        Touched { line, by, walk_cycles, walks }
    }

    /// Shows the L1's prefetchers a load from `line`.
    #[cold]
    fn prefetch_into_l1(&mut self, block: &Block, access: Access, line: u64) {
        let Some(prefetch) = &mut self.prefetch else { return };
        let pc = block.insns().get(access.insn).map_or(0, |insn| insn.pc);
        let lines = prefetch.loads(pc, line << 6 | access.address & 63);
        for line in lines.into_iter().flatten() {
            if self.geometry.perfect.l1d || self.l1d.find(line) {
                continue;
            }
            self.fetch_rest(block, block.lines_through(access.insn));
            self.l1d.fill(line);
            let served =
                [Signal::L1PrefetchL2Hit, Signal::L1PrefetchLlcHit, Signal::L1PrefetchLlcMiss];
            let by = self.beyond_l1(block.ring, line, Stream::Data, served);
            self.fetch_ahead(Ahead { line, by, into_l1: true });
        }
    }

    /// Translates through the second-level TLB or a page walk; returns the frame, the cycles, and
    /// whether there was a walk.
    #[cold]
    fn data_tlb_miss<const STORE: bool>(
        &mut self,
        block: &Block,
        access: Access,
        translate: &impl Fn(u64) -> u64,
    ) -> (u64, u32, bool) {
        self.fetch_rest(block, block.lines_through(access.insn));
        let page = access.address >> 12;
        let perfect = self.geometry.perfect;
        let stlb_cycles = self.geometry.latency.stlb_cycles;
        let sizes = self.page_sizes;
        let walk = || (translate(access.address) >> 12, sizes.at(access.address));
        let Found { frame, level, size } = self.tlbs.refill_data(page, walk);
        if perfect.dtlb {
            return (frame, 0, false);
        }
        let (hits, walks, walk_cycles) = if STORE {
            (Signal::STORE_STLB_HITS, Signal::STORE_WALKS, Signal::DtlbStoreWalkCycles)
        } else {
            (Signal::LOAD_STLB_HITS, Signal::LOAD_WALKS, Signal::DtlbLoadWalkCycles)
        };
        if level == TlbLevel::Second || perfect.stlb {
            self.bump(block.ring, hits[size as usize]);
            return (frame, stlb_cycles, false);
        }
        let cycles = self.walk(block.ring, page, size);
        self.bump(block.ring, walks[size as usize]);
        self.add(block.ring, walk_cycles, u64::from(cycles));
        (frame, stlb_cycles + cycles, true)
    }

    /// Inserts a line into the L1; returns the level that had it.
    fn data_miss<const STORE: bool>(
        &mut self,
        block: &Block,
        access: Access,
        line: u64,
    ) -> ServedBy {
        if block.line_count() > self.lines_done {
            self.fetch_rest(block, block.lines_through(access.insn));
        }
        self.l1d.fill(line);
        if self.geometry.perfect.l1d {
            self.lookup(line, Stream::Data);
            return ServedBy::L1;
        }
        self.bump(block.ring, Signal::L1dFills);
        let served = if STORE {
            [Signal::L2RfoHit, Signal::LlcRfoHit, Signal::LlcRfoMiss]
        } else {
            [Signal::L2ReadHit, Signal::LlcReadHit, Signal::LlcReadMiss]
        };
        self.beyond_l1(block.ring, line, Stream::Data, served)
    }

    /// Charges the exposed part of a penalty, in the interval pipeline.
    fn expose<const STORE: bool>(&mut self, block: &Block, cause: Signal, cycles: u32) {
        if !self.is_out_of_order {
            self.charge_data::<STORE>(block, cause, cycles);
        }
    }
}
