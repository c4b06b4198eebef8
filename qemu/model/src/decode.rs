//! Decoding, and the cache of decoded micro-operations: Intel's decoded stream buffer, AMD's op
//! cache.
//!
//! An entry has consecutive micro-operations of one line of code. It is found by the address of the
//! first instruction in it. Fetch looks for an entry when it enters a line, by a branch or from the
//! line before, and for the next one when this one is delivered; a few in a row at most. The cache
//! delivers faster than dispatch consumes, so a hit causes no wait. At the first missing entry the
//! decoders take over for the rest of the line: they decode one fetch block per cycle, and a
//! limited number of instructions.

use crate::{
    geometry::{DecodeShape, Geometry},
    recency::Recency,
};

/// Maximum consecutive entries of a line. Sandy Bridge had three for 32 bytes (Intel,
/// "Optimization Reference Manual", "Decoded ICache").
const MOST_ENTRIES: u32 = 6;
/// Bits of the offset in a line.
const LINE_OFFSET_BITS: u32 = 6;
/// Bits of the offset in a page: the same under each mapping of a page.
const PAGE_OFFSET: u64 = 0xfff;

/// Indices of the sources of micro-operations.
pub(crate) const CACHE: usize = 0;
pub(crate) const DECODERS: usize = 1;

/// An instruction that fetch reaches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetched {
    /// The physical line of its first byte.
    pub(crate) line: u64,
    pub(crate) pc: u64,
    /// Length in bytes, at least 1.
    pub(crate) length: u64,
    /// Micro-operations in the fused domain.
    pub(crate) uops: u32,
    /// Whether the micro-operations come from the microcode sequencer.
    pub(crate) is_microcoded: bool,
}

/// Cost of delivering instructions. Pairs are by source: [`CACHE`] and [`DECODERS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) uops: [u32; 2],
    /// Look-ups of entries: hits and misses.
    pub(crate) lookups: [u32; 2],
    /// Cycles in which each source delivered anything.
    pub(crate) cycles: [u32; 2],
    /// Cycles in which each source delivered as much as dispatch takes.
    pub(crate) full: [u32; 2],
    /// Switches from the cache to the decoders, and cycles until the decoders delivered.
    pub(crate) switches: u32,
    pub(crate) switch_cycles: u32,
}

impl Delivery {
    /// Cycles for which fetch waits.
    fn waits(&self) -> u32 {
        self.cycles[DECODERS] + self.switch_cycles
    }
}

/// A core's decoders, and their cache.
#[derive(Clone, Debug)]
pub(crate) struct Decode {
    shape: DecodeShape,
    /// Micro-operations that dispatch takes in a cycle.
    width: u32,
    cache: Recency,
    /// The line that is being delivered, and the offset in its page of the next instruction.
    line: u64,
    next: u64,
    /// The present source: [`CACHE`] or [`DECODERS`].
    from: usize,
    /// The ordinal of the present entry in its line, and the micro-operations of it that were
    /// delivered.
    entry: u32,
    entry_uops: u32,
    /// Progress of block fetch and of decoding in consecutive code. Unit: instruction slots of the
    /// decoders; a cycle has as many as there are decoders.
    fetched: u32,
    decoded: u32,
    /// Micro-operations of the decoders' current cycle.
    uops: u32,
}

impl Decode {
    /// Makes the decoders of a core, if they are modelled.
    pub(crate) fn of(geometry: &Geometry) -> Option<Box<Decode>> {
        geometry.has_uop_cache.then(|| Box::new(Decode::new(geometry.decode, geometry.width)))
    }

    fn new(shape: DecodeShape, width: u16) -> Decode {
        Decode {
            shape,
            width: width.into(),
            cache: Recency::new(shape.sets, shape.ways),
            line: u64::MAX,
            next: u64::MAX,
            from: DECODERS,
            entry: 0,
            entry_uops: 0,
            fetched: 0,
            decoded: 0,
            uops: 0,
        }
    }

