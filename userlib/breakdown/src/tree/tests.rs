//! Comparison of the formulas with perf's, and trees whose parts add up.

use std::{borrow::ToOwned, cell::RefCell, collections::BTreeSet, string::String};

use super::{
    super::{
        count::{Count, INDEPENDENT},
        decoders, first, formulas, ports, stacks, stalls,
    },
    *,
};

const METHODS: [(&str, &TopDown); 14] = [
    ("icelake-server", &formulas::ICE_LAKE),
    ("sapphire-rapids", &formulas::SAPPHIRE_RAPIDS),
    ("zen4", &formulas::ZEN_4),
    ("ports of icelake-server", &ports::ICE_LAKE),
    ("ports of sapphire-rapids", &ports::SAPPHIRE_RAPIDS),
    ("decoders' latency", &decoders::LATENCY),
    ("decoders' bandwidth", &decoders::BANDWIDTH),
    ("op cache of zen4", &decoders::ZEN_4),
    ("first level of icelake-server", &first::ICE_LAKE),
    ("first level of sapphire-rapids", &first::SAPPHIRE_RAPIDS),
    ("first level of zen4", &first::ZEN_4),
    ("stalls of icelake-server", &stalls::ICE_LAKE),
    ("stalls of sapphire-rapids", &stalls::SAPPHIRE_RAPIDS),
    ("stalls of zen4", &stalls::ZEN_4),
];

#[test]
fn the_events_are_those_that_the_formulas_read() {
    for (name, method) in METHODS {
        let read = RefCell::new(BTreeSet::new());
        for metric in method.metrics {
            (metric.formula)(&|event| {
                read.borrow_mut().insert(event.to_owned());
                1.0
            });
        }
        let events: BTreeSet<String> = method.events.iter().map(|e| (*e).to_owned()).collect();
        assert_eq!(read.into_inner(), events, "{name}");
    }
}

