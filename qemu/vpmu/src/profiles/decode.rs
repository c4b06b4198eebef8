//! Events of the decoders and of the micro-op cache: Intel's decoded stream buffer (DSB) and legacy
//! decode pipeline (MITE), AMD's op cache.

use tally_model::Signal::*;

use super::{intel::LOW, shared::e};
use crate::event::Event;

/// Events of both of Intel's profiles.
#[rustfmt::skip] // One event in as few lines as possible, as in the vendor's table.
pub(super) const INTEL: &[Event] = &[
    e("IDQ.MITE_UOPS", 0x79, 0x04, &[UopsDecoded],
        "Micro-operations that the decoders delivered, microcode aside.").on(LOW).uop_cache(),
    e("IDQ.MITE_CYCLES_ANY", 0x79, 0x04, &[DecodeCycles],
        "Cycles in which the decoders delivered any micro-operation.")
            .cmask(1).on(LOW).uop_cache(),
    e("IDQ.DSB_UOPS", 0x79, 0x08, &[UopsCached],
        "Micro-operations that the cache of decoded ones delivered, microcode aside.")
            .on(LOW).uop_cache(),
    e("IDQ.DSB_CYCLES_ANY", 0x79, 0x08, &[CachedCycles],
        "Cycles in which the cache of decoded micro-operations delivered any.")
            .cmask(1).on(LOW).uop_cache(),
];

/// Events of Ice Lake only: other encodings, and five micro-operations a cycle.
#[rustfmt::skip] // As above.
pub(super) const ICE_LAKE: &[Event] = &[
    e("IDQ.MITE_CYCLES_OK", 0x79, 0x04, &[DecodeFullCycles],
        "Cycles in which the decoders delivered five micro-operations.")
            .cmask(5).on(LOW).uop_cache(),
    e("IDQ.DSB_CYCLES_OK", 0x79, 0x08, &[CachedFullCycles],
        "Cycles in which the cache of decoded micro-operations delivered five or more.")
            .cmask(5).on(LOW).uop_cache(),
    e("DSB2MITE_SWITCHES.PENALTY_CYCLES", 0xab, 0x02, &[DecodeSwitchCycles],
        "Cycles until the decoders delivered, after the cache did.").on(LOW).uop_cache(),
    e("DSB2MITE_SWITCHES.COUNT", 0xab, 0x02, &[DecodeSwitches],
        "Times at which the decoders took over from the cache.").cmask(1).edge().on(LOW).uop_cache(),
    e("LSD.UOPS", 0xa8, 0x01, &[],
        "Micro-operations of the loop buffer, which the model does not have.").on(LOW).uop_cache(),
];

/// Events of Sapphire Rapids only.
#[rustfmt::skip] // As above.
pub(super) const SAPPHIRE_RAPIDS: &[Event] = &[
    e("IDQ.MITE_CYCLES_OK", 0x79, 0x04, &[DecodeFullCycles],
        "Cycles in which the decoders delivered six micro-operations.")
            .cmask(6).on(LOW).uop_cache(),
    e("IDQ.DSB_CYCLES_OK", 0x79, 0x08, &[CachedFullCycles],
        "Cycles in which the cache of decoded micro-operations delivered six or more.")
            .cmask(6).on(LOW).uop_cache(),
    e("DSB2MITE_SWITCHES.PENALTY_CYCLES", 0x61, 0x02, &[DecodeSwitchCycles],
        "Cycles until the decoders delivered, after the cache did.").on(LOW).uop_cache(),
    e("LSD.UOPS", 0xa8, 0x01, &[],
        "Micro-operations of the loop buffer, which the model does not have.").uop_cache(),
];

/// Events of both of AMD's profiles.
#[rustfmt::skip] // As above.
pub(super) const AMD: &[Event] = &[
    e("OP_CACHE_HIT_MISS.OC_HIT", 0x28f, 0x03, &[UopCacheHits],
        "Entries of the op cache that fetch looked for and found.").uop_cache(),
    e("OP_CACHE_HIT_MISS.OC_MISS", 0x28f, 0x04, &[UopCacheMisses],
        "Entries of the op cache that fetch looked for in vain.").uop_cache(),
    e("OP_CACHE_HIT_MISS.ALL_OC_ACCESS", 0x28f, 0x07, &[UopCacheHits, UopCacheMisses],
        "Entries of the op cache that fetch looked for.").uop_cache(),
];