    /// Delivers the micro-operations of the next instruction, and adds the cost to `delivery`.
    /// Returns the cycles for which fetch waits.
    pub(crate) fn deliver(&mut self, insn: Fetched, delivery: &mut Delivery) -> u32 {
        let waited = delivery.waits();
        let follows = insn.pc & PAGE_OFFSET == self.next;
        let was_decoding = follows && self.from == DECODERS;
        if !follows || insn.line != self.line {
            (self.line, self.entry) = (insn.line, 0);
            self.begin_entry(insn, delivery);
        } else if self.needs_entry(insn) {
            self.entry += 1;
            self.begin_entry(insn, delivery);
        }
        self.next = insn.pc.wrapping_add(insn.length) & PAGE_OFFSET;
        // An instruction from the microcode sequencer has an entry to itself.
        let room = if insn.is_microcoded { u32::from(self.shape.entry_uops) } else { insn.uops };
        let before = self.entry_uops;
        self.entry_uops += room;
        let uops = if insn.is_microcoded { 0 } else { insn.uops };
        delivery.uops[self.from] += uops;
        if self.from == DECODERS {
            self.decode(insn, uops, was_decoding, delivery);
        } else if before < self.width && self.entry_uops >= self.width {
            delivery.full[CACHE] += 1;
        }
        delivery.waits() - waited
    }

    /// Returns whether the present entry has no room for an instruction.
    fn needs_entry(&self, insn: Fetched) -> bool {
        let most = u32::from(self.shape.entry_uops);
        let is_split = insn.is_microcoded && self.entry_uops > 0;
        is_split || self.entry_uops + insn.uops > most && self.entry_uops > 0
    }

    /// Begins an entry with an instruction, and selects the source.
    fn begin_entry(&mut self, insn: Fetched, delivery: &mut Delivery) {
        let was = self.from;
        self.entry_uops = 0;
        let is_there = self.entry < MOST_ENTRIES && {
            let set = (self.line % self.cache.sets() as u64) as usize;
            let offset = insn.pc & ((1 << LINE_OFFSET_BITS) - 1);
            let hit = self.cache.touch(set, (self.line << LINE_OFFSET_BITS | offset) + 1);
            delivery.lookups[usize::from(!hit)] += 1;
            hit
        };
        // The decoders finish a line that they have begun.
        let goes_on = self.entry == 0 || was == CACHE;
        self.from = if is_there && goes_on { CACHE } else { DECODERS };
        if self.from == CACHE {
            delivery.cycles[CACHE] += 1;
        } else if was == CACHE {
            delivery.switches += 1;
            delivery.switch_cycles += u32::from(self.shape.switch_cycles);
        }
    }

