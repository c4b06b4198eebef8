//! Completion stalls: cycles in which no instruction retired, by the cause that delayed the oldest
//! instruction (paper 000, section 4; paper 001 uses the name for POWER5's counters). This view is
//! secondary, because the cost of a mispredicted branch before its resolution is charged to the
//! instruction at the head of the reorder buffer (paper 001, section 2).

use super::formulas::{CORE_CYCLES, CYCLES, Metric, TopDown, cycles_of, slots};

const STALLS: &str = "UOPS_RETIRED.STALL_CYCLES";
const FRONT_END: &str = "IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE";
const IN_MEMORY: &str = "CYCLE_ACTIVITY.STALLS_MEM_ANY";
const BEYOND_L1: &str = "CYCLE_ACTIVITY.STALLS_L1D_MISS";
const BEYOND_L2: &str = "CYCLE_ACTIVITY.STALLS_L2_MISS";
const BEYOND_L3: &str = "CYCLE_ACTIVITY.STALLS_L3_MISS";
const CODE: &str = "ICACHE_DATA.STALLS";
const TRANSLATION: &str = "ICACHE_TAG.STALLS";
const RESTEER: &str = "INT_MISC.CLEAR_RESTEER_CYCLES";
const SERIALIZING: &str = "RESOURCE_STALLS.SCOREBOARD";

/// Parts that Ice Lake and Sapphire Rapids distinguish by the same events.
const RETIRED: Metric = slots(1, "retiring", "", |n| cycles_of(n, CYCLES, &[CYCLES], &[STALLS]));
const CODE_MISSES: Metric =
    slots(1, "instruction cache misses", "", |n| cycles_of(n, CYCLES, &[CODE], &[]));
const TRANSLATION_MISSES: Metric =
    slots(1, "instruction TLB misses", "", |n| cycles_of(n, CYCLES, &[TRANSLATION], &[]));
const REST_OF_FRONT_END: Metric = slots(1, "rest of the front end", "", |n| {
    cycles_of(n, CYCLES, &[FRONT_END], &[CODE, TRANSLATION])
});
const RESTEERS: Metric =
    slots(1, "mispredicted branches, once resolved", "", |n| cycles_of(n, CYCLES, &[RESTEER], &[]));
const SERIALIZED: Metric =
    slots(1, "serializing instructions", "", |n| cycles_of(n, CYCLES, &[SERIALIZING], &[]));

/// Groups of events that are counted in the same slices.
pub(super) static ICE_LAKE_GROUPS: &[&[&str]] =
    &[&[IN_MEMORY, BEYOND_L1, BEYOND_L2, BEYOND_L3], &[STALLS, FRONT_END, RESTEER, SERIALIZING]];

/// Stalls of Ice Lake servers. Source of the events: Intel's event files (`perfmon`, ICX).
pub(super) static ICE_LAKE: TopDown = TopDown {
    events: &[
        CYCLES,
        STALLS,
        FRONT_END,
        CODE,
        TRANSLATION,
        RESTEER,
        IN_MEMORY,
        BEYOND_L1,
        BEYOND_L2,
        BEYOND_L3,
        SERIALIZING,
    ],
    metrics: &[
        RETIRED,
        CODE_MISSES,
        TRANSLATION_MISSES,
        REST_OF_FRONT_END,
        RESTEERS,
        slots(1, "DRAM", "", |n| cycles_of(n, CYCLES, &[BEYOND_L3], &[])),
        slots(1, "last-level cache", "", |n| cycles_of(n, CYCLES, &[BEYOND_L2], &[BEYOND_L3])),
        slots(1, "second-level cache", "", |n| cycles_of(n, CYCLES, &[BEYOND_L1], &[BEYOND_L2])),
        slots(1, "first-level cache, TLB, stores", "", |n| {
            cycles_of(n, CYCLES, &[IN_MEMORY], &[BEYOND_L1])
        }),
        SERIALIZED,
        slots(1, "execution units", "", |n| {
            cycles_of(n, CYCLES, &[STALLS], &[FRONT_END, RESTEER, IN_MEMORY, SERIALIZING])
        }),
    ],
    missing: "first-level cache, data TLB, stores",
};

