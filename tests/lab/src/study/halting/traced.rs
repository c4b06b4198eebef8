//! Effects of a trace that halts its program while its ring is half full (`trace=halt`).
//!
//! Paper 003's machine is halted to empty its buffer. Here the records are a session's slices, and
//! the traced runs are compared with runs of the same session and seed without a trace.

use std::collections::BTreeMap;

use serde::Serialize;
use tally_abi::{session::NO_BUDGET_PPM, text::percent};
use xtask::{
    Result,
    machine::{Artefacts, Pmu},
};

use super::{
    experiment::{self, Counted, REGION, structures},
    statistics::{Mean, largest, significant},
};
use crate::study::seeds;

/// Length of a slice, so short that the ring is half full many times; and bound of the seeds'
/// additions to it, which interrupt each seed's runs at other places.
const SLICE_CYCLES: u64 = 4_000;
const MOST_LONGER_CYCLES: u64 = 400;
/// Addition per seed: a prime, so that consecutive seeds differ by much.
const LONGER_BY_SEED_CYCLES: u64 = 151;

/// Difference between an event of a traced program and that of untraced runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Affected {
    /// The mean count of untraced runs.
    pub(super) untraced: f64,
    /// The mean difference, in events.
    pub(super) difference: Mean,
}

/// A program's traced runs compared with its untraced ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Traced {
    pub(super) program: String,
    pub(super) ring_pages: u64,
    /// The mean number of records of a run.
    pub(super) records: f64,
    /// Number of lost records, in all runs.
    pub(super) lost: u64,
    /// The mean number of halts.
    pub(super) halts: f64,
    /// Number of events that were compared.
    pub(super) events: usize,
    /// Events with a difference that is significant among all of them.
    pub(super) affected: BTreeMap<String, Affected>,
    /// The structures that determine the numbers of the affected events.
    pub(super) structures: Vec<&'static str>,
}

/// The kernel's command line of a run; untraced without a ring.
fn command_line(program: &str, seed: u64, ring_pages: Option<u64>) -> String {
    let trace = ring_pages.map(|pages| format!(" trace=halt trace-ring={pages}"));
    let slice = SLICE_CYCLES + seed.wrapping_mul(LONGER_BY_SEED_CYCLES) % MOST_LONGER_CYCLES;
    format!(
        "seed={seed} wire{} -- region={REGION} events=instructions slice={slice} \
         budget={NO_BUDGET_PPM} {program}",
        trace.unwrap_or_default()
    )
}

/// Compares pairs of an untraced and a traced run of a program.
fn compare(program: &str, ring_pages: u64, pairs: &[[Counted; 2]]) -> Traced {
    let of = |name: &String| {
        let count = |run: &Counted| run.events.get(name).copied().unwrap_or_default() as f64;
        let untraced = pairs.iter().map(|[untraced, _]| count(untraced)).sum::<f64>();
        let differences = pairs.iter().map(|[untraced, traced]| count(traced) - count(untraced));
        let difference = Mean::of(&differences.collect::<Vec<f64>>());
        (name.clone(), Affected { untraced: untraced / pairs.len() as f64, difference })
    };
    let names = pairs.first().map(|[untraced, _]| untraced.events.keys());
    let all: Vec<(String, Affected)> = names.into_iter().flatten().map(of).collect();
    let events = all.len();
    let p: Vec<f64> = all.iter().map(|(_, it)| it.difference.p).collect();
    let significant = all.into_iter().zip(significant(&p));
    let affected: BTreeMap<_, _> = significant.filter(|(_, is)| *is).map(|(it, _)| it).collect();
    let structures = structures(affected.keys());
    let traced = || pairs.iter().map(|[_, traced]| traced);
    Traced {
        program: program.to_owned(),
        ring_pages,
        records: traced().map(|run| run.records as f64).sum::<f64>() / pairs.len() as f64,
        lost: traced().map(|run| run.lost).sum(),
        halts: traced().map(|run| run.waits as f64).sum::<f64>() / pairs.len() as f64,
        events,
        affected,
        structures,
    }
}

