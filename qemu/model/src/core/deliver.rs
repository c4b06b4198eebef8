//! Delivery of micro-operations to the queue before dispatch, by the decoders or their cache.

use std::ops::Range;

use super::state::Core;
use crate::{
    block::{Block, Privilege},
    decode::{CACHE, DECODERS, Delivery, Fetched},
    signal::Signal,
    stacks::FetchWait,
};

impl Core {
    /// Delivers instructions of a block that is about to retire. If `fused`, the first instruction
    /// shares the micro-operation of the one before the block.
    #[cold]
    #[inline(never)]
    pub(super) fn deliver(&mut self, block: &Block, range: Range<usize>, fused: bool) {
        let Some(mut decode) = self.decode.take() else { return };
        let mut all = Delivery::default();
        for index in range.clone() {
            let is_second = fused && index == range.start;
            let cycles = decode.deliver(fetched(block, index, is_second), &mut all);
            if cycles > 0 && !self.geometry.perfect.fetch {
                self.starve_at(block.ring, FetchWait::Decoders, cycles, || index);
            }
        }
        self.count_delivery(block.ring, &all);
        self.decode = Some(decode);
    }

    fn count_delivery(&mut self, ring: Privilege, delivery: &Delivery) {
        let Delivery { uops, lookups, cycles, full, switches, switch_cycles } = *delivery;
        let [found, missed] = lookups;
        for (signal, amount) in [
            (Signal::UopsCached, uops[CACHE]),
            (Signal::UopsDecoded, uops[DECODERS]),
            (Signal::CachedCycles, cycles[CACHE]),
            (Signal::DecodeCycles, cycles[DECODERS]),
            (Signal::CachedFullCycles, full[CACHE]),
            (Signal::DecodeFullCycles, full[DECODERS]),
            (Signal::UopCacheHits, found),
            (Signal::UopCacheMisses, missed),
            (Signal::DecodeSwitchCycles, switch_cycles),
            (Signal::DecodeSwitches, switches),
        ] {
            self.add(ring, signal, amount.into());
        }
    }
}

/// Instruction `index` of a block as the decoders see it; `is_second` if it is the second of a
/// fused pair.
fn fetched(block: &Block, index: usize, is_second: bool) -> Fetched {
    let insn = &block.insns()[index];
    let ordinal = (insn.pc >> 6).wrapping_sub(block.pc >> 6) & (u64::MAX >> 6);
    Fetched {
        line: block.line(ordinal as u32).1,
        pc: insn.pc,
        length: u64::from(insn.length.max(1)),
        uops: if is_second { 0 } else { insn.uops.into() },
        is_microcoded: insn.adds >> Signal::Microcoded as u32 & 1 == 1,
    }
}