const IN_LOADS: &str = "EXE_ACTIVITY.BOUND_ON_LOADS";
const LOADS_BEYOND_L1: &str = "MEMORY_ACTIVITY.STALLS_L1D_MISS";
const LOADS_BEYOND_L2: &str = "MEMORY_ACTIVITY.STALLS_L2_MISS";
const LOADS_BEYOND_L3: &str = "MEMORY_ACTIVITY.STALLS_L3_MISS";

/// Groups of Sapphire Rapids, see [`ICE_LAKE_GROUPS`].
pub(super) static SAPPHIRE_RAPIDS_GROUPS: &[&[&str]] = &[
    &[IN_LOADS, LOADS_BEYOND_L1, LOADS_BEYOND_L2, LOADS_BEYOND_L3],
    &[STALLS, FRONT_END, RESTEER, SERIALIZING],
];

/// Stalls of Sapphire Rapids. Source of the events: Intel's event files (`perfmon`, SPR).
pub(super) static SAPPHIRE_RAPIDS: TopDown = TopDown {
    events: &[
        CYCLES,
        STALLS,
        FRONT_END,
        CODE,
        TRANSLATION,
        RESTEER,
        IN_LOADS,
        LOADS_BEYOND_L1,
        LOADS_BEYOND_L2,
        LOADS_BEYOND_L3,
        SERIALIZING,
    ],
    metrics: &[
        RETIRED,
        CODE_MISSES,
        TRANSLATION_MISSES,
        REST_OF_FRONT_END,
        RESTEERS,
        slots(1, "DRAM", "", |n| cycles_of(n, CYCLES, &[LOADS_BEYOND_L3], &[])),
        slots(1, "last-level cache", "", |n| {
            cycles_of(n, CYCLES, &[LOADS_BEYOND_L2], &[LOADS_BEYOND_L3])
        }),
        slots(1, "second-level cache", "", |n| {
            cycles_of(n, CYCLES, &[LOADS_BEYOND_L1], &[LOADS_BEYOND_L2])
        }),
        slots(1, "first-level cache, TLB", "", |n| {
            cycles_of(n, CYCLES, &[IN_LOADS], &[LOADS_BEYOND_L1])
        }),
        SERIALIZED,
        slots(1, "execution units, stores", "", |n| {
            cycles_of(n, CYCLES, &[STALLS], &[FRONT_END, RESTEER, IN_LOADS, SERIALIZING])
        }),
    ],
    missing: "first-level cache and data TLB; execution units and stores",
};

const EMPTY: &str = "CYCLES_NO_RETIRE.EMPTY";
const NOT_COMPLETE: &str = "CYCLES_NO_RETIRE.NOT_COMPLETE_LOAD_AND_ALU";
const MISSING: &str = "CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD";
const OTHER: &str = "CYCLES_NO_RETIRE.OTHER";

/// Groups of Zen 4, see [`ICE_LAKE_GROUPS`].
pub(super) static ZEN_4_GROUPS: &[&[&str]] = &[&[EMPTY, NOT_COMPLETE, MISSING, OTHER]];

/// Stalls of Zen 4. Source of the events: AMD's Processor Programming Reference, family 19h model
/// 10h, event D6h.
pub(super) static ZEN_4: TopDown = TopDown {
    events: &[CORE_CYCLES, EMPTY, NOT_COMPLETE, MISSING, OTHER],
    metrics: &[
        slots(1, "retiring", "", |n| {
            cycles_of(n, CORE_CYCLES, &[CORE_CYCLES], &[EMPTY, NOT_COMPLETE, OTHER])
        }),
        slots(1, "front end, mispredicted branches", "", |n| {
            cycles_of(n, CORE_CYCLES, &[EMPTY], &[])
        }),
        slots(1, "loads that missed the L1", "", |n| cycles_of(n, CORE_CYCLES, &[MISSING], &[])),
        slots(1, "execution units, L1, stores", "", |n| {
            cycles_of(n, CORE_CYCLES, &[NOT_COMPLETE], &[MISSING])
        }),
        slots(1, "serializing, full structures", "", |n| cycles_of(n, CORE_CYCLES, &[OTHER], &[])),
    ],
    missing: "front end and mispredictions; levels of caches beyond L1",
};
