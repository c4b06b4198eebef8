//! The vendors' top-down formulas, which compute the causes of lost dispatch slots from counts.
//!
//! Source: Linux, `tools/perf/pmu-events/arch/x86/`: `icelakex/icx-metrics.json`,
//! `sapphirerapids/spr-metrics.json` and `amdzen4/pipeline.json`, which Intel and AMD publish.
//! `perf stat -M` computes the metrics under the names given here. Intel's formulas begin with the
//! counts of PERF_METRICS; Tally counts the same slots by events of general counters instead. The
//! number of all slots is the width times the cycles, because cycles are counted without
//! multiplexing, which TOPDOWN.SLOTS would not be.

/// Count of an event, by its name.
pub type CountOf<'a> = &'a dyn Fn(&str) -> f64;

/// Denominator of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// All slots. The metrics with one parent add up to the parent.
    Slots,
    /// All cycles. Such metrics overlap, and leave a part of their parent unnamed.
    Cycles,
    /// Count of another event. Such metrics are at no level, and in no tree.
    Events,
    /// No whole: the metric is a number with this unit, at no level and in no tree.
    Unit(&'static str),
}

/// A metric of the vendor.
#[derive(Debug)]
pub struct Metric {
    /// Name for people.
    pub name: &'static str,
    /// Name in perf.
    pub metric: &'static str,
    /// Level, from 1; 0 if the metric is at no level.
    pub level: u8,
    pub whole: Whole,
    /// Function that computes the share, 0 to 1, or the number.
    pub formula: fn(CountOf<'_>) -> f64,
}

/// Metrics of a processor, each after its parent.
#[derive(Debug)]
pub struct TopDown {
    /// Events that the formulas need.
    pub events: &'static [&'static str],
    pub metrics: &'static [Metric],
    /// Parts missing from the vendor's levels, with the reason.
    pub missing: &'static str,
}

/// Metrics that are counted only on request.
#[derive(Debug)]
pub struct Further {
    /// Metric after whose other parts these are inserted; `None` for metrics that are not parts.
    pub parent: Option<&'static str>,
    pub method: &'static TopDown,
}

