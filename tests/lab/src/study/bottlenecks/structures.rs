//! Comparison of each cost with the cycles that its structure saves when it is perfect.

use serde::Serialize;
use tally_abi::{
    phase::Bottleneck,
    truth::{RegionKind, Truth},
};
use tally_engine::phase::Model;
use xtask::{
    Result,
    shadows::{self, wrong},
};

use super::{fit::Way, interval::Interval};

/// A structure, and the costs of its misses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Structure {
    /// The virtual PMU's name of a core with the perfect structure.
    pub(super) perfect: &'static str,
    /// The costs.
    pub(super) kinds: &'static [Bottleneck],
}

/// Indices in [`STRUCTURES`] of the structures that the table can serve: the L1 instruction cache,
/// the L1 data cache, and the predictors of all branches.
pub(super) const SERVED: [usize; 3] = [6, 1, 3];

/// The structures. Costs of execution and of full queues have none.
pub(super) const STRUCTURES: [Structure; 9] = {
    use Bottleneck as B;
    const fn of(perfect: &'static str, kinds: &'static [B]) -> Structure {
        Structure { perfect, kinds }
    }
    [
        of("itlb", &[B::ItlbMiss]),
        of("l1i", &[B::Il1Miss, B::Il2Miss]),
        of("l2i", &[B::Il2Miss]),
        of("branch+indirect+returns", &[B::DirectMisprediction, B::IndirectMisprediction]),
        of("branch", &[B::DirectMisprediction]),
        of("indirect+returns", &[B::IndirectMisprediction]),
        of("l1d", &[B::Dl1Miss, B::Dl2Miss]),
        of("l2d", &[B::Dl2Miss]),
        of("dtlb", &[B::DtlbMiss]),
    ]
};

/// Core cycles of a run, and those with each structure perfect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycles {
    pub(super) own: u64,
    pub(super) perfect: [u64; STRUCTURES.len()],
}

impl Cycles {
    /// Reads the cycles from the truth of a session.
    ///
    /// # Errors
    /// The truth lacks a core or an event.
    pub(super) fn of(truth: &Truth, session: u32) -> Result<Cycles> {
        let missing = || wrong("a run has no truth of its session".into());
        let own = truth.region(RegionKind::Session, session).ok_or_else(missing)?;
        let beside = truth
            .shadows
            .iter()
            .map(|shadow| Some((&*shadow.perfect, shadow.region(RegionKind::Session, session)?)));
        let beside: Option<Vec<_>> = beside.collect();
        let cycles = shadows::beside(own, &beside.ok_or_else(missing)?)?;
        let mut perfect = [0; STRUCTURES.len()];
        for (cycle, structure) in perfect.iter_mut().zip(&STRUCTURES) {
            *cycle = *cycles.get(structure.perfect).ok_or_else(missing)?;
        }
        Ok(Cycles { own: shadows::cycles(own)?, perfect })
    }

    /// The share of the cycles that a structure saves when it is perfect; negative if it costs
    /// some.
    pub(super) fn saved(&self, structure: usize) -> f64 {
        1.0 - self.perfect[structure] as f64 / self.own.max(1) as f64
    }
}

/// The saving of a structure, and its costs by the models, in shares of the cycles.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Saved {
    /// Name of the structure.
    pub(super) structure: &'static str,
    /// The cycles that it saves when it is perfect.
    pub(super) saved: f64,
    /// The costs, in the order of [`Way::ALL`].
    pub(super) costs: [f64; Way::ALL.len()],
}

/// Compares every structure of a program, whose models are in the order of [`Way::ALL`].
pub(super) fn saved(
    cycles: &Cycles,
    models: &[Model; Way::ALL.len()],
    intervals: &[Interval],
) -> Vec<Saved> {
    let all = intervals.iter().map(|interval| interval.cycles).sum::<u64>().max(1) as f64;
    let one = |(index, structure): (usize, &Structure)| Saved {
        structure: structure.perfect,
        saved: cycles.saved(index),
        costs: models.each_ref().map(|model| cost(model, structure.kinds, intervals) as f64 / all),
    };
    STRUCTURES.iter().enumerate().map(one).collect()
}

/// The costs of these kinds in these intervals, in cycles.
fn cost(model: &Model, kinds: &[Bottleneck], intervals: &[Interval]) -> u64 {
    let of = |interval: &Interval| -> u64 {
        let costs = model.cycles(&interval.counted());
        kinds.iter().map(|kind| costs[*kind as usize].cycles).sum()
    };
    intervals.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use tally_engine::phase::cost::CYCLE;

    use super::*;

    #[test]
    fn costs_stand_beside_what_their_structures_save() {
        let mut model = Model { width: 4, ..Model::default() };
        model.terms[0] = Some((Bottleneck::Il1Miss, 10 * CYCLE));
        let interval = Interval {
            cycles: 1_000,
            instructions: 1_000,
            events: vec![30],
            ..Interval::default()
        };
        let mut cycles = Cycles { own: 1_000, perfect: [1_000; STRUCTURES.len()] };
        cycles.perfect[1] = 750;
        let all = saved(&cycles, &[model; Way::ALL.len()], &[interval]);
        let of = |name: &str| all.iter().find(|saved| saved.structure == name).unwrap();
        assert_eq!((of("l1i").saved, of("l1i").costs[0]), (0.25, 0.3));
        assert_eq!(of("l2i").costs[0], 0.0);
    }

    #[test]
    fn the_served_structures_are_those_of_their_names() {
        let names = SERVED.map(|index| STRUCTURES[index].perfect);
        assert_eq!(names, ["l1d", "l1i", "branch+indirect+returns"]);
    }
}
