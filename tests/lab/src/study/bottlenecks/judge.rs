//! Comparison of a model of a program's intervals with the truth.

use serde::Serialize;
use tally_abi::{PhaseConfig, phase::COSTS};
use tally_engine::phase::{Counted, MAX_TERMS, Model, Tracker};
use xtask::report::AS_GOOD;

use super::{
    interval::Interval,
    terms::{CAUSES, Cause},
};

/// A model of a program, judged by its intervals of one length.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Judged {
    /// Number of intervals.
    pub(super) intervals: usize,
    /// The mean of |T − T_model| / T (formula 2), 0 to 1 and more.
    pub(super) error: f64,
    /// The share of intervals, 0 to 1, whose largest cost belongs to a cause without which they
    /// would save most, or nearly most.
    pub(super) named: f64,
    /// By cause: the share of the cycles that is saved without it, and the mean difference of the
    /// cost's share from it.
    pub(super) causes: [(f64, f64); CAUSES.len()],
}

/// Judges one model of all intervals; `None` without intervals.
pub(super) fn judge(model: &Model, intervals: &[Interval]) -> Option<Judged> {
    judge_each(intervals, |counted| {
        (model.cycles(counted).map(|cost| cost.cycles), model.time(counted))
    })
}

/// Judges the engine's tracker, which calibrates the penalties of a model interval by interval;
/// `None` without intervals.
pub(super) fn judge_calibrated(model: &Model, intervals: &[Interval]) -> Option<Judged> {
    let mut tracker = Tracker::new(PhaseConfig::default(), *model, &[None; MAX_TERMS]);
    judge_each(intervals, |counted| {
        let before = tracker.calibration().clone();
        let ended = tracker.observe(counted);
        let costs = before.apply(&ended.vector).costs;
        (costs.map(|cost| cost.cycles * counted.instructions / 1000), ended.model_cycles)
    })
}

/// Judges the costs and the time of each interval, in cycles; `None` without intervals.
fn judge_each(
    intervals: &[Interval],
    mut model: impl FnMut(&Counted) -> ([u64; COSTS], u64),
) -> Option<Judged> {
    let number = intervals.len() as f64;
    let mut judged = Judged { intervals: intervals.len(), ..Judged::default() };
    for interval in intervals {
        let (costs, time) = model(&interval.counted());
        let cycles = interval.cycles.max(1) as f64;
        judged.error += (time as f64 - cycles).abs() / cycles / number;
        let cost =
            |cause: &Cause| -> u64 { cause.kinds.iter().map(|kind| costs[*kind as usize]).sum() };
        let own = CAUSES.each_ref().map(cost);
        let most = interval.saved.iter().max().copied().unwrap_or_default() as f64;
        let is_right =
            largest(&own).is_some_and(|at| interval.saved[at] as f64 >= most - AS_GOOD * cycles);
        judged.named += f64::from(u8::from(is_right)) / number;
        for (share, (cost, saved)) in judged.causes.iter_mut().zip(own.iter().zip(interval.saved)) {
            share.0 += saved as f64 / cycles / number;
            share.1 += cost.abs_diff(saved) as f64 / cycles / number;
        }
    }
    (!intervals.is_empty()).then_some(judged)
}

fn largest(costs: &[u64; CAUSES.len()]) -> Option<usize> {
    let costs = costs.iter().enumerate().rev();
    costs.max_by_key(|(_, cost)| **cost).filter(|(_, cost)| **cost > 0).map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use tally_abi::phase::Bottleneck;
    use tally_engine::phase::cost::CYCLE;

    use super::*;

    #[test]
    fn the_sum_and_the_largest_cost_are_compared_with_cycles_and_savings() {
        let mut model = Model { width: 4, ..Model::default() };
        model.terms[0] = Some((Bottleneck::Il1Miss, 10 * CYCLE));
        model.terms[1] = Some((Bottleneck::DirectMisprediction, 20 * CYCLE));
        let interval = |events: [u64; 2]| Interval {
            cycles: 1_000,
            instructions: 1_000,
            events: events.into(),
            saved: [0, 500, 0, 0, 490],
        };
        let judged = judge(&model, &[interval([75, 0]), interval([10, 10])]).unwrap();
        // 250 + 750, and 250 + 100 + 200 of 1,000 cycles.
        assert!((judged.error - 0.45 / 2.0).abs() < 1e-9, "{judged:?}");
        assert_eq!((judged.intervals, judged.named), (2, 0.5));
        let [(_, branches), (share, code), ..] = judged.causes;
        assert!((share - 0.5).abs() < 1e-9 && (code - (0.25 + 0.4) / 2.0).abs() < 1e-9);
        assert!((branches - 0.1).abs() < 1e-9, "{judged:?}");
        assert!(judge(&model, &[]).is_none());
    }
}