/// Runs the programs with each seed, untraced, and traced with a ring of `ring_pages` pages.
///
/// # Errors
/// A run fails.
pub(super) fn run(
    artefacts: &Artefacts,
    pmu: Pmu,
    programs: &[String],
    seeds: &[u64],
    ring_pages: u64,
) -> Result<Vec<Traced>> {
    let all = programs.len() * seeds.len() * 2;
    let runs = seeds::in_parallel("machines", 0..=all as u64 - 1, |index| {
        let (pair, is_traced) = (index as usize / 2, index % 2 == 1);
        let (program, seed) = (&programs[pair / seeds.len()], seeds[pair % seeds.len()]);
        let line = command_line(program, seed, is_traced.then_some(ring_pages));
        experiment::run(artefacts, pmu, line, seed)
    })?;
    let of_programs = programs.iter().zip(runs.chunks(2 * seeds.len()));
    let of =
        |(program, runs): (&String, &[Counted])| compare(program, ring_pages, runs.as_chunks().0);
    Ok(of_programs.map(of).collect())
}

/// The comparison as tables: by program, and by event.
pub(super) fn render(traced: &[Traced]) -> String {
    let Some(first) = traced.first() else { return String::new() };
    let mut text = format!(
        "a trace of slices of {SLICE_CYCLES} cycles and some more; it halts the program while its \
         ring\nof {} pages is half full\n{:<36}{:>8}{:>6}{:>7}{:>15}  structures\n",
        first.ring_pages, "program", "records", "lost", "halts", "events differ"
    );
    let mut by_event: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for of in traced {
        text += &format!(
            "{:<36}{:>8.0}{:>6}{:>7.1}{:>8} of {:>3}  {}\n",
            of.program,
            of.records,
            of.lost,
            of.halts,
            of.affected.len(),
            of.events,
            of.structures.join(", "),
        );
        for (event, it) in &of.affected {
            by_event.entry(event).or_default().push(it.difference.mean / it.untraced);
        }
    }
    text += &format!("{:<56}{:>9}{:>12}\n", "event", "programs", "most");
    for (event, shares) in &by_event {
        let most = largest(shares.iter().copied());
        let most = most.map_or_else(|| "from none".into(), |share| percent(share, true));
        text += &format!("{event:<56}{:>9}{most:>12}\n", shares.len());
    }
    text + "events without a line do not differ in any program\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_abi::boot::{CommandLine, Tracing};

    /// A pair in which the trace adds these L1 misses to 100.
    fn pair(added: u64) -> [Counted; 2] {
        let run = |misses, records| Counted {
            events: BTreeMap::from([
                ("INST_RETIRED.ANY".to_owned(), 7),
                ("MEM_LOAD_RETIRED.L1_MISS".to_owned(), misses),
            ]),
            records,
            ..Counted::default()
        };
        [run(100, 0), run(100 + added, 60)]
    }

    #[test]
    fn events_that_a_trace_changes_are_named_with_their_structures() {
        let traced = compare("p", 16, &[pair(30), pair(31), pair(30), pair(32)]);
        assert_eq!((traced.events, &*traced.structures), (2, &["caches"][..]));
        assert_eq!(traced.affected.keys().collect::<Vec<_>>(), ["MEM_LOAD_RETIRED.L1_MISS"]);
        let text = render(&[traced]);
        assert!(text.contains("+30.8%"), "{text}");
        let noise = compare("p", 16, &[pair(0), pair(9), pair(0), pair(0)]);
        assert!(noise.affected.is_empty(), "{noise:?}");
    }

    #[test]
    fn the_kernel_parses_the_command_line() {
        let traced = command_line("rounds 1 2", 4, Some(16));
        let traced = CommandLine::parse(&traced).unwrap();
        assert_eq!((traced.trace, traced.seed), (Some(Tracing::Halt), 4));
        assert_eq!(CommandLine::parse(&command_line("rounds 1 2", 4, None)).unwrap().trace, None);
    }
}
