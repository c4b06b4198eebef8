//! First levels of the vendors' trees: events that fit on a processor's counters at once, for lists
//! that count something else too.

use super::formulas::{
    CLEARS, CORE_CYCLES, CYCLES, DISPATCHED, NO_OPS, OPS, RETIRED, STALLED, STALLS, TopDown,
    UNDELIVERED, WRONG, icx_back_end, icx_retiring, icx_slots, ratio, slots, spr_all, spr_back_end,
    spr_retiring, zen_back_end, zen_bad_speculation, zen_front_end, zen_retiring,
};

/// The first level of Ice Lake servers: events that fit on four counters.
pub static ICE_LAKE: TopDown = TopDown {
    events: &[CYCLES, RETIRED, UNDELIVERED, STALLED, CLEARS],
    metrics: &[
        slots(1, "retiring", "tma_retiring", icx_retiring),
        slots(1, "front end", "tma_frontend_bound", |n| ratio(n(UNDELIVERED), icx_slots(n))),
        slots(1, "mispredicted branches, clears", "tma_bad_speculation", |n| {
            let others = ratio(n(UNDELIVERED) + n(RETIRED), icx_slots(n)) + icx_back_end(n);
            (1.0 - others).max(0.0)
        }),
        slots(1, "memory, execution units", "tma_backend_bound", icx_back_end),
    ],
    missing: "the causes of one line: --breakdown does",
};

/// The first level of Sapphire Rapids.
pub static SAPPHIRE_RAPIDS: TopDown = TopDown {
    events: &[RETIRED, UNDELIVERED, STALLED, WRONG],
    metrics: &[
        slots(1, "retiring", "tma_retiring", spr_retiring),
        slots(1, "front end", "tma_frontend_bound", |n| ratio(n(UNDELIVERED), spr_all(n))),
        slots(1, "mispredicted branches, clears", "tma_bad_speculation", |n| {
            ratio(n(WRONG), spr_all(n))
        }),
        slots(1, "memory, execution units", "tma_backend_bound", spr_back_end),
    ],
    missing: ICE_LAKE.missing,
};

/// The first level of Zen 4: events that fit on four counters, beside cycles and instructions. The
/// slots of the core's other thread are in all parts.
pub static ZEN_4: TopDown = TopDown {
    events: &[CORE_CYCLES, NO_OPS, STALLS, DISPATCHED, OPS],
    metrics: &[
        slots(1, "retiring", "retiring", zen_retiring),
        slots(1, "front end", "frontend_bound", zen_front_end),
        slots(1, "mispredicted branches, clears", "bad_speculation", zen_bad_speculation),
        slots(1, "memory, execution units", "backend_bound", zen_back_end),
    ],
    missing: ICE_LAKE.missing,
};
