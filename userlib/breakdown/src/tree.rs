//! Where a program's cycles go, by the tree of a processor's method, with a bar on each part.

use alloc::{borrow::Cow, vec::Vec};
use core::cell::Cell;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::{
    closing::close,
    count::{Counts, SumError, square},
    formulas::{CountOf, Metric, TopDown, Whole},
    stacks::{RETIRING, Stack, leaves},
};

/// A part of the cycles: of their slots of dispatch, each as its part of a cycle, or of the cycles
/// themselves.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct CyclePart {
    /// What they went to.
    pub name: Cow<'static, str>,
    /// The metric's name in perf; empty of completion stalls.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "str::is_empty"))]
    pub metric: Cow<'static, str>,
    /// The level, from 1. A part is one of the last part before it of the level above.
    pub level: u8,
    /// Whether it is a share of the cycles, which overlaps with others, and not of the slots.
    pub of_cycles: bool,
    /// In cycles.
    pub cycles: f64,
    /// The share, 0 to 1. Those of slots add up to their parent's, and on level 1 to 1.
    pub share: f64,
    /// What the vendor's formula gives for the share, before the parts are closed.
    pub formula: f64,
    /// Cycles an instruction.
    pub cpi: f64,
    /// Half the width of the 95 % interval, in cycles. It takes the errors of the events as
    /// independent, unless the caller knew better; those of events of one group, of which one
    /// contains the other, are smaller.
    pub half_width_95: f64,
    /// The lower end of the interval, in cycles; not below 0.
    pub low_95: f64,
    /// The upper end of the interval, in cycles; not above all cycles.
    pub high_95: f64,
    /// What the formula gives for the virtual PMU's counts, in cycles.
    pub truth: Option<f64>,
}

/// A part before its level is closed. All are shares.
struct Open {
    metric: &'static Metric,
    share: f64,
    truth: Option<f64>,
    of: Share,
}

/// The parts in the order of the tree, with those on request whose events were counted.
pub(super) fn tree_parts(
    counts: Counts<'_>,
    errors: SumError<'_>,
    stack: &Stack,
) -> Vec<CyclePart> {
    let is_counted = |method: &TopDown| method.events.iter().all(|name| counts(name).is_some());
    let tree = stack.tree(|further| further.parent.is_some() && is_counted(further.method));
    let open = |(method, metric)| Open::of(counts, errors, method, metric);
    closed(counts, stack, close_tree(tree.into_iter().map(open).collect()))
}

/// The parts that divide the cycles once, in the order of the tree, if their events are measured.
/// Their cycles sum to all cycles.
pub fn cycle_parts(counts: Counts<'_>, errors: SumError<'_>, stack: &Stack) -> Vec<CyclePart> {
    let metrics = leaves(stack.method);
    let mut parts: Vec<Open> =
        metrics.map(|metric| Open::of(counts, errors, stack.method, metric)).collect();
    close_all(&mut parts.iter_mut().collect::<Vec<_>>(), [Some(1.0); 2]);
    let mut parts = closed(counts, stack, parts);
    parts.iter_mut().for_each(|part| part.level = 1);
    parts
}

/// The parts of slots on the first two levels, as a tree, if the events of [`cycle_parts`] are
/// measured. Those of level 1 sum to all cycles.
pub fn slot_tree(counts: Counts<'_>, errors: SumError<'_>, stack: &Stack) -> Vec<CyclePart> {
    let leaves: Vec<&str> = leaves(stack.method).map(|metric| metric.name).collect();
    let is_shown = |metric: &&Metric| {
        metric.whole == Whole::Slots && (metric.level == 1 || leaves.contains(&metric.name))
    };
    let metrics = stack.method.metrics.iter().filter(is_shown);
    let parts = metrics.map(|metric| Open::of(counts, errors, stack.method, metric)).collect();
    closed(counts, stack, close_tree(parts))
}

/// Closes the parts of each level.
fn close_tree(mut parts: Vec<Open>) -> Vec<Open> {
    close_level(&mut parts, 0, 1, [Some(1.0); 2]);
    for at in 0..parts.len() {
        let Open { metric, share, truth, .. } = &parts[at];
        let (level, wholes) = (metric.level + 1, [Some(*share), *truth]);
        close_level(&mut parts, at + 1, level, wholes);
    }
    parts
}

/// Closes the parts of `level` from index `from` on, as far as their parent reaches.
fn close_level(parts: &mut [Open], from: usize, level: u8, wholes: [Option<f64>; 2]) {
    let children = parts.iter_mut().skip(from).take_while(|part| part.metric.level >= level);
    let is_child =
        |part: &&mut Open| part.metric.level == level && part.metric.whole == Whole::Slots;
    close_all(&mut children.filter(is_child).collect::<Vec<_>>(), wholes);
}