/// Expected values are those of `perf stat -M` for the same counts, computed by hand from the
/// expressions in Linux's files.
#[test]
#[expect(clippy::too_many_lines, reason = "two tables of counts and metrics")]
fn metrics_are_those_of_perf() {
    let spr: &[(&str, f64)] = &[
        ("CPU_CLK_UNHALTED.THREAD", 1_000.0),
        ("UOPS_RETIRED.SLOTS", 2_400.0),
        ("IDQ_UOPS_NOT_DELIVERED.CORE", 1_200.0),
        ("IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 100.0),
        ("INT_MISC.UOP_DROPPING", 60.0),
        ("TOPDOWN.BACKEND_BOUND_SLOTS", 1_800.0),
        ("TOPDOWN.BAD_SPEC_SLOTS", 600.0),
        ("TOPDOWN.BR_MISPREDICT_SLOTS", 480.0),
        ("TOPDOWN.MEMORY_BOUND_SLOTS", 1_500.0),
        ("ICACHE_DATA.STALLS", 50.0),
        ("ICACHE_TAG.STALLS", 20.0),
        ("ARITH.DIVIDER_ACTIVE", 40.0),
        ("EXE_ACTIVITY.BOUND_ON_LOADS", 300.0),
        ("MEMORY_ACTIVITY.STALLS_L1D_MISS", 200.0),
        ("MEMORY_ACTIVITY.STALLS_L2_MISS", 150.0),
        ("MEMORY_ACTIVITY.STALLS_L3_MISS", 90.0),
    ];
    let want: &[(&str, f64)] = &[
        ("tma_retiring", 0.4),
        ("tma_frontend_bound", 0.19),
        ("tma_fetch_latency", 0.09),
        ("tma_icache_misses", 0.05),
        ("tma_itlb_misses", 0.02),
        ("tma_fetch_bandwidth", 0.1),
        ("tma_bad_speculation", 0.11),
        ("tma_branch_mispredicts", 0.08),
        ("tma_machine_clears", 0.03),
        ("tma_backend_bound", 0.3),
        ("tma_memory_bound", 0.25),
        ("tma_l1_bound", 0.1),
        ("tma_l2_bound", 0.05),
        ("tma_l3_bound", 0.06),
        ("tma_dram_bound", 0.09),
        ("tma_core_bound", 0.05),
        ("tma_divider", 0.04),
    ];
    assert_metrics(&formulas::SAPPHIRE_RAPIDS, spr, want);
    let icx: &[(&str, f64)] = &[
        ("CPU_CLK_UNHALTED.THREAD", 1_000.0),
        ("UOPS_RETIRED.SLOTS", 2_000.0),
        ("IDQ_UOPS_NOT_DELIVERED.CORE", 1_050.0),
        ("IDQ_UOPS_NOT_DELIVERED.CYCLES_0_UOPS_DELIV.CORE", 110.0),
        ("INT_MISC.UOP_DROPPING", 50.0),
        ("TOPDOWN.BACKEND_BOUND_SLOTS", 1_000.0),
        ("INT_MISC.CLEARS_COUNT", 50.0),
        ("BR_MISP_RETIRED.ALL_BRANCHES", 30.0),
        ("MACHINE_CLEARS.COUNT", 20.0),
        ("ICACHE_DATA.STALLS", 50.0),
        ("ICACHE_TAG.STALLS", 20.0),
        ("ARITH.DIVIDER_ACTIVE", 40.0),
        ("CYCLE_ACTIVITY.STALLS_TOTAL", 400.0),
        ("EXE_ACTIVITY.BOUND_ON_STORES", 50.0),
        ("EXE_ACTIVITY.1_PORTS_UTIL", 100.0),
        ("EXE_ACTIVITY.2_PORTS_UTIL", 250.0),
        ("CYCLE_ACTIVITY.STALLS_MEM_ANY", 300.0),
        ("CYCLE_ACTIVITY.STALLS_L1D_MISS", 220.0),
        ("CYCLE_ACTIVITY.STALLS_L2_MISS", 120.0),
        ("CYCLE_ACTIVITY.STALLS_L3_MISS", 90.0),
    ];
    // Few micro-operations in 100 + 0.4 · 250 cycles.
    let memory = 350.0 / 650.0 * 0.25;
    let want: &[(&str, f64)] = &[
        ("tma_retiring", 0.4),
        ("tma_frontend_bound", 0.2),
        ("tma_fetch_latency", 0.1),
        ("tma_icache_misses", 0.05),
        ("tma_itlb_misses", 0.02),
        ("tma_fetch_bandwidth", 0.1),
        ("tma_bad_speculation", 0.15),
        ("tma_branch_mispredicts", 0.09),
        ("tma_machine_clears", 0.06),
        ("tma_backend_bound", 0.25),
        ("tma_memory_bound", memory),
        ("tma_l1_bound", 0.08),
        ("tma_l2_bound", 0.1),
        ("tma_l3_bound", 0.03),
        ("tma_dram_bound", 0.09),
        ("tma_store_bound", 0.05),
        ("tma_core_bound", 0.25 - memory),
        ("tma_divider", 0.04),
    ];
    assert_metrics(&formulas::ICE_LAKE, icx, want);
}

#[test]
fn metrics_of_zen_4_are_those_of_perf() {
    let zen: &[(&str, f64)] = &[
        ("CYCLES_NOT_IN_HALT", 1_000.0),
        ("DISPATCH_STALLS_1.FE_NO_OPS", 1_200.0),
        ("DISPATCH_STALLS_1.FE_NO_OPS:c=6", 150.0),
        ("DISPATCH_STALLS_1.BE_STALLS", 1_500.0),
        ("DISPATCH_STALLS_1.SMT_CONTENTION", 300.0),
        ("OPS_SOURCE_DISPATCHED_FROM_DECODER:DECODER:OPCACHE:LOOP_BUFFER", 3_000.0),
        ("RETIRED_OPS", 2_400.0),
        ("RETIRED_UCODE_OPS", 600.0),
        ("RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED", 30.0),
        ("RESYNCS", 10.0),
        ("CYCLES_NO_RETIRE.NOT_COMPLETE_LOAD_AND_ALU", 500.0),
        ("CYCLES_NO_RETIRE.NOT_COMPLETE_MISSING_LOAD", 400.0),
    ];
    let want: &[(&str, f64)] = &[
        ("retiring", 0.4),
        ("retiring_fastpath", 0.3),
        ("retiring_microcode", 0.1),
        ("frontend_bound", 0.2),
        ("frontend_bound_latency", 0.15),
        ("tally_mispredict_refill", 0.15),
        ("tally_instruction_fetch", 0.0),
        ("frontend_bound_bandwidth", 0.05),
        ("bad_speculation", 0.1),
        ("bad_speculation_mispredicts", 0.075),
        ("bad_speculation_pipeline_restarts", 0.025),
        ("backend_bound", 0.25),
        ("backend_bound_memory", 0.2),
        ("backend_bound_cpu", 0.05),
        ("smt_contention", 0.05),
    ];
    assert_metrics(&formulas::ZEN_4, zen, want);
}

#[test]
fn the_parts_of_slots_close_on_each_level() {
    for stack in stacks::ALL {
        let counts = |name: &str| {
            let place = stack.events().iter().position(|event| *event == name)? as f64;
            Some(Count { estimate: 1_000.0 + 100.0 * place, half_width_95: 10.0, truth: None })
        };
        let tree = slot_tree(&counts, INDEPENDENT, stack);
        let sum = |level: u8, parts: &[CyclePart]| {
            let own = parts.iter().take_while(|part| part.level >= level);
            own.filter(|part| part.level == level).map(|part| part.share).sum::<f64>()
        };
        assert!((sum(1, &tree) - 1.0).abs() < 1e-9, "{tree:?}");
        for (at, part) in tree.iter().enumerate() {
            let below = sum(part.level + 1, &tree[at + 1..]);
            let is_leaf = tree.get(at + 1).is_none_or(|next| next.level <= part.level);
            assert!(is_leaf || (below - part.share).abs() < 1e-9, "{}: {tree:?}", part.name);
        }
    }
}

fn assert_metrics(method: &TopDown, counts: &[(&str, f64)], want: &[(&str, f64)]) {
    let count = |name: &str| counts.iter().find(|(event, _)| *event == name).unwrap().1;
    let names: Vec<&str> = method.metrics.iter().map(|metric| metric.metric).collect();
    assert_eq!(names, want.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (metric, (name, want)) in method.metrics.iter().zip(want) {
        let got = (metric.formula)(&count);
        assert!((got - want).abs() < 1e-12, "{name}: {got}, not {want}");
    }
}
