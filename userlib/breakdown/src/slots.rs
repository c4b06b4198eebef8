//! Where a program's slots of dispatch go, by the vendor's top-down method, with a bar on each.

use alloc::{borrow::Cow, vec::Vec};

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::{
    closing::close,
    count::{Counts, SumError, square},
    formulas::{CountOf, Metric, TopDown, Whole},
    stacks::Stack,
};

/// A part of the slots, or of the cycles.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct SlotPart {
    /// What they went to.
    pub name: Cow<'static, str>,
    /// The metric's name in perf.
    pub metric: Cow<'static, str>,
    /// The level, from 1. A part is one of the last part before it of the level above.
    pub level: u8,
    /// Whether it is a share of the cycles, which overlaps with others, and not of the slots.
    pub of_cycles: bool,
    /// The share, 0 to 1. Those of slots add up to their parent's, and on level 1 to 1.
    pub share: f64,
    /// What the vendor's formula gives, before the parts are closed.
    pub formula: f64,
    /// Half the width of the 95 % interval. It takes the errors of the events as independent.
    pub half_width_95: f64,
    /// The lower end of the interval; not below 0.
    pub low_95: f64,
    /// The upper end of the interval; not above 1.
    pub high_95: f64,
    /// What the formula gives for the virtual PMU's counts.
    pub truth: Option<f64>,
}

/// The parts, in the order of the vendor's tree.
pub(super) fn slot_parts(counts: Counts<'_>, errors: SumError<'_>, stack: &Stack) -> Vec<SlotPart> {
    let is_counted = |method: &TopDown| method.events.iter().all(|name| counts(name).is_some());
    let tree = stack.tree(|further| further.parent.is_some() && is_counted(further.method));
    let part = |(method, metric)| part(counts, errors, method, metric);
    let mut parts: Vec<SlotPart> = tree.into_iter().map(part).collect();
    close_level(&mut parts, 0, 1, 1.0);
    for at in 0..parts.len() {
        let (level, share) = (parts[at].level, parts[at].share);
        close_level(&mut parts, at + 1, level + 1, share);
    }
    for part in &mut parts {
        part.low_95 = (part.share - part.half_width_95).max(0.0);
        part.high_95 = (part.share + part.half_width_95).min(1.0);
    }
    parts
}

/// Closes the parts of `level` from index `from` on, as far as their parent reaches.
fn close_level(parts: &mut [SlotPart], from: usize, level: u8, whole: f64) {
    let children = parts.iter().enumerate().skip(from).take_while(|(_, part)| part.level >= level);
    let children = children.filter(|(_, part)| part.level == level && !part.of_cycles);
    let children: Vec<usize> = children.map(|(index, _)| index).collect();
    let mut values: Vec<f64> = children.iter().map(|index| parts[*index].share).collect();
    let square = |index: &usize| parts[*index].half_width_95 * parts[*index].half_width_95;
    let squares: Vec<f64> = children.iter().map(square).collect();
    close(&mut values, &squares, whole);
    children.iter().zip(values).for_each(|(index, value)| parts[*index].share = value);
}

/// A metric before its level is closed.
fn part(counts: Counts<'_>, errors: SumError<'_>, method: &TopDown, metric: &Metric) -> SlotPart {
    let Share { formula, half_width_95, truth } = share(counts, errors, method, metric);
    SlotPart {
        name: metric.name.into(),
        metric: metric.metric.into(),
        level: metric.level,
        of_cycles: metric.whole == Whole::Cycles,
        share: formula,
        formula,
        half_width_95,
        low_95: 0.0,
        high_95: 1.0,
        truth,
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
    let true_count = |name: &str| counts(name).and_then(|count| count.truth);
    let is_known = method.events.iter().all(|event| true_count(event).is_some());
    let truth = is_known.then(|| (metric.formula)(&|name| true_count(name).unwrap_or_default()));
    Share { formula: (metric.formula)(&estimate), half_width_95: libm::sqrt(squares), truth }
}

impl SlotPart {
    /// Returns whether this share is in the 95 % interval, to a thousandth of a percent.
    pub fn contains(&self, truth: f64) -> bool {
        (self.low_95 - 1e-5..=self.high_95 + 1e-5).contains(&truth)
    }
}

#[cfg(test)]
mod tests {
    use std::{borrow::ToOwned, cell::RefCell, collections::BTreeSet, string::String};

    use super::{
        super::{decoders, formulas, ports},
        *,
    };

    const METHODS: [(&str, &TopDown); 8] = [
        ("icelake-server", &formulas::ICE_LAKE),
        ("sapphire-rapids", &formulas::SAPPHIRE_RAPIDS),
        ("zen4", &formulas::ZEN_4),
        ("ports of icelake-server", &ports::ICE_LAKE),
        ("ports of sapphire-rapids", &ports::SAPPHIRE_RAPIDS),
        ("decoders' latency", &decoders::LATENCY),
        ("decoders' bandwidth", &decoders::BANDWIDTH),
        ("op cache of zen4", &decoders::ZEN_4),
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
        ];
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
