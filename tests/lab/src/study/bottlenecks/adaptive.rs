//! The table that serves the largest bottleneck (paper 004, section VIII, Figures 9 and 10).
//!
//! Each program runs without assist and with the table assisting each of three structures. The
//! adaptive run is assembled from these runs: the costs of an interval, in the run with the assist
//! that was active, choose the assist of the next interval. So a change of the assist costs
//! nothing, and the table is always trained.

use serde::Serialize;
use tally_abi::phase::Bottleneck;
use tally_engine::phase::Model;
use tally_model::Assist;

use super::{
    interval::Interval,
    structures::{Cycles, SERVED, STRUCTURES},
};

/// Number of structures that the table can assist.
const ASSISTS: usize = Assist::ALL.len();

/// The runs of a program: without the table, and with each assist in the order of
/// [`Assist::ALL`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Runs<'a> {
    pub(super) without: &'a [Interval],
    pub(super) with: &'a [Vec<Interval>; ASSISTS],
}

/// Speed-up of a program relative to the run without the table: 0.1 is 10 %.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Adaptive {
    /// With one assist all the time.
    pub(super) alone: [f64; ASSISTS],
    /// With the assist of the largest cost of the interval before.
    pub(super) adaptive: f64,
    /// With the best assist of each interval: a bound that no choice by costs can reach.
    pub(super) best: f64,
    /// With the assisted structure perfect.
    pub(super) perfect: [f64; ASSISTS],
    /// The share of intervals that each assist was chosen for (Figure 10).
    pub(super) chosen: [f64; ASSISTS],
}

impl Adaptive {
    /// Computes the speed-ups of a program whose costs are given by this model.
    pub(super) fn of(model: &Model, runs: Runs, cycles: &Cycles) -> Adaptive {
        let count = runs.with.iter().map(Vec::len).fold(runs.without.len(), usize::min);
        let sum = |run: &[Interval]| run[..count].iter().map(|one| one.cycles).sum::<u64>();
        let without = sum(runs.without) as f64;
        let faster = |cycles: u64| without / cycles.max(1) as f64 - 1.0;
        let (adaptive, chosen) = adapt(model, runs, count);
        let best = (0..count)
            .map(|index| runs.with.iter().map(|run| run[index].cycles).min().unwrap_or_default());
        Adaptive {
            alone: runs.with.each_ref().map(|run| faster(sum(run))),
            adaptive: faster(adaptive),
            best: faster(best.sum()),
            perfect: SERVED
                .map(|index| cycles.own as f64 / cycles.perfect[index].max(1) as f64 - 1.0),
            chosen: chosen.map(|intervals| intervals as f64 / count.max(1) as f64),
        }
    }
}

/// The cycles of the adaptive run, and the intervals of each assist.
fn adapt(model: &Model, runs: Runs, count: usize) -> (u64, [usize; ASSISTS]) {
    let (mut cycles, mut chosen) = (0, [0; ASSISTS]);
    let mut present: Option<usize> = None;
    for index in 0..count {
        let run = present.map_or(runs.without, |assist| &runs.with[assist]);
        cycles += run[index].cycles;
        if let Some(assist) = present {
            chosen[assist] += 1;
        }
        present = choose(model, &run[index]).or(present);
    }
    (cycles, chosen)
}

/// The assist for the largest of the costs that the table can serve; `None` if all are 0.
fn choose(model: &Model, interval: &Interval) -> Option<usize> {
    let costs = model.cycles(&interval.counted());
    let cost = |kinds: &[Bottleneck]| -> u64 {
        kinds.iter().map(|kind| costs[*kind as usize].cycles).sum()
    };
    let of = SERVED.map(|structure| cost(STRUCTURES[structure].kinds));
    let (largest, cost) = of.into_iter().enumerate().rev().max_by_key(|(_, cost)| *cost)?;
    (cost > 0).then_some(largest)
}

#[cfg(test)]
mod tests {
    use tally_engine::phase::cost::CYCLE;

    use super::*;

    /// An interval with misses of code and mispredictions.
    fn interval(cycles: u64, events: [u64; 2]) -> Interval {
        Interval { cycles, instructions: 1_000, events: events.into(), saved: [0; 5] }
    }

    #[test]
    fn each_interval_is_served_by_the_largest_cost_of_the_one_before() {
        let mut model = Model { width: 4, ..Model::default() };
        model.terms[0] = Some((Bottleneck::Il1Miss, 10 * CYCLE));
        model.terms[1] = Some((Bottleneck::DirectMisprediction, 10 * CYCLE));
        let run = |cycles: [u64; 4]| -> Vec<Interval> {
            let events = [[9, 1], [9, 1], [1, 9], [1, 9]];
            cycles.iter().zip(events).map(|(cycles, events)| interval(*cycles, events)).collect()
        };
        let without = run([100; 4]);
        let with = [run([100; 4]), run([50, 50, 100, 100]), run([100, 100, 80, 80])];
        let cycles = Cycles { own: 400, perfect: [200; STRUCTURES.len()] };
        let runs = Runs { without: &without, with: &with };
        let adaptive = Adaptive::of(&model, runs, &cycles);
        // No assist at first, then code twice, then branches.
        assert!((adaptive.adaptive - (400.0 / 330.0 - 1.0)).abs() < 1e-9, "{adaptive:?}");
        assert_eq!(adaptive.chosen, [0.0, 0.5, 0.25]);
        assert!((adaptive.best - (400.0 / 260.0 - 1.0)).abs() < 1e-9, "{adaptive:?}");
        assert!((adaptive.alone[1] - (400.0 / 300.0 - 1.0)).abs() < 1e-9, "{adaptive:?}");
        assert_eq!(adaptive.perfect, [1.0; 3]);
    }
}
