//! The paper's experiments (003, Tables I and II), scaled: the halts, and the counts of the runs
//! with them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tally_abi::{
    ExitStatus,
    halt::{HaltTimer, Halts},
    truth::RegionKind,
};
use tally_breakdown::Structure;
use xtask::{
    Failure, Result,
    halts::HaltArgs,
    machine::{Artefacts, Boot, Pmu, Request},
};

use crate::study::seeds;

/// The tag of the truth's region of a whole program.
pub(super) const REGION: u32 = 3;
/// Time limit of a run on the host, in seconds.
const TIME_LIMIT_S: u64 = 600;

/// Quantity that varies between the conditions of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Varied {
    /// The length of halts.
    Length,
    /// Their frequency.
    Frequency,
}

/// A line of the paper's tables: the constant and the varied quantity, in seconds of the paper.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) varied: Varied,
    /// The constant period, if lengths are varied; otherwise the constant length.
    pub(super) held_s: f64,
    /// The values of the varied quantity; for frequencies the periods, in the order of rising
    /// numbers of halts.
    pub(super) values_s: &'static [f64],
}

/// Tables I and II of the paper.
pub(super) const LINES: [Line; 4] = [
    Line { varied: Varied::Length, held_s: 0.125, values_s: &[0.0, 0.5, 2.0] },
    Line { varied: Varied::Length, held_s: 0.5, values_s: &[0.0, 0.25, 0.5, 1.0, 2.0, 8.0] },
    Line { varied: Varied::Frequency, held_s: 0.5, values_s: &[8.0, 2.0, 1.0, 0.5, 0.1] },
    Line { varied: Varied::Frequency, held_s: 2.0, values_s: &[2.0, 0.5] },
];

/// Conversion of the paper's seconds to cycles.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Scale {
    /// Cycles per second of the paper.
    pub(super) second_cycles: u64,
    /// Bytes that each halt touches.
    pub(super) footprint_bytes: u64,
}

impl Scale {
    fn cycles(self, seconds: f64) -> u64 {
        (seconds * self.second_cycles as f64).round() as u64
    }

    /// The halts of the conditions of a line, in its order.
    pub(super) fn halts(self, line: &Line) -> Vec<Halts> {
        let of = |value: &f64| {
            let [length, period] = match line.varied {
                Varied::Length => [*value, line.held_s],
                Varied::Frequency => [line.held_s, *value],
            };
            Halts {
                length_cycles: self.cycles(length),
                period_cycles: self.cycles(period),
                footprint_bytes: self.footprint_bytes,
            }
        };
        line.values_s.iter().map(of).collect()
    }

    /// The halts of all lines, each once.
    pub(super) fn all(self) -> Vec<Halts> {
        let mut all: Vec<Halts> = LINES.iter().flat_map(|line| self.halts(line)).collect();
        all.sort_by_key(|halts| (halts.period_cycles, halts.length_cycles));
        all.dedup();
        all
    }
}

/// Counts of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counted {
    /// The truth of the program's events in ring 3.
    pub(super) events: BTreeMap<String, u64>,
    /// Number of halts, and the mean of their core cycles.
    pub(super) halts: u64,
    pub(super) mean_cycles: f64,
    /// Records of the run's trace, those of them that were lost, and the number of waits for the
    /// host to receive records.
    pub(super) records: u64,
    pub(super) lost: u64,
    pub(super) waits: u64,
}

/// The kernel's command line of a run.
pub(super) fn command_line(
    program: &str,
    seed: u64,
    halt: Option<Halts>,
    timer: HaltTimer,
) -> String {
    let args = HaltArgs { halt, halt_timer: halt.map(|_| timer) };
    format!("seed={seed} wire{} -- region={REGION} {program}", args.options())
}

/// The structures that determine the numbers of these events, each once.
pub(super) fn structures<'a>(events: impl Iterator<Item = &'a String>) -> Vec<&'static str> {
    let words: BTreeSet<&str> = events.map(|name| Structure::of(name).word()).collect();
    words.into_iter().collect()
}

/// Runs the program of a kernel's command line.
///
/// # Errors
/// The machine fails, or the virtual PMU has no truth of the program.
pub(super) fn run(artefacts: &Artefacts, pmu: Pmu, line: String, seed: u64) -> Result<Counted> {
    let request = Request {
        pmu,
        time_limit: std::time::Duration::from_secs(TIME_LIMIT_S),
        ..Request::new(line)
    };
    counted(&seeds::boot(artefacts, &request, seed)?)
}

fn counted(boot: &Boot) -> Result<Counted> {
    let region = boot.truth.as_ref().and_then(|truth| truth.region(RegionKind::Marked, REGION));
    let region = region.ok_or_else(|| {
        Failure::new(ExitStatus::CheckFailed, "a run has no truth of its program")
    })?;
    let halted = boot.transcript.halted;
    let (halts, cycles) = halted.map_or((0, 0), |halted| (halted.count, halted.cycles));
    let rings = &boot.transcript.rings;
    Ok(Counted {
        events: region.events.iter().map(|(name, count)| (name.clone(), count.user)).collect(),
        halts,
        mean_cycles: cycles as f64 / halts.max(1) as f64,
        records: rings.iter().map(|ring| ring.written).sum(),
        lost: rings.iter().map(|ring| ring.lost).sum(),
        waits: rings.iter().map(|ring| ring.waits).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_abi::boot::CommandLine;

    #[test]
    fn the_paper_s_conditions_are_scaled() {
        let scale = Scale { second_cycles: 100_000, footprint_bytes: 64 };
        let all = scale.all();
        // Tables I and II have 16 runs with halts, two of them twice.
        assert_eq!(all.len(), 14);
        assert!(all.iter().all(|halts| halts.footprint_bytes == 64));
        let periods: Vec<u64> = scale.halts(&LINES[2]).iter().map(|it| it.period_cycles).collect();
        assert_eq!(periods, [800_000, 200_000, 100_000, 50_000, 10_000]);
        let lengths = scale.halts(&LINES[1]);
        assert_eq!(lengths.last().map(|halts| halts.length_cycles), Some(800_000));
        assert!(lengths.iter().all(|halts| halts.period_cycles == 50_000));
    }

    #[test]
    fn the_kernel_parses_the_command_line() {
        let halts = Scale { second_cycles: 100_000, footprint_bytes: 0 }.all()[0];
        let text = command_line("rounds 1 2", 4, Some(halts), HaltTimer::Held);
        let line = CommandLine::parse(&text).unwrap();
        assert_eq!(
            (line.seed, line.halts, line.halt_timer),
            (4, Some(halts), Some(HaltTimer::Held))
        );
        let program = line.programs().next().unwrap().unwrap();
        assert_eq!(program.region, Some(REGION));
        let text = command_line("rounds 1 2", 4, None, HaltTimer::Held);
        assert_eq!(CommandLine::parse(&text).unwrap().halts, None);
    }
}