pub(super) const fn slots(
    level: u8,
    name: &'static str,
    metric: &'static str,
    formula: fn(CountOf<'_>) -> f64,
) -> Metric {
    Metric { name, metric, level, whole: Whole::Slots, formula }
}

pub(super) const fn cycles(
    name: &'static str,
    metric: &'static str,
    formula: fn(CountOf<'_>) -> f64,
) -> Metric {
    Metric { name, metric, level: 3, whole: Whole::Cycles, formula }
}

/// Share; 0 if the whole is 0, as with perf's `d_ratio`.
pub(super) fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

/// Share of all cycles: the counts of some events minus those of others, which they contain.
pub(super) fn cycles_of(n: CountOf<'_>, all: &str, plus: &[&str], minus: &[&str]) -> f64 {
    let sum = |names: &[&str]| names.iter().map(|name| n(name)).sum::<f64>();
    ratio(sum(plus) - sum(minus), n(all))
}

pub(super) const CYCLES: &str = "CPU_CLK_UNHALTED.THREAD";
pub(super) const RETIRED: &str = "UOPS_RETIRED.SLOTS";
pub(super) const UNDELIVERED: &str = "IDQ_UOPS_NOT_DELIVERED.CORE";
const NONE_DELIVERED: &str = "IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE";
const DROPPED: &str = "INT_MISC.UOP_DROPPING";
pub(super) const STALLED: &str = "TOPDOWN.BACKEND_BOUND_SLOTS";
pub(super) const CLEARS: &str = "INT_MISC.CLEARS_COUNT";
pub(super) const MISPREDICTED: &str = "BR_MISP_RETIRED.ALL_BRANCHES";
pub(super) const MACHINE_CLEARS: &str = "MACHINE_CLEARS.COUNT";
pub(super) const WRONG: &str = "TOPDOWN.BAD_SPEC_SLOTS";
const WRONG_BRANCH: &str = "TOPDOWN.BR_MISPREDICT_SLOTS";
const IN_MEMORY: &str = "TOPDOWN.MEMORY_BOUND_SLOTS";
pub(super) const ICX_IN_MEMORY: &str = "CYCLE_ACTIVITY.STALLS_MEM_ANY";
pub(super) const ICX_BEYOND_L1: &str = "CYCLE_ACTIVITY.STALLS_L1D_MISS";
pub(super) const ICX_BEYOND_L2: &str = "CYCLE_ACTIVITY.STALLS_L2_MISS";
pub(super) const ICX_BEYOND_L3: &str = "CYCLE_ACTIVITY.STALLS_L3_MISS";
pub(super) const ICX_STALLS: &str = "CYCLE_ACTIVITY.STALLS_TOTAL";
pub(super) const ON_STORES: &str = "EXE_ACTIVITY.BOUND_ON_STORES";
pub(super) const ONE: &str = "EXE_ACTIVITY.1_PORTS_UTIL";
pub(super) const TWO: &str = "EXE_ACTIVITY.2_PORTS_UTIL";
pub(super) const CODE: &str = "ICACHE_DATA.STALLS";
pub(super) const TRANSLATION: &str = "ICACHE_TAG.STALLS";
pub(super) const DIVIDER: &str = "ARITH.DIVIDER_ACTIVE";

pub(super) fn icx_slots(n: CountOf<'_>) -> f64 {
    5.0 * n(CYCLES)
}
fn icx_front_end(n: CountOf<'_>) -> f64 {
    ratio(n(UNDELIVERED) - n(DROPPED), icx_slots(n))
}
pub(super) fn icx_retiring(n: CountOf<'_>) -> f64 {
    ratio(n(RETIRED), icx_slots(n))
}
pub(super) fn icx_back_end(n: CountOf<'_>) -> f64 {
    ratio(n(STALLED) + 5.0 * n(CLEARS), icx_slots(n))
}
fn icx_bad_speculation(n: CountOf<'_>) -> f64 {
    (1.0 - (icx_front_end(n) + icx_back_end(n) + icx_retiring(n))).max(0.0)
}
fn icx_latency(n: CountOf<'_>) -> f64 {
    ratio(5.0 * n(NONE_DELIVERED) - n(DROPPED), icx_slots(n))
}
fn icx_mispredicts(n: CountOf<'_>) -> f64 {
    let wrong = n(MISPREDICTED);
    ratio(wrong, wrong + n(MACHINE_CLEARS)) * icx_bad_speculation(n)
}

/// Cycles with few micro-operations: those with two or more are weighted by the share of retiring.
pub(super) fn icx_few(n: CountOf<'_>) -> f64 {
    n(ONE) + icx_retiring(n) * n(TWO)
}
fn icx_memory(n: CountOf<'_>) -> f64 {
    let memory = n(ICX_IN_MEMORY) + n(ON_STORES);
    ratio(memory, n(ICX_STALLS) + icx_few(n) + n(ON_STORES)) * icx_back_end(n)
}
/// Share of cycles bound by the L2. Intel's formula subtracts fills of the L1 that waited for a
/// buffer, by events that the virtual PMU has in one pipeline only. This is Intel's formula for
/// processors before Skylake.
fn icx_l2(n: CountOf<'_>) -> f64 {
    ratio(n(ICX_BEYOND_L1) - n(ICX_BEYOND_L2), n(CYCLES))
}

fn code(n: CountOf<'_>) -> f64 {
    ratio(n(CODE), n(CYCLES))
}
fn translation(n: CountOf<'_>) -> f64 {
    ratio(n(TRANSLATION), n(CYCLES))
}
fn divider(n: CountOf<'_>) -> f64 {
    ratio(n(DIVIDER), n(CYCLES))
}

/// Formulas of Ice Lake servers.
pub static ICE_LAKE: TopDown = TopDown {
    events: &[
        CYCLES,
        RETIRED,
        UNDELIVERED,
        NONE_DELIVERED,
        DROPPED,
        STALLED,
        CLEARS,
        MISPREDICTED,
        MACHINE_CLEARS,
        CODE,
        TRANSLATION,
        DIVIDER,
        ICX_IN_MEMORY,
        ICX_BEYOND_L1,
        ICX_BEYOND_L2,
        ICX_BEYOND_L3,
        ICX_STALLS,
        ON_STORES,
        ONE,
        TWO,
    ],
    metrics: &[
        slots(1, "retiring", "tma_retiring", icx_retiring),
        slots(1, "front end", "tma_frontend_bound", icx_front_end),
        slots(2, "fetch latency", "tma_fetch_latency", icx_latency),
        cycles("instruction cache misses", "tma_icache_misses", code),
        cycles("instruction TLB misses", "tma_itlb_misses", translation),
        slots(2, "fetch bandwidth", "tma_fetch_bandwidth", |n| {
            (icx_front_end(n) - icx_latency(n)).max(0.0)
        }),
        slots(1, "bad speculation", "tma_bad_speculation", icx_bad_speculation),
        slots(2, "mispredicted branches", "tma_branch_mispredicts", icx_mispredicts),
        slots(2, "machine clears", "tma_machine_clears", |n| {
            (icx_bad_speculation(n) - icx_mispredicts(n)).max(0.0)
        }),
        slots(1, "back end", "tma_backend_bound", icx_back_end),
        slots(2, "memory", "tma_memory_bound", icx_memory),
        cycles("first-level cache", "tma_l1_bound", |n| {
            ratio(n(ICX_IN_MEMORY) - n(ICX_BEYOND_L1), n(CYCLES)).max(0.0)
        }),
        cycles("second-level cache", "tma_l2_bound", icx_l2),
        cycles("last-level cache", "tma_l3_bound", |n| {
            ratio(n(ICX_BEYOND_L2) - n(ICX_BEYOND_L3), n(CYCLES))
        }),
        cycles("DRAM", "tma_dram_bound", |n| ratio(n(ICX_BEYOND_L3), n(CYCLES))),
        cycles("stores", "tma_store_bound", |n| ratio(n(ON_STORES), n(CYCLES))),
        slots(2, "core", "tma_core_bound", |n| (icx_back_end(n) - icx_memory(n)).max(0.0)),
        cycles("divider", "tma_divider", divider),
    ],
    missing: "heavy and light operations (Intel's formulas need UOPS_DECODED.DEC0, which the virtual \
              PMU does not count); ports on request: -M TopdownL4",
};

/// Sum of the four counts of PERF_METRICS' first level.
pub(super) fn spr_all(n: CountOf<'_>) -> f64 {
    n(UNDELIVERED) + n(WRONG) + n(RETIRED) + n(STALLED)
}
fn spr_dropped(n: CountOf<'_>) -> f64 {
    ratio(n(DROPPED), 6.0 * n(CYCLES))
}
fn spr_front_end(n: CountOf<'_>) -> f64 {
    ratio(n(UNDELIVERED), spr_all(n)) - spr_dropped(n)
}
pub(super) fn spr_retiring(n: CountOf<'_>) -> f64 {
    ratio(n(RETIRED), spr_all(n))
}
pub(super) fn spr_back_end(n: CountOf<'_>) -> f64 {
    ratio(n(STALLED), spr_all(n))
}
fn spr_bad_speculation(n: CountOf<'_>) -> f64 {
    (1.0 - (spr_front_end(n) + spr_back_end(n) + spr_retiring(n))).max(0.0)
}
fn spr_latency(n: CountOf<'_>) -> f64 {
    ratio(6.0 * n(NONE_DELIVERED), spr_all(n)) - spr_dropped(n)
}
fn spr_mispredicts(n: CountOf<'_>) -> f64 {
    ratio(n(WRONG_BRANCH), spr_all(n))
}
fn spr_memory(n: CountOf<'_>) -> f64 {
    ratio(n(IN_MEMORY), spr_all(n))
}

pub(super) const ON_LOADS: &str = "EXE_ACTIVITY.BOUND_ON_LOADS";
const BEYOND_L1: &str = "MEMORY_ACTIVITY.STALLS_L1D_MISS";
const BEYOND_L2: &str = "MEMORY_ACTIVITY.STALLS_L2_MISS";
const BEYOND_L3: &str = "MEMORY_ACTIVITY.STALLS_L3_MISS";

/// Formulas of Sapphire Rapids.
pub static SAPPHIRE_RAPIDS: TopDown = TopDown {
    events: &[
        CYCLES,
        RETIRED,
        UNDELIVERED,
        NONE_DELIVERED,
        DROPPED,
        STALLED,
        WRONG,
        WRONG_BRANCH,
        IN_MEMORY,
        CODE,
        TRANSLATION,
        DIVIDER,
        ON_LOADS,
        BEYOND_L1,
        BEYOND_L2,
        BEYOND_L3,
    ],
    metrics: &[
        slots(1, "retiring", "tma_retiring", spr_retiring),
        slots(1, "front end", "tma_frontend_bound", spr_front_end),
        slots(2, "fetch latency", "tma_fetch_latency", spr_latency),
        cycles("instruction cache misses", "tma_icache_misses", code),
        cycles("instruction TLB misses", "tma_itlb_misses", translation),
        slots(2, "fetch bandwidth", "tma_fetch_bandwidth", |n| {
            (spr_front_end(n) - spr_latency(n)).max(0.0)
        }),
        slots(1, "bad speculation", "tma_bad_speculation", spr_bad_speculation),
        slots(2, "mispredicted branches", "tma_branch_mispredicts", spr_mispredicts),
        slots(2, "machine clears", "tma_machine_clears", |n| {
            (spr_bad_speculation(n) - spr_mispredicts(n)).max(0.0)
        }),
        slots(1, "back end", "tma_backend_bound", spr_back_end),
        slots(2, "memory", "tma_memory_bound", spr_memory),
        cycles("first-level cache", "tma_l1_bound", |n| {
            ratio(n(ON_LOADS) - n(BEYOND_L1), n(CYCLES)).max(0.0)
        }),
        cycles("second-level cache", "tma_l2_bound", |n| {
            ratio(n(BEYOND_L1) - n(BEYOND_L2), n(CYCLES))
        }),
        cycles("last-level cache", "tma_l3_bound", |n| {
            ratio(n(BEYOND_L2) - n(BEYOND_L3), n(CYCLES))
        }),
        cycles("DRAM", "tma_dram_bound", |n| ratio(n(BEYOND_L3), n(CYCLES))),
        slots(2, "core", "tma_core_bound", |n| (spr_back_end(n) - spr_memory(n)).max(0.0)),
        cycles("divider", "tma_divider", divider),
    ],
    missing: "heavy and light operations (PERF_METRICS alone counts them); ports on request: -M \
              TopdownL4",
};

pub(super) const CORE_CYCLES: &str = "CYCLES_NOT_IN_HALT";
pub(super) const NO_OPS: &str = "DISPATCH_STALLS_1.FE_NO_OPS";
/// Part of the front end that is lost to mispredicted branches.
pub(super) const REFILL: &str = "refill behind mispredictions";
const NO_OPS_AT_ALL: &str = "DISPATCH_STALLS_1.FE_NO_OPS:c=6";
pub(super) const STALLS: &str = "DISPATCH_STALLS_1.BE_STALLS";
pub(super) const CONTENTION: &str = "DISPATCH_STALLS_1.SMT_CONTENTION";
pub(super) const DISPATCHED: &str =
    "OPS_SOURCE_DISPATCHED_FROM_DECODER:DECODER:OPCACHE:LOOP_BUFFER";
pub(super) const OPS: &str = "RETIRED_OPS";
const MICROCODE: &str = "RETIRED_UCODE_OPS";
pub(super) const MISPREDICTS: &str = "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED";
const RESYNCS: &str = "RESYNCS";
pub(super) const NOT_COMPLETE: &str = "CYCLES_NO_RETIRE.NOT_COMPLETE_LOAD_AND_ALU";
pub(super) const LOAD_NOT_COMPLETE: &str = "CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD";

/// Share of AMD's dispatch slots, six in each cycle.
pub(super) fn of_slots(n: CountOf<'_>, slots: f64) -> f64 {
    ratio(slots, 6.0 * n(CORE_CYCLES))
}
pub(super) fn zen_front_end(n: CountOf<'_>) -> f64 {
    of_slots(n, n(NO_OPS))
}
fn zen_latency(n: CountOf<'_>) -> f64 {
    of_slots(n, 6.0 * n(NO_OPS_AT_ALL))
}
/// Slots after mispredicted branches until the right path is dispatched, which AMD's formulas
/// assign to the front end and Intel's to bad speculation. The common penalty is 13 cycles, of 11
/// to 18 (Software Optimization Guide for the AMD Zen4 Microarchitecture, 57647, branch
/// prediction).
pub(super) fn zen_refill(n: CountOf<'_>) -> f64 {
    of_slots(n, 6.0 * 13.0 * n(MISPREDICTS))
}
fn zen_refill_of_latency(n: CountOf<'_>) -> f64 {
    zen_refill(n).min(zen_latency(n))
}
pub(super) fn zen_bad_speculation(n: CountOf<'_>) -> f64 {
    of_slots(n, n(DISPATCHED) - n(OPS))
}
pub(super) fn zen_back_end(n: CountOf<'_>) -> f64 {
    of_slots(n, n(STALLS))
}
pub(super) fn zen_memory(n: CountOf<'_>) -> f64 {
    zen_back_end(n) * ratio(n(LOAD_NOT_COMPLETE), n(NOT_COMPLETE))
}
pub(super) fn zen_retiring(n: CountOf<'_>) -> f64 {
    of_slots(n, n(OPS))
}

/// Formulas of Zen 4.
pub static ZEN_4: TopDown = TopDown {
    events: &[
        CORE_CYCLES,
        NO_OPS,
        NO_OPS_AT_ALL,
        STALLS,
        CONTENTION,
        DISPATCHED,
        OPS,
        MICROCODE,
        MISPREDICTS,
        RESYNCS,
        NOT_COMPLETE,
        LOAD_NOT_COMPLETE,
    ],
    metrics: &[
        slots(1, "retiring", "retiring", zen_retiring),
        slots(2, "single operations", "retiring_fastpath", |n| {
            zen_retiring(n) * (1.0 - ratio(n(MICROCODE), n(OPS)))
        }),
        slots(2, "microcode", "retiring_microcode", |n| {
            zen_retiring(n) * ratio(n(MICROCODE), n(OPS))
        }),
        slots(1, "front end", "frontend_bound", zen_front_end),
        slots(2, "fetch latency", "frontend_bound_latency", zen_latency),
        slots(3, REFILL, "tally_mispredict_refill", zen_refill_of_latency),
        slots(3, "instruction fetch", "tally_instruction_fetch", |n| {
            zen_latency(n) - zen_refill_of_latency(n)
        }),
        slots(2, "fetch bandwidth", "frontend_bound_bandwidth", |n| {
            of_slots(n, n(NO_OPS) - 6.0 * n(NO_OPS_AT_ALL))
        }),
        slots(1, "bad speculation", "bad_speculation", zen_bad_speculation),
        slots(2, "mispredicted branches", "bad_speculation_mispredicts", |n| {
            let wrong = n(MISPREDICTS);
            ratio(zen_bad_speculation(n) * wrong, wrong + n(RESYNCS))
        }),
        slots(2, "restarts", "bad_speculation_pipeline_restarts", |n| {
            let restarts = n(RESYNCS);
            ratio(zen_bad_speculation(n) * restarts, n(MISPREDICTS) + restarts)
        }),
        slots(1, "back end", "backend_bound", zen_back_end),
        slots(2, "memory", "backend_bound_memory", zen_memory),
        slots(2, "core", "backend_bound_cpu", |n| zen_back_end(n) - zen_memory(n)),
        slots(1, "the core's other thread", "smt_contention", |n| of_slots(n, n(CONTENTION))),
    ],
    missing: "more of levels 3 and 4 (AMD publishes none)",
};
