//! Loads and stores, and their translations.

use super::{
    levels::Stream,
    state::{Core, StringAccess, StringAccesses},
};
use crate::{
    access::{Access, Ahead, ServedBy},
    block::{Block, Privilege},
    ooo::Touch,
    signal::Signal,
    tlb::{Found, TlbLevel},
};

/// The signal of accesses that cross a cache line.
const fn crossed<const STORE: bool>() -> Signal {
    if STORE { Signal::SplitStores } else { Signal::SplitLoads }
}

/// The signal of accesses that take a page walk.
const fn walked<const STORE: bool>() -> Signal {
    if STORE { Signal::StoresWalked } else { Signal::LoadsWalked }
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
        let string = self.geometry.string_is_one_access
            && block.insns().get(access.insn).is_some_and(|insn| insn.repeats);
        let access = Access { retires: access.retires && !string, ..access };
        // Covers pages of any size: every walk takes cycles.
        let walks = if STORE { Signal::DtlbStoreWalkCycles } else { Signal::DtlbLoadWalkCycles };
        let before = self.counts[block.ring as usize][walks];
        let by = self.touch_data::<STORE>(block, access, &translate);
        let crosses = !access.ends_in_line();
        if crosses {
            self.split::<STORE>(block, access, &translate);
        }
        let walks = self.counts[block.ring as usize][walks] != before;
        let whole = StringAccess { by: Some(by), crosses, walks };
        if string {
            self.defer::<STORE>(block, access.insn, whole);
        } else if walks && access.retires {
            self.bump(block.ring, walked::<STORE>());
        }
    }

    /// Notes an access of a repeated string instruction, which is counted when the instruction
    /// retires.
    fn defer<const STORE: bool>(&mut self, block: &Block, insn: usize, access: StringAccess) {
        let of = Some((block.insns()[insn].pc, block.ring));
        if self.string.of != of {
            // If an interrupt ended the previous instruction, only the accesses after it count.
            self.string = StringAccesses { of, ..StringAccesses::default() };
        }
        let all = &mut self.string.kinds[usize::from(STORE)];
        all.by = all.by.max(access.by);
        all.crosses |= access.crosses;
        all.walks |= access.walks;
    }

    /// Counts the accesses of the repeated string instruction at the end of `block`, which retires.
    #[cold]
    pub(super) fn retire_string(&mut self, block: &Block) {
        let ends =
            |(pc, ring)| ring == block.ring && block.insns().last().map(|i| i.pc) == Some(pc);
        if !self.string.of.is_some_and(ends) {
            return;
        }
        let [loads, stores] = std::mem::take(&mut self.string).kinds;
        self.retire_accesses::<false>(block.ring, loads);
        self.retire_accesses::<true>(block.ring, stores);
    }

    fn retire_accesses<const STORE: bool>(&mut self, ring: Privilege, all: StringAccess) {
        let Some(by) = all.by else { return };
        self.served::<STORE>(ring, true, by);
        if all.crosses {
            self.bump(ring, crossed::<STORE>());
        }
        if all.walks {
            self.bump(ring, walked::<STORE>());
        }
    }

    /// Handles the second half of an access that crosses a cache line.
    #[cold]
    fn split<const STORE: bool>(
        &mut self,
        block: &Block,
        access: Access,
        translate: &impl Fn(u64) -> u64,
    ) {
        if access.retires {
            self.bump(block.ring, crossed::<STORE>());
        }
        let address = (access.address | 63).wrapping_add(1);
        let bytes = access.address.wrapping_add(access.bytes).wrapping_sub(address);
        let rest = Access { address, bytes, retires: false, ..access };
        self.touch_data::<STORE>(block, rest, translate);
    }

    /// Counts a load by the level that served it, or a store.
    #[inline]
    fn served<const STORE: bool>(&mut self, ring: Privilege, retires: bool, by: ServedBy) {
        let load = match by {
            ServedBy::L1 => Signal::LoadL1Hit,
            ServedBy::L2 => Signal::LoadL2Hit,
            ServedBy::Llc => Signal::LoadL3Hit,
            ServedBy::Memory => Signal::LoadL3Miss,
        };
        self.add(ring, if STORE { Signal::Stores } else { load }, retires.into());
    }

    #[inline]
    fn touch_data<const STORE: bool>(
        &mut self,
        block: &Block,
        access: Access,
        translate: &impl Fn(u64) -> u64,
    ) -> ServedBy {
        self.touched = access.address >> 6 | self.all_accesses;
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
        let by = if self.l1d.find(line) {
            ServedBy::L1
        } else {
            self.data_miss::<STORE>(block, access, line)
        };
        self.served::<STORE>(block.ring, access.retires, by);
        if !STORE && self.prefetch.is_some() {
            self.prefetch_into_l1(block, access, line);
        }
        if let Some(engine) = &mut self.engine {
            let repeats = block.insns().get(access.insn).is_some_and(|insn| insn.repeats);
            let touch = Touch { access, store: STORE, line, by, walk_cycles, ahead: (0, 0) };
            engine.touch(touch, &self.ahead, repeats);
            self.ahead.clear();
        }
        by
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

    /// Translates through the second-level TLB or a page walk; returns the frame and the cycles.
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
        let sizes = self.page_sizes;
        let walk = || (translate(access.address) >> 12, sizes.at(access.address));
        let Found { frame, level, size } = self.tlbs.refill_data(page, walk);
        if perfect.dtlb {
            return (frame, 0);
        }
        let (hits, walks, walk_cycles) = if STORE {
            (Signal::STORE_STLB_HITS, Signal::STORE_WALKS, Signal::DtlbStoreWalkCycles)
        } else {
            (Signal::LOAD_STLB_HITS, Signal::LOAD_WALKS, Signal::DtlbLoadWalkCycles)
        };
        if level == TlbLevel::Second || perfect.stlb {
            self.bump(block.ring, hits[size as usize]);
            self.expose::<STORE>(block, Signal::StallDtlb, stlb_cycles);
            return (frame, stlb_cycles);
        }
        let cycles = self.walk(block.ring, page, size);
        self.bump(block.ring, walks[size as usize]);
        self.add(block.ring, walk_cycles, u64::from(cycles));
        self.expose::<STORE>(block, Signal::StallDtlb, stlb_cycles + cycles);
        (frame, stlb_cycles + cycles)
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
        let source = self.beyond_l1(block.ring, line, Stream::Data, served);
        self.expose::<STORE>(block, source.stall(), self.latency(source));
        source
    }

    /// Charges the exposed part of a penalty, in the interval pipeline.
    fn expose<const STORE: bool>(&mut self, block: &Block, cause: Signal, cycles: u32) {
        if !self.is_out_of_order {
            self.charge_data::<STORE>(block, cause, cycles);
        }
    }
}
