//! Groups of metrics by LIKWID's names: floating-point operations by vector width, bytes by level
//! of the memory hierarchy, branches, TLBs, the divider, stalls.
//!
//! Source of the formulas: LIKWID, `groups/ICX`, `groups/ICL` and `groups/zen4`. Volumes and rates
//! are in bytes and cycles. Where LIKWID counts in the uncore (`MEM`), these groups take the core's
//! events; they have loads alone, as the virtual PMU counts no write-backs.

use super::formulas::{
    CORE_CYCLES, CYCLES, CountOf, DIVIDER, ICX_BEYOND_L1 as BEYOND_L1, ICX_BEYOND_L2 as BEYOND_L2,
    ICX_BEYOND_L3 as BEYOND_L3, ICX_IN_MEMORY as ON_LOADS, ICX_STALLS as STALLED, MISPREDICTED,
    MISPREDICTS, Metric, TopDown, Whole, ratio,
};

/// Metrics that have a name together.
#[derive(Debug)]
pub struct Group {
    pub name: &'static str,
    /// Metrics; without any, `missing` has the reason.
    pub method: TopDown,
}

/// Bytes of a cache line.
pub(super) const LINE_BYTES: f64 = 64.0;

const fn number(unit: &'static str, name: &'static str, formula: fn(CountOf<'_>) -> f64) -> Metric {
    Metric { name, metric: name, level: 0, whole: Whole::Unit(unit), formula }
}

const fn share(name: &'static str, formula: fn(CountOf<'_>) -> f64) -> Metric {
    Metric { name, metric: name, level: 0, whole: Whole::Events, formula }
}

const fn group(
    name: &'static str,
    events: &'static [&'static str],
    metrics: &'static [Metric],
) -> Group {
    Group { name, method: TopDown { events, metrics, missing: "" } }
}

const FLOPS: &str = "flops";
const FLOPS_A_CYCLE: &str = "flops/cycle";
const FLOPS_A_BYTE: &str = "flops/byte";
const BYTES: &str = "bytes";
const BYTES_A_CYCLE: &str = "bytes/cycle";

