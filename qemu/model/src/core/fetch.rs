//! Fetch of lines of code, and their translations.

use super::{
    levels::Stream,
    state::{Core, LINE_BITS},
};
use crate::{
    access::{FetchedLine, ServedBy},
    assist::Assist,
    block::{Block, Privilege},
    signal::Signal,
    stacks::FetchWait,
    tlb::{Found, TlbLevel},
};

impl Core {
    /// Fetches the first line of a block that is about to run. Its other lines are fetched when an
    /// instruction in them is known to run.
    #[inline]
    pub fn fetch(&mut self, block: &Block) {
        self.lines_done = 1;
        if block.ring != self.ring {
            self.enter_ring(block.ring);
        }
        if let Some(engine) = &mut self.engine {
            engine.begin_block();
        }
        if self.is_resteered {
            self.resteer(block);
        }
        if block.lines.0 != self.fetched {
            self.fetch_line(block, 0);
        }
    }

    /// Fetches the block's first `lines` lines, except those already fetched.
    #[inline(never)]
    pub(super) fn fetch_rest(&mut self, block: &Block, lines: u32) {
        while self.lines_done < lines {
            let ordinal = self.lines_done;
            self.lines_done += 1;
            self.fetch_line(block, ordinal);
        }
    }

    #[cold]
    fn resteer(&mut self, block: &Block) {
        self.is_resteered = false;
        let cycles = self.geometry.latency.resteer_cycles;
        self.starve(block, 0, FetchWait::Resteer, cycles);
    }

    fn fetch_line(&mut self, block: &Block, ordinal: u32) {
        let (page, line) = block.line(ordinal);
        self.fetched = line;
        let line = line & ((1 << LINE_BITS) - 1);
        if self.geometry.assist == Some(Assist::Code) {
            self.fetch_next_line(line);
        }
        let translation = if page == self.fetched_page {
            self.bump(block.ring, Signal::FETCH_HITS[self.fetched_size as usize]);
            (0, false)
        } else {
            self.fetched_page = page;
            self.translate_fetch(block, ordinal, page, line >> 6)
        };
        let source = self.look_up_code(block.ring, line);
        if self.noted.is_on {
            self.note_fetch(block, (page, line), source, translation);
        }
        let Some(source) = source else { return };
        // Fetch runs ahead of the pipeline by about half of the L2's latency.
        let cycles = self.latency(source) - self.geometry.latency.l2_cycles / 2;
        self.starve(block, ordinal, FetchWait::Code(source), cycles);
        self.fetch_code_ahead();
    }

    /// Notes a fetch for a sample.
    #[cold]
    fn note_fetch(
        &mut self,
        block: &Block,
        (page, line): (u64, u64),
        missed_to: Option<ServedBy>,
        translation: (u32, bool),
    ) {
        let start = page << 12 | (line & 63) << 6;
        let address = if start >> 6 == block.pc >> 6 { block.pc } else { start };
        let waited = missed_to.map_or(0, |level| self.latency(level));
        self.noted.fetched = Some(FetchedLine {
            address,
            physical: line << 6 | address & 63,
            missed_to,
            translation,
            latency_cycles: waited + translation.0,
        });
    }

    /// Looks a line of code up in the L1, and on a miss in the levels beyond. Returns the level
    /// that served a miss.
    pub(super) fn look_up_code(&mut self, ring: Privilege, line: u64) -> Option<ServedBy> {
        let is_there = self.l1i.touch(line);
        if is_there || self.geometry.perfect.l1i {
            if !is_there {
                self.lookup(line, Stream::Code);
            }
            self.bump(ring, Signal::L1iHit);
            return None;
        }
        self.bump(ring, Signal::L1iMiss);
        let served = [Signal::L2CodeHit, Signal::LlcCodeHit, Signal::LlcCodeMiss];
        Some(self.beyond_l1(ring, line, Stream::Code, served))
    }

    /// Passes the lines of code that prefetchers have just requested to the pipeline.
    pub(super) fn fetch_code_ahead(&mut self) {
        if let Some(engine) = &mut self.engine {
            engine.fetch_code_ahead(&self.ahead);
        }
        self.ahead.clear();
    }

    /// The table's assist of the L1 instruction cache: inserts the line after `line` at once. The
    /// request is counted nowhere.
    #[cold]
    fn fetch_next_line(&mut self, line: u64) {
        let next = line + 1;
        if !next.is_multiple_of(64) && !self.l1i.touch(next) {
            self.lookup(next, Stream::Code);
        }
    }

    /// Translates a page; returns the cycles beyond the first-level TLB, and whether there was a
    /// walk.
    fn translate_fetch(
        &mut self,
        block: &Block,
        ordinal: u32,
        page: u64,
        frame: u64,
    ) -> (u32, bool) {
        let perfect = self.geometry.perfect;
        let stlb_cycles = self.geometry.latency.stlb_cycles;
        let sizes = self.page_sizes;
        let Found { level, size, .. } = self.tlbs.code(page, || (frame, sizes.at(page << 12)));
        self.fetched_size = size;
        match level {
            TlbLevel::Second if !perfect.itlb => {
                self.bump(block.ring, Signal::ItlbStlbHit);
                self.starve(block, ordinal, FetchWait::Translation, stlb_cycles);
                (stlb_cycles, false)
            }
            TlbLevel::Walk if !perfect.itlb && perfect.stlb => {
                self.bump(block.ring, Signal::ItlbStlbHit);
                self.starve(block, ordinal, FetchWait::Translation, stlb_cycles);
                (stlb_cycles, false)
            }
            TlbLevel::Walk if !perfect.itlb => {
                let cycles = self.walk(block.ring, page, size);
                self.bump(block.ring, Signal::FETCH_WALKS[size as usize]);
                self.add(block.ring, Signal::ItlbWalkCycles, u64::from(cycles));
                self.starve(block, ordinal, FetchWait::Translation, cycles);
                (cycles, true)
            }
            _ => {
                self.bump(block.ring, Signal::FETCH_HITS[size as usize]);
                (0, false)
            }
        }
    }

    /// Makes fetch wait for line `ordinal` of the block.
    fn starve(&mut self, block: &Block, ordinal: u32, wait: FetchWait, cycles: u32) {
        self.starve_at(block.ring, wait, cycles, || block.first_in_line(ordinal));
    }

    /// Makes fetch wait at the instruction of a block that `insn` finds.
    pub(super) fn starve_at(
        &mut self,
        ring: Privilege,
        wait: FetchWait,
        cycles: u32,
        insn: impl FnOnce() -> usize,
    ) {
        if let Some(engine) = &mut self.engine {
            engine.starve(insn(), wait, cycles);
        }
        if !self.is_out_of_order {
            self.charge_code(ring, wait, cycles);
        }
    }
}
