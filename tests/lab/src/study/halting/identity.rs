//! Halts at the same places, with lengths over four orders of magnitude, to find the events of a
//! program that depend on the length.
//!
//! Equal seeds and periods halt at equal places as long as the program takes as many cycles in
//! ring 3. Each run without a footprint is compared with the run of the shortest halts.

use std::collections::BTreeMap;

use serde::Serialize;
use tally_abi::halt::{HaltTimer, Halts};
use xtask::{
    Result,
    machine::{Artefacts, Pmu},
};

use super::experiment::{self, Counted, structures};
use crate::study::seeds;

/// Lengths, in core cycles.
pub(super) const LENGTHS: [u64; 5] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Differences of a run's events from those of the run of the shortest halts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Compared {
    pub(super) program: String,
    /// State of the scheduler's timer during halts.
    pub(super) timer: HaltTimer,
    pub(super) length_cycles: u64,
    /// Number of halts, and the mean of their core cycles.
    pub(super) halts: u64,
    pub(super) mean_cycles: f64,
    /// Number of events that were compared.
    pub(super) events: usize,
    /// Events that differ, with their difference.
    pub(super) differing: BTreeMap<String, i64>,
    /// The structures that determine the numbers of the differing events.
    pub(super) structures: Vec<&'static str>,
}

/// Compares the runs of all lengths with the first.
fn compare(program: &str, timer: HaltTimer, runs: &[Counted]) -> Vec<Compared> {
    let Some((shortest, longer)) = runs.split_first() else { return Vec::new() };
    let of = |(length_cycles, run): (&u64, &Counted)| {
        let difference = |(name, count): (&String, &u64)| {
            let before = shortest.events.get(name).copied().unwrap_or_default();
            let difference = *count as i64 - before as i64;
            (difference != 0).then(|| (name.clone(), difference))
        };
        let differing: BTreeMap<String, i64> = run.events.iter().filter_map(difference).collect();
        let structures = structures(differing.keys());
        Compared {
            program: program.to_owned(),
            timer,
            length_cycles: *length_cycles,
            halts: run.halts,
            mean_cycles: run.mean_cycles,
            events: run.events.len(),
            differing,
            structures,
        }
    };
    LENGTHS[1..].iter().zip(longer).map(of).collect()
}

/// Runs the programs with halts of each length, with the scheduler's timer held and running.
///
/// # Errors
/// A run fails.
pub(super) fn run(
    artefacts: &Artefacts,
    pmu: Pmu,
    programs: &[String],
    period_cycles: u64,
) -> Result<Vec<Compared>> {
    let timers = [HaltTimer::Held, HaltTimer::Running];
    let groups: Vec<(&String, HaltTimer)> =
        programs.iter().flat_map(|program| timers.map(|timer| (program, timer))).collect();
    let all = groups.len() * LENGTHS.len();
    let runs = seeds::in_parallel("machines", 0..=all as u64 - 1, |index| {
        let (group, length) = (index as usize / LENGTHS.len(), index as usize % LENGTHS.len());
        let (program, timer) = groups[group];
        let length_cycles = LENGTHS[length];
        let halts = Halts { length_cycles, period_cycles, footprint_bytes: 0 };
        let line = experiment::command_line(program, 1, Some(halts), timer);
        experiment::run(artefacts, pmu, line, 1)
    })?;
    let compared = groups.iter().zip(runs.chunks(LENGTHS.len()));
    Ok(compared.flat_map(|((program, timer), runs)| compare(program, *timer, runs)).collect())
}

/// The comparison as a table.
pub(super) fn render(compared: &[Compared]) -> String {
    let mut text = format!(
        "{:<36}{:<9}{:>12}{:>7}{:>14}{:>16}  structures\n",
        "halts at the same places", "timer", "cycles", "halts", "mean", "events differ"
    );
    for run in compared {
        text += &format!(
            "{:<36}{:<9}{:>12}{:>7}{:>14.0}{:>9} of {:>3}  {}\n",
            run.program,
            run.timer.word(),
            run.length_cycles,
            run.halts,
            run.mean_cycles,
            run.differing.len(),
            run.events,
            run.structures.join(", "),
        );
    }
    for timer in [HaltTimer::Held, HaltTimer::Running] {
        let runs = compared.iter().filter(|run| run.timer == timer);
        let same = runs.clone().filter(|run| run.differing.is_empty()).count();
        text += &format!(
            "scheduler's timer {}: {same} of {} runs have the events of halts of {} cycles\n",
            timer.word(),
            runs.count(),
            LENGTHS[0],
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named_with_their_structures() {
        let run = |misses: u64| Counted {
            events: BTreeMap::from([
                ("INST_RETIRED.ANY".to_owned(), 7),
                ("MEM_LOAD_RETIRED.L1_MISS".to_owned(), misses),
            ]),
            halts: 3,
            mean_cycles: 9.0,
            ..Counted::default()
        };
        let runs = [run(5), run(5), run(4), run(5), run(5)];
        let compared = compare("p", HaltTimer::Held, &runs);
        assert_eq!(compared.len(), 4);
        assert!(compared[0].differing.is_empty() && compared[0].structures.is_empty());
        assert_eq!(compared[1].differing["MEM_LOAD_RETIRED.L1_MISS"], -1);
        assert_eq!((compared[1].differing.len(), &*compared[1].structures), (1, &["caches"][..]));
        assert!(render(&compared).contains("held: 3 of 4 runs"), "{}", render(&compared));
    }
}