/// Events of arithmetic of one precision: scalar, and vectors of 128, 256 and 512 bits. Operations
/// with two calculations for each element, such as FMA's, count twice.
pub(super) type Widths = [&'static str; 4];

pub(super) const DOUBLE: Widths = [
    "FP_ARITH_INST_RETIRED.SCALAR_DOUBLE",
    "FP_ARITH_INST_RETIRED.128B_PACKED_DOUBLE",
    "FP_ARITH_INST_RETIRED.256B_PACKED_DOUBLE",
    "FP_ARITH_INST_RETIRED.512B_PACKED_DOUBLE",
];
pub(super) const SINGLE: Widths = [
    "FP_ARITH_INST_RETIRED.SCALAR_SINGLE",
    "FP_ARITH_INST_RETIRED.128B_PACKED_SINGLE",
    "FP_ARITH_INST_RETIRED.256B_PACKED_SINGLE",
    "FP_ARITH_INST_RETIRED.512B_PACKED_SINGLE",
];

/// Quotient of two events; not a number if the divisor did not happen, as it is not known then.
pub(super) fn per(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { f64::NAN } else { part / whole }
}

/// Operations of all widths, of which a vector of 128 bits has `in_128`.
fn flops(n: CountOf<'_>, [scalar, low, middle, high]: Widths, in_128: f64) -> f64 {
    n(scalar) + in_128 * (n(low) + 2.0 * n(middle) + 4.0 * n(high))
}
fn vectorized(n: CountOf<'_>, [scalar, low, middle, high]: Widths) -> f64 {
    let vectors = n(low) + n(middle) + n(high);
    per(vectors, n(scalar) + vectors)
}
fn flops_dp(n: CountOf<'_>) -> f64 {
    flops(n, DOUBLE, 2.0)
}
fn flops_sp(n: CountOf<'_>) -> f64 {
    flops(n, SINGLE, 4.0)
}

const FLOPS_DP: Group = group(
    "FLOPS_DP",
    &[CYCLES, DOUBLE[0], DOUBLE[1], DOUBLE[2], DOUBLE[3]],
    &[
        number(FLOPS, "flops_dp_scalar", |n| n(DOUBLE[0])),
        number(FLOPS, "flops_dp_128", |n| 2.0 * n(DOUBLE[1])),
        number(FLOPS, "flops_dp_256", |n| 4.0 * n(DOUBLE[2])),
        number(FLOPS, "flops_dp_512", |n| 8.0 * n(DOUBLE[3])),
        number(FLOPS, "flops_dp", flops_dp),
        number(FLOPS_A_CYCLE, "flops_dp_rate", |n| ratio(flops_dp(n), n(CYCLES))),
        share("vectorized_dp", |n| vectorized(n, DOUBLE)),
    ],
);
const FLOPS_SP: Group = group(
    "FLOPS_SP",
    &[CYCLES, SINGLE[0], SINGLE[1], SINGLE[2], SINGLE[3]],
    &[
        number(FLOPS, "flops_sp_scalar", |n| n(SINGLE[0])),
        number(FLOPS, "flops_sp_128", |n| 4.0 * n(SINGLE[1])),
        number(FLOPS, "flops_sp_256", |n| 8.0 * n(SINGLE[2])),
        number(FLOPS, "flops_sp_512", |n| 16.0 * n(SINGLE[3])),
        number(FLOPS, "flops_sp", flops_sp),
        number(FLOPS_A_CYCLE, "flops_sp_rate", |n| ratio(flops_sp(n), n(CYCLES))),
        share("vectorized_sp", |n| vectorized(n, SINGLE)),
    ],
);

pub(super) const INTO_L1: &str = "L1D.REPLACEMENT";
pub(super) const INTO_L2: &str = "L2_LINES_IN.ALL";
pub(super) const FROM_MEMORY: &str = "LONGEST_LAT_CACHE.MISS";

fn lines(n: CountOf<'_>, event: &str) -> f64 {
    LINE_BYTES * n(event)
}
fn lines_a_cycle(n: CountOf<'_>, event: &str) -> f64 {
    ratio(lines(n, event), n(CYCLES))
}

const L2: Group = group(
    "L2",
    &[CYCLES, INTO_L1],
    &[
        number(BYTES, "l2_load_volume", |n| lines(n, INTO_L1)),
        number(BYTES_A_CYCLE, "l2_load_bandwidth", |n| lines_a_cycle(n, INTO_L1)),
    ],
);
const L3: Group = group(
    "L3",
    &[CYCLES, INTO_L2],
    &[
        number(BYTES, "l3_load_volume", |n| lines(n, INTO_L2)),
        number(BYTES_A_CYCLE, "l3_load_bandwidth", |n| lines_a_cycle(n, INTO_L2)),
    ],
);
const MEM: Group = group(
    "MEM",
    &[CYCLES, FROM_MEMORY],
    &[
        number(BYTES, "mem_load_volume", |n| lines(n, FROM_MEMORY)),
        number(BYTES_A_CYCLE, "mem_load_bandwidth", |n| lines_a_cycle(n, FROM_MEMORY)),
    ],
);
const MEM_DP: Group = group(
    "MEM_DP",
    &[CYCLES, DOUBLE[0], DOUBLE[1], DOUBLE[2], DOUBLE[3], FROM_MEMORY],
    &[
        number(FLOPS, "flops_dp", flops_dp),
        number(FLOPS_A_CYCLE, "flops_dp_rate", |n| ratio(flops_dp(n), n(CYCLES))),
        number(BYTES, "mem_load_volume", |n| lines(n, FROM_MEMORY)),
        number(FLOPS_A_BYTE, "intensity_dp", |n| per(flops_dp(n), lines(n, FROM_MEMORY))),
    ],
);
const MEM_SP: Group = group(
    "MEM_SP",
    &[CYCLES, SINGLE[0], SINGLE[1], SINGLE[2], SINGLE[3], FROM_MEMORY],
    &[
        number(FLOPS, "flops_sp", flops_sp),
        number(FLOPS_A_CYCLE, "flops_sp_rate", |n| ratio(flops_sp(n), n(CYCLES))),
        number(BYTES, "mem_load_volume", |n| lines(n, FROM_MEMORY)),
        number(FLOPS_A_BYTE, "intensity_sp", |n| per(flops_sp(n), lines(n, FROM_MEMORY))),
    ],
);

const INSTRUCTIONS: &str = "INST_RETIRED.ANY";
const BRANCHES: &str = "BR_INST_RETIRED.ALL_BRANCHES";
const BRANCH: Group = group(
    "BRANCH",
    &[INSTRUCTIONS, BRANCHES, MISPREDICTED],
    &[
        share("branch_rate", |n| ratio(n(BRANCHES), n(INSTRUCTIONS))),
        share("branch_misprediction_rate", |n| ratio(n(MISPREDICTED), n(INSTRUCTIONS))),
        share("branch_misprediction_ratio", |n| per(n(MISPREDICTED), n(BRANCHES))),
        number("instructions/branch", "instructions_per_branch", |n| {
            per(n(INSTRUCTIONS), n(BRANCHES))
        }),
    ],
);

const LOAD_WALKS: &str = "DTLB_LOAD_MISSES.WALK_COMPLETED";
const LOAD_WALKING: &str = "DTLB_LOAD_MISSES.WALK_ACTIVE";
const STORE_WALKS: &str = "DTLB_STORE_MISSES.WALK_COMPLETED";
const STORE_WALKING: &str = "DTLB_STORE_MISSES.WALK_ACTIVE";
const CODE_WALKS: &str = "ITLB_MISSES.WALK_COMPLETED";
const CODE_WALKING: &str = "ITLB_MISSES.WALK_ACTIVE";
const TLB_DATA: Group = group(
    "TLB_DATA",
    &[INSTRUCTIONS, LOAD_WALKS, LOAD_WALKING, STORE_WALKS, STORE_WALKING],
    &[
        number("misses", "dtlb_load_misses", |n| n(LOAD_WALKS)),
        share("dtlb_load_miss_rate", |n| ratio(n(LOAD_WALKS), n(INSTRUCTIONS))),
        number("cycles/walk", "dtlb_load_miss_duration", |n| per(n(LOAD_WALKING), n(LOAD_WALKS))),
        number("misses", "dtlb_store_misses", |n| n(STORE_WALKS)),
        share("dtlb_store_miss_rate", |n| ratio(n(STORE_WALKS), n(INSTRUCTIONS))),
        number("cycles/walk", "dtlb_store_miss_duration", |n| {
            per(n(STORE_WALKING), n(STORE_WALKS))
        }),
    ],
);
const TLB_INSTR: Group = group(
    "TLB_INSTR",
    &[INSTRUCTIONS, CODE_WALKS, CODE_WALKING],
    &[
        number("misses", "itlb_misses", |n| n(CODE_WALKS)),
        share("itlb_miss_rate", |n| ratio(n(CODE_WALKS), n(INSTRUCTIONS))),
        number("cycles/walk", "itlb_miss_duration", |n| per(n(CODE_WALKING), n(CODE_WALKS))),
    ],
);

const DIVISIONS: &str = "ARITH.DIVIDER_ACTIVE:c=1:e";
const DIVIDE: Group = group(
    "DIVIDE",
    &[DIVISIONS, DIVIDER],
    &[
        number("divisions", "divisions", |n| n(DIVISIONS)),
        number("cycles/division", "division_duration", |n| per(n(DIVIDER), n(DIVISIONS))),
    ],
);

const EXECUTION: Metric = share("execution_stall_rate", |n| ratio(n(STALLED), n(CYCLES)));
const L1_MISSES: Metric = share("l1d_miss_stall_rate", |n| ratio(n(BEYOND_L1), n(CYCLES)));
const L2_MISSES: Metric = share("l2_miss_stall_rate", |n| ratio(n(BEYOND_L2), n(CYCLES)));

/// Groups of Ice Lake servers.
pub static ICE_LAKE: [Group; 12] = of_intel(group(
    "CYCLE_STALLS",
    &[CYCLES, STALLED, ON_LOADS, BEYOND_L1, BEYOND_L2],
    &[
        EXECUTION,
        share("memory_stall_rate", |n| ratio(n(ON_LOADS), n(CYCLES))),
        L1_MISSES,
        L2_MISSES,
    ],
));

/// Groups of Sapphire Rapids, which has no event of stalls on loads of any level.
pub static SAPPHIRE_RAPIDS: [Group; 12] = of_intel(group(
    "CYCLE_STALLS",
    &[CYCLES, STALLED, BEYOND_L1, BEYOND_L2, BEYOND_L3],
    &[
        EXECUTION,
        L1_MISSES,
        L2_MISSES,
        share("l3_miss_stall_rate", |n| ratio(n(BEYOND_L3), n(CYCLES))),
    ],
));

/// Groups of Intel's processors, which differ in the events of stalls.
const fn of_intel(stalls: Group) -> [Group; 12] {
    [FLOPS_DP, FLOPS_SP, L2, L3, MEM, MEM_DP, MEM_SP, BRANCH, TLB_DATA, TLB_INSTR, DIVIDE, stalls]
}

const fn refused(name: &'static str) -> Group {
    let missing = "AMD counts operations of both precisions as one event (PMCx003): -M FLOPS";
    Group { name, method: TopDown { events: &[], metrics: &[], missing } }
}

const ZEN_INSTRUCTIONS: &str = "RETIRED_INSTRUCTIONS";
const ZEN_BRANCHES: &str = "RETIRED_BRANCH_INSTRUCTIONS";
pub(super) const ZEN_FLOPS: &str = "RETIRED_SSE_AVX_FLOPS.ANY";
pub(super) const BY_L2: &str = "DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.LCL_L2";
pub(super) const BY_L3: &str = "DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.LOCAL_CCX";
pub(super) const BY_MEMORY: &str = "DEMAND_DATA_CACHE_FILLS_FROM_SYSTEM.DRAM_IO_NEAR";
const ZEN_DIVISIONS: &str = "DIV_OP_COUNT";
const ZEN_DIVIDING: &str = "DIV_CYCLES_BUSY_COUNT";

fn zen_lines(n: CountOf<'_>, from: &[&str]) -> f64 {
    LINE_BYTES * from.iter().map(|event| n(event)).sum::<f64>()
}
fn zen_lines_a_cycle(n: CountOf<'_>, from: &[&str]) -> f64 {
    ratio(zen_lines(n, from), n(CORE_CYCLES))
}

/// Groups of Zen 4. Bytes are of lines that loads brought into the data cache, by what gave them.
pub static ZEN_4: [Group; 10] = [
    group(
        "L2",
        &[CORE_CYCLES, BY_L2, BY_L3, BY_MEMORY],
        &[
            number(BYTES, "l2_load_volume", |n| zen_lines(n, &[BY_L2, BY_L3, BY_MEMORY])),
            number(BYTES_A_CYCLE, "l2_load_bandwidth", |n| {
                zen_lines_a_cycle(n, &[BY_L2, BY_L3, BY_MEMORY])
            }),
        ],
    ),
    group(
        "L3",
        &[CORE_CYCLES, BY_L3, BY_MEMORY],
        &[
            number(BYTES, "l3_load_volume", |n| zen_lines(n, &[BY_L3, BY_MEMORY])),
            number(BYTES_A_CYCLE, "l3_load_bandwidth", |n| {
                zen_lines_a_cycle(n, &[BY_L3, BY_MEMORY])
            }),
        ],
    ),
    group(
        "MEM",
        &[CORE_CYCLES, BY_MEMORY],
        &[
            number(BYTES, "mem_load_volume", |n| zen_lines(n, &[BY_MEMORY])),
            number(BYTES_A_CYCLE, "mem_load_bandwidth", |n| zen_lines_a_cycle(n, &[BY_MEMORY])),
        ],
    ),
    group(
        "BRANCH",
        &[ZEN_INSTRUCTIONS, ZEN_BRANCHES, MISPREDICTS],
        &[
            share("branch_rate", |n| ratio(n(ZEN_BRANCHES), n(ZEN_INSTRUCTIONS))),
            share("branch_misprediction_rate", |n| ratio(n(MISPREDICTS), n(ZEN_INSTRUCTIONS))),
            share("branch_misprediction_ratio", |n| per(n(MISPREDICTS), n(ZEN_BRANCHES))),
            number("instructions/branch", "instructions_per_branch", |n| {
                per(n(ZEN_INSTRUCTIONS), n(ZEN_BRANCHES))
            }),
        ],
    ),
    group(
        "DIVIDE",
        &[ZEN_DIVISIONS, ZEN_DIVIDING],
        &[
            number("divisions", "divisions", |n| n(ZEN_DIVISIONS)),
            number("cycles/division", "division_duration", |n| {
                per(n(ZEN_DIVIDING), n(ZEN_DIVISIONS))
            }),
        ],
    ),
    group(
        "FLOPS",
        &[CORE_CYCLES, ZEN_FLOPS],
        &[
            number(FLOPS, "flops", |n| n(ZEN_FLOPS)),
            number(FLOPS_A_CYCLE, "flops_rate", |n| ratio(n(ZEN_FLOPS), n(CORE_CYCLES))),
        ],
    ),
    refused("FLOPS_DP"),
    refused("FLOPS_SP"),
    refused("MEM_DP"),
    refused("MEM_SP"),
];

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// The formulas of LIKWID's pages, by hand.
    #[test]
    fn widths_and_levels_have_likwid_s_weights() {
        let of = |group: &Group, name: &str, counts: &[(&str, f64)]| {
            let metric = group.method.metrics.iter().find(|it| it.metric == name).expect(name);
            (metric.formula)(&|event| counts.iter().find(|it| it.0 == event).map_or(0.0, |it| it.1))
        };
        let dp: Vec<_> = DOUBLE.into_iter().zip([7.0, 5.0, 3.0, 2.0]).collect();
        let dp = [&dp[..], &[(CYCLES, 100.0)]].concat();
        assert_eq!(of(&FLOPS_DP, "flops_dp", &dp), 7.0 + 10.0 + 12.0 + 16.0);
        assert_eq!(of(&FLOPS_DP, "flops_dp_rate", &dp), 0.45);
        assert_eq!(of(&FLOPS_DP, "vectorized_dp", &dp), 10.0 / 17.0);
        let sp: Vec<_> = SINGLE.into_iter().zip([7.0, 5.0, 3.0, 2.0]).collect();
        assert_eq!(of(&FLOPS_SP, "flops_sp", &sp), 7.0 + 20.0 + 24.0 + 32.0);
        let memory = [&dp[..], &[(FROM_MEMORY, 9.0)]].concat();
        assert_eq!(of(&MEM_DP, "intensity_dp", &memory), 45.0 / 576.0);
        assert_eq!(of(&MEM, "mem_load_bandwidth", &memory), 5.76);
        let zen = [(CORE_CYCLES, 64.0), (BY_L2, 4.0), (BY_L3, 2.0), (BY_MEMORY, 1.0)];
        let [l2, l3, memory, ..] = &ZEN_4;
        assert_eq!(of(l2, "l2_load_bandwidth", &zen), 7.0);
        assert_eq!(of(l3, "l3_load_bandwidth", &zen), 3.0);
        assert_eq!(of(memory, "mem_load_bandwidth", &zen), 1.0);
    }

    /// Without counts a number is 0, and a quotient of events not a number.
    #[test]
    fn a_program_that_did_nothing_has_zeros() {
        let groups = ICE_LAKE.iter().chain(&SAPPHIRE_RAPIDS).chain(&ZEN_4);
        for metric in groups.flat_map(|group| group.method.metrics) {
            let of_none = (metric.formula)(&|_| 0.0);
            let is_count = matches!(metric.whole, Whole::Unit(unit) if !unit.contains('/'));
            assert!(of_none == 0.0 || of_none.is_nan() && !is_count, "{}", metric.metric);
        }
    }
}
