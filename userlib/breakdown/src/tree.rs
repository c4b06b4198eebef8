//! Breakdown of a program's cycles as a tree, by a processor's method, with an interval for each
//! part.

use alloc::{borrow::Cow, vec::Vec};
use core::cell::Cell;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use super::{
    closing::close,
    count::{Count, Counts, SumError, square},
    formulas::{CountOf, Metric, TopDown, Whole},
    stacks::{RETIRING, Stack, leaves},
};

/// Part of the cycles: either of their dispatch slots, each a fraction of a cycle, or of the cycles
/// themselves.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct CyclePart {
    /// Name of the cause.
    pub name: Cow<'static, str>,
    /// Metric's name in perf; empty for completion stalls.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "str::is_empty"))]
    pub metric: Cow<'static, str>,
    /// Level, from 1. The parent of a part is the last part before it at the level above.
    pub level: u8,
    /// Whether the part is a share of the cycles, which overlaps with others, and not of the slots.
    pub of_cycles: bool,
    /// Estimate, in cycles.
    pub cycles: f64,
    /// Share, 0 to 1. Shares of slots add up to their parent's, and at level 1 to 1.
    pub share: f64,
    /// Share by the vendor's formula, before the parts are closed.
    pub formula: f64,
    /// Cycles per instruction.
    pub cpi: f64,
    /// Half the width of the 95 % interval, in cycles. The errors of the events are taken as
    /// independent, unless the caller knows better. They are smaller for events of one group of
    /// which one contains the other.
    pub half_width_95: f64,
    /// Lower end of the interval, in cycles; at least 0.
    pub low_95: f64,
    /// Upper end of the interval, in cycles; at most all cycles.
    pub high_95: f64,
    /// Result of the formula for the virtual PMU's counts, in cycles.
    pub truth: Option<f64>,
}

/// Part before its level is closed. All values are shares.
struct Open {
    metric: &'static Metric,
    share: f64,
    truth: Option<f64>,
    of: Share,
}

/// Parts in the order of the tree, including parts on request whose events were counted.
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

/// Parts that divide the cycles once, in the order of the tree, if their events are measured. Their
/// cycles add up to all cycles.
pub fn cycle_parts(counts: Counts<'_>, errors: SumError<'_>, stack: &Stack) -> Vec<CyclePart> {
    let metrics = leaves(stack.method);
    let mut parts: Vec<Open> =
        metrics.map(|metric| Open::of(counts, errors, stack.method, metric)).collect();
    close_all(&mut parts.iter_mut().collect::<Vec<_>>(), [Some(1.0); 2]);
    let mut parts = closed(counts, stack, parts);
    parts.iter_mut().for_each(|part| part.level = 1);
    parts
}

/// Parts of slots as a tree, without those of retiring, if the events of [`cycle_parts`] are
/// measured. Parts at level 1 add up to all cycles.
pub fn slot_tree(counts: Counts<'_>, errors: SumError<'_>, stack: &Stack) -> Vec<CyclePart> {
    let leaves: Vec<&str> = leaves(stack.method).map(|metric| metric.name).collect();
    let is_shown = |at: &usize| {
        let metric = &stack.method.metrics[*at];
        let parts = stack.method.metrics[at + 1..].iter();
        let mut parts = parts.take_while(|part| part.level > metric.level);
        let mut has_leaf = || parts.any(|part| leaves.contains(&part.name));
        metric.whole == Whole::Slots
            && (metric.level == 1 || leaves.contains(&metric.name) || has_leaf())
    };
    let metrics = (0..stack.method.metrics.len()).filter(is_shown);
    let metrics = metrics.map(|at| &stack.method.metrics[at]);
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

/// Closes the parts of `level` from index `from` on, up to the end of their parent.
fn close_level(parts: &mut [Open], from: usize, level: u8, wholes: [Option<f64>; 2]) {
    let children = parts.iter_mut().skip(from).take_while(|part| part.metric.level >= level);
    let is_child =
        |part: &&mut Open| part.metric.level == level && part.metric.whole == Whole::Slots;
    close_all(&mut children.filter(is_child).collect::<Vec<_>>(), wholes);
}

/// Closes parts of a share, and those of its truth. Formulas that are clamped at 0 do not add up
/// for the truth either.
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

/// Converts closed parts to cycles.
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
    /// Returns whether this many cycles are in the 95 % interval, to within half a cycle and a
    /// thousandth of a percent of all cycles.
    pub fn contains(&self, truth: f64) -> bool {
        let all = if self.share > 0.0 { self.cycles / self.share } else { 0.0 };
        let least = 0.5 + 1e-5 * all;
        (self.low_95 - least..=self.high_95 + least).contains(&truth)
    }

    /// Returns whether the part is the one that is not lost.
    pub fn is_work(&self) -> bool {
        self.name == RETIRING
    }
}

/// Value of a metric by the vendor's formula.
pub(super) struct Share {
    /// Share, 0 to 1.
    pub(super) formula: f64,
    /// Half the width of the 95 % interval. The errors of the events are taken as independent,
    /// unless the caller knows better.
    pub(super) half_width_95: f64,
    /// Result of the formula for the virtual PMU's counts.
    pub(super) truth: Option<f64>,
}

/// Share of a metric. Events that were not measured count as 0.
pub(super) fn share(
    counts: Counts<'_>,
    errors: SumError<'_>,
    method: &TopDown,
    metric: &Metric,
) -> Share {
    let estimate = |name: &str| counts(name).unwrap_or_default().estimate;
    // Change of the metric for one more event; `None` for an exact count.
    let slope = |event: &&'static str| {
        let Count { estimate: of_event, half_width_95, .. } = counts(event).unwrap_or_default();
        // Half of an estimated whole is far enough: further down a ratio has no slope, and below 0
        // another sign.
        let has_estimated_whole = matches!(metric.whole, Whole::Events | Whole::Unit(_));
        let is_far = has_estimated_whole && of_event > 0.0 && half_width_95 > of_event / 2.0;
        let step = if is_far { of_event / 2.0 } else { half_width_95 };
        let moved = |by: f64| {
            let count: CountOf<'_> = &|name| estimate(name) + if name == *event { by } else { 0.0 };
            (metric.formula)(count)
        };
        let slope = || (moved(step) - moved(-step)) / 2.0 / step;
        (step > 0.0).then(|| (*event, slope())).filter(|(_, slope)| *slope != 0.0)
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
mod tests;
