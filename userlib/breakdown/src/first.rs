//! First levels of the vendors' trees: few events, which fit on a processor's counters at once, for
//! lists that also count other events.

use super::formulas::{
    CLEARS, CORE_CYCLES, CYCLES, CountOf, DISPATCHED, LOAD_NOT_COMPLETE, MISPREDICTS, NO_OPS,
    NOT_COMPLETE, OPS, RETIRED, STALLED, STALLS, TopDown, UNDELIVERED, WRONG, icx_back_end,
    icx_retiring, icx_slots, ratio, slots, spr_all, spr_back_end, spr_retiring, zen_back_end,
    zen_bad_speculation, zen_front_end, zen_memory, zen_refill, zen_retiring,
};

/// First level of Ice Lake servers: events that fit on four counters.
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

/// First level of Sapphire Rapids.
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

/// Causes of Zen 4: a first level of events that fit on four counters, besides cycles and
/// instructions, with events that divide the back end and count mispredictions. The refill after
/// mispredictions is counted with them, not with the front end as in AMD's formulas. The slots of
/// the core's other thread are included in all parts.
pub static ZEN_4: TopDown = TopDown {
    events: &[
        CORE_CYCLES,
        NO_OPS,
        STALLS,
        DISPATCHED,
        OPS,
        MISPREDICTS,
        NOT_COMPLETE,
        LOAD_NOT_COMPLETE,
    ],
    metrics: &[
        slots(1, "retiring", "retiring", zen_retiring),
        slots(1, "front end", "", |n| zen_front_end(n) - zen_refill_of_front_end(n)),
        slots(1, "mispredicted branches, clears", "", |n| {
            zen_bad_speculation(n) + zen_refill_of_front_end(n)
        }),
        slots(1, "memory", "backend_bound_memory", zen_memory),
        slots(1, "execution units", "backend_bound_cpu", |n| zen_back_end(n) - zen_memory(n)),
    ],
    missing: ICE_LAKE.missing,
};

fn zen_refill_of_front_end(n: CountOf<'_>) -> f64 {
    zen_refill(n).min(zen_front_end(n))
}