/// Closes parts of a share, and those of its truth: formulas that are not below 0 do not close
/// either.
fn close_all(parts: &mut [&mut Open], [whole, true_whole]: [Option<f64>; 2]) {
    let squares: Vec<f64> =
        parts.iter().map(|part| part.of.half_width_95 * part.of.half_width_95).collect();
    let closed = |values: Option<Vec<f64>>, whole: Option<f64>| {
        let (mut values, whole) = values.zip(whole)?;
        close(&mut values, &squares, whole);
        Some(values)
    };
    let shares = closed(Some(parts.iter().map(|part| part.share).collect()), whole);
    let truths = closed(parts.iter().map(|part| part.truth).collect(), true_whole);
    for (at, part) in parts.iter_mut().enumerate() {
        part.share = shares.as_ref().map_or(part.share, |shares| shares[at]);
        part.truth = truths.as_ref().map_or(part.truth, |truths| Some(truths[at]));
    }
}

/// Parts in cycles.
fn closed(counts: Counts<'_>, stack: &Stack, parts: Vec<Open>) -> Vec<CyclePart> {
    let [cycles, instructions] = [stack.cycles, stack.instructions]
        .map(|name| counts(name).unwrap_or_default().estimate.max(1.0));
    let true_cycles = counts(stack.cycles).and_then(|count| count.truth);
    let part = |Open { metric, share, truth, of }| CyclePart {
        name: metric.name.into(),
        metric: metric.metric.into(),
        level: metric.level,
        of_cycles: metric.whole == Whole::Cycles,
        cycles: share * cycles,
        share,
        formula: of.formula,
        cpi: share * cycles / instructions,
        half_width_95: of.half_width_95 * cycles,
        low_95: ((share - of.half_width_95) * cycles).max(0.0),
        high_95: ((share + of.half_width_95) * cycles).min(cycles),
        truth: truth.zip(true_cycles).map(|(share, cycles)| share * cycles),
    };
    parts.into_iter().map(part).collect()
}

impl Open {
    fn of(
        counts: Counts<'_>,
        errors: SumError<'_>,
        method: &'static TopDown,
        metric: &'static Metric,
    ) -> Open {
        let of = share(counts, errors, method, metric);
        Open { metric, share: of.formula, truth: of.truth, of }
    }
}

impl CyclePart {
    /// Returns whether this many cycles are in the 95 % interval, to half a cycle and a thousandth
    /// of a percent of all cycles.
    pub fn contains(&self, truth: f64) -> bool {
        let all = if self.share > 0.0 { self.cycles / self.share } else { 0.0 };
        let least = 0.5 + 1e-5 * all;
        (self.low_95 - least..=self.high_95 + least).contains(&truth)
    }

    /// Returns whether it is the part that is not lost.
    pub fn is_work(&self) -> bool {
        self.name == RETIRING
    }
}

/// What the vendor's formula gives.
pub(super) struct Share {
    /// The share, 0 to 1.
    pub(super) formula: f64,
    /// Half the width of its 95 % interval. It takes the errors of the events as independent,
    /// unless the caller knew better.
    pub(super) half_width_95: f64,
    /// What the formula gives for the virtual PMU's counts.
    pub(super) truth: Option<f64>,
}

/// A metric's share. Events that were not measured are 0.
pub(super) fn share(
    counts: Counts<'_>,
    errors: SumError<'_>,
    method: &TopDown,
    metric: &Metric,
) -> Share {
    let estimate = |name: &str| counts(name).unwrap_or_default().estimate;
    // What the metric grows by with one event more; none of an exact count.
    let slope = |event: &&'static str| {
        let half_width = counts(event).unwrap_or_default().half_width_95;
        let moved = |by: f64| {
            let count: CountOf<'_> = &|name| estimate(name) + if name == *event { by } else { 0.0 };
            (metric.formula)(count)
        };
        let slope = || (moved(half_width) - moved(-half_width)) / 2.0 / half_width;
        (half_width > 0.0).then(|| (*event, slope())).filter(|(_, slope)| *slope != 0.0)
    };
    let slopes: Vec<(&'static str, f64)> = method.events.iter().filter_map(slope).collect();
    let squares = square(counts, errors, &slopes);
    let is_known = Cell::new(true);
    let truth = (metric.formula)(&|name| {
        counts(name).and_then(|count| count.truth).unwrap_or_else(|| {
            is_known.set(false);
            0.0
        })
    });
    let truth = is_known.get().then_some(truth);
    Share { formula: (metric.formula)(&estimate), half_width_95: libm::sqrt(squares), truth }
}

#[cfg(test)]
mod tests {
    use std::{borrow::ToOwned, cell::RefCell, collections::BTreeSet, string::String};

    use super::{
        super::{decoders, first, formulas, ports, stalls},
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

    /// What `perf stat -M` gives for the same counts, computed by hand from the expressions in
    /// Linux's files.
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

    fn assert_metrics(method: &TopDown, counts: &[(&str, f64)], want: &[(&str, f64)]) {
        let count = |name: &str| counts.iter().find(|(event, _)| *event == name).unwrap().1;
        let names: Vec<&str> = method.metrics.iter().map(|metric| metric.metric).collect();
        assert_eq!(names, want.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for (metric, (name, want)) in method.metrics.iter().zip(want) {
            let got = (metric.formula)(&count);
            assert!((got - want).abs() < 1e-12, "{name}: {got}, not {want}");
        }
    }
}