    /// Decodes an instruction. `follows` is whether the instruction before it was decoded too.
    /// Fetch and decoding overlap, and neither gets ahead of the other by more than a cycle.
    fn decode(&mut self, insn: Fetched, uops: u32, follows: bool, delivery: &mut Delivery) {
        let block = |address: u64| address / u64::from(self.shape.fetch_bytes);
        let a_cycle = u32::from(self.shape.decoders);
        if !follows {
            (self.fetched, self.decoded) = (0, 0);
        }
        let cycles = |decode: &Decode| decode.fetched.max(decode.decoded).div_ceil(a_cycle);
        let before = cycles(self);
        let last = block(insn.pc.wrapping_add(insn.length - 1));
        let first = if follows { block(insn.pc.wrapping_sub(1)) } else { block(insn.pc) };
        let blocks = last.wrapping_sub(first).min(1) as u32 + u32::from(!follows);
        self.fetched = (self.fetched + blocks * a_cycle).max(self.decoded.saturating_sub(a_cycle));
        self.decoded = (self.decoded + 1).max(self.fetched.saturating_sub(a_cycle));
        let passed = cycles(self) - before;
        if passed > 0 {
            self.uops = 0;
        }
        let of_cycle = self.uops;
        self.uops += uops;
        delivery.cycles[DECODERS] += passed;
        let is_full = of_cycle < self.width && self.uops >= self.width;
        delivery.full[DECODERS] += u32::from(is_full);
        // Only the difference matters, so neither grows without bound.
        let whole = self.fetched.min(self.decoded) / a_cycle * a_cycle;
        (self.fetched, self.decoded) = (self.fetched - whole, self.decoded - whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: DecodeShape = DecodeShape {
        sets: 4,
        ways: 8,
        entry_uops: 6,
        fetch_bytes: 16,
        decoders: 4,
        switch_cycles: 2,
    };

    fn insn(pc: u64, length: u64, uops: u32) -> Fetched {
        Fetched { line: pc >> 6, pc, length, uops, is_microcoded: false }
    }

    /// The sum over instructions of `length` bytes from `from` to `to`.
    fn run(decode: &mut Decode, [from, to]: [u64; 2], length: u64) -> Delivery {
        let mut sum = Delivery::default();
        for pc in (from..to).step_by(length as usize) {
            decode.deliver(insn(pc, length, 1), &mut sum);
        }
        sum
    }

    #[test]
    fn a_line_is_decoded_once_and_then_in_the_cache() {
        let mut decode = Decode::new(SHAPE, 5);
        let line = [0x1000, 0x1040];
        let first = run(&mut decode, line, 4);
        assert_eq!((first.uops, first.lookups), ([0, 16], [0, 3]));
        // Four blocks of four instructions.
        assert_eq!((first.cycles, first.full), ([0, 4], [0, 0]));
        let again = run(&mut decode, line, 4);
        assert_eq!((again.uops, again.lookups), ([16, 0], [3, 0]));
        // Six, six and four micro-operations.
        assert_eq!((again.cycles, again.full, again.waits()), ([3, 0], [2, 0], 0));
    }

    #[test]
    fn short_instructions_are_bound_by_decoders_and_long_ones_by_fetch() {
        let mut decode = Decode::new(SHAPE, 4);
        let short = run(&mut decode, [0x2000, 0x2010], 2);
        assert_eq!((short.cycles[DECODERS], short.full[DECODERS]), (2, 2));
        let long = run(&mut decode, [0x3000, 0x3030], 8);
        assert_eq!(long.cycles[DECODERS], 3);
        // The second ends in the next block.
        let mut decode = Decode::new(SHAPE, 4);
        let crossing = run(&mut decode, [0x4000, 0x4014], 10);
        assert_eq!(crossing.cycles[DECODERS], 2);
    }

    #[test]
    fn code_that_is_entered_elsewhere_is_decoded_again() {
        let mut decode = Decode::new(SHAPE, 5);
        run(&mut decode, [0x1000, 0x1040], 4);
        assert_eq!(run(&mut decode, [0x1008, 0x1010], 4).uops, [0, 2]);
        assert_eq!(run(&mut decode, [0x1008, 0x1010], 4).uops, [2, 0]);
    }

    #[test]
    fn a_switch_to_the_decoders_costs_once() {
        let mut decode = Decode::new(SHAPE, 5);
        run(&mut decode, [0x1000, 0x1040], 4);
        run(&mut decode, [0x1000, 0x1040], 4);
        let other = run(&mut decode, [0x5000, 0x5080], 4);
        assert_eq!((other.switch_cycles, other.cycles), (2, [0, 8]));
    }

    #[test]
    fn a_line_with_too_many_micro_operations_has_a_rest_that_is_always_decoded() {
        let mut decode = Decode::new(SHAPE, 5);
        let line = [0x1000, 0x1040];
        run(&mut decode, line, 1);
        let again = run(&mut decode, line, 1);
        assert_eq!(again.uops, [36, 28]);
        assert_eq!(again.lookups, [6, 0]);
    }

    #[test]
    fn more_lines_than_sets_and_ways_hold_are_forgotten() {
        // A line of 16 has three entries: two lines a set, with two to spare.
        for (lines, cached) in [(8, true), (16, false)] {
            let mut decode = Decode::new(SHAPE, 5);
            let code = [0x1_0000, 0x1_0000 + lines * 64];
            run(&mut decode, code, 4);
            let again = run(&mut decode, code, 4);
            let all = [16 * lines as u32, 0];
            assert_eq!(again.uops == all, cached, "{lines}: {again:?}");
        }
    }

    #[test]
    fn microcode_is_no_delivery_and_has_an_entry_for_itself() {
        let mut decode = Decode::new(SHAPE, 5);
        let microcoded = Fetched { is_microcoded: true, ..insn(0x1004, 2, 20) };
        let insns = [insn(0x1000, 4, 1), microcoded, insn(0x1006, 4, 1)];
        let mut each = |insn| {
            let mut delivery = Delivery::default();
            decode.deliver(insn, &mut delivery);
            delivery
        };
        let first = insns.map(&mut each);
        assert_eq!(first.map(|delivery| delivery.lookups), [[0, 1]; 3]);
        let again = insns.map(&mut each);
        assert_eq!(again.map(|delivery| delivery.uops), [[1, 0], [0, 0], [1, 0]]);
    }

    #[test]
    fn caches_have_the_published_numbers_of_micro_operations() {
        let uops = |geometry: &Geometry| {
            let DecodeShape { sets, ways, entry_uops, .. } = geometry.decode;
            sets * ways * u32::from(entry_uops)
        };
        let all: Vec<u32> = Geometry::ALL.iter().map(|(_, geometry)| uops(geometry)).collect();
        assert_eq!(all, [2304, 4096, 4096, 6912]);
    }
}
