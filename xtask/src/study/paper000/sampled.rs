//! Runs with multiplexed events: what was sampled in each round, and the full count (paper 000,
//! section 6.2).

use tally_abi::ExitStatus;
use tally_engine::Plan;
use tally_vpmu::Vendor;

use super::{
    distance::{self, Sample},
    grid::Cell,
    machine::{self, Machines, Recorded},
    paper::{PaperEvent, TABLE_2},
    rounds::{Round, rounds},
};
use crate::{Failure, Result, machine::Pmu, report::over_time};

/// An event in so many cycles or fewer is frequent: the paper's "infrequent" is rarer.
const FREQUENT: u64 = 100;
/// Rows of the series in a slice: a round begins and ends between two of them.
const ROWS_OF_A_SLICE: u64 = 4;
/// The shortest interval of a series here.
const SHORTEST_ROW_CYCLES: u64 = 2_000;
/// With fewer rounds a distance says nothing.
const FEWEST_ROUNDS: usize = 4;

/// How events are sampled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampling {
    /// Length of a slice.
    pub(super) slice_cycles: u64,
    /// Slices of a round: groups of events.
    pub(super) ratio: usize,
    /// The virtual PMU's pipeline.
    pub(super) pipeline: &'static str,
}

/// How an event's count in a round is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Estimated {
    /// From the slice in which it was counted, by linear scaling: the paper's way.
    Scaled,
    /// The counts of the other slices are predicted from slices that are like them (decision 37).
    Predicted,
}

/// The events of a sampled run and their plan.
#[derive(Clone, Debug)]
pub(super) struct EventList {
    /// Table 2's, then others, which fill the groups.
    events: Vec<String>,
    plan: Plan,
}

/// An event over time: by round.
#[derive(Clone, Debug)]
pub(super) struct OverTime {
    /// Its full counts.
    pub(super) full: Vec<u64>,
    /// What its slices counted.
    pub(super) sampled: Vec<Sample>,
    /// Its counts with those of slices in which it was not counted predicted (decision 37).
    pub(super) predicted: Vec<f64>,
}

/// A sampled run.
#[derive(Clone, Debug)]
pub(super) struct SampledRun {
    /// Instructions of the whole run.
    pub(super) instructions: u64,
    /// By round: the session's cycles up to its start, and its own.
    pub(super) rounds: Vec<(u64, u64)>,
    /// The events of Table 2.
    pub(super) events: Vec<OverTime>,
}

impl EventList {
    /// Table 2's events, and as many of the processor's others as make `ratio` groups.
    ///
    /// # Errors
    /// There are more groups already, or too few events.
    pub(super) fn of(pmu: Pmu, ratio: usize) -> Result<EventList> {
        let pmu = machine::virtual_pmu(pmu)?;
        let vendor = pmu.profile().vendor;
        let own = TABLE_2.iter().map(|event| event.of(vendor));
        let mut events: Vec<String> = own.map(str::to_owned).collect();
        let mut plan = machine::plan_of(&pmu, &events)?;
        for event in pmu.profile().events() {
            if plan.groups.len() >= ratio {
                break;
            }
            if events.iter().any(|known| known == event.name) {
                continue;
            }
            events.push(event.name.to_owned());
            match machine::plan_of(&pmu, &events) {
                Ok(with) => plan = with,
                Err(_) => drop(events.pop()),
            }
        }
        if plan.groups.len() == ratio {
            return Ok(EventList { events, plan });
        }
        let why = format!(
            "a round of {ratio} slices: the events of {} make {} groups; use another processor",
            pmu.profile().name,
            plan.groups.len()
        );
        Err(Failure::new(ExitStatus::TooManyEvents, why))
    }
}

/// Runs a program with this list.
///
/// # Errors
/// The machine fails, or the program is too short.
pub(super) fn run(
    machines: &Machines,
    list: &EventList,
    sampling: Sampling,
    program: &[String],
    seed: u64,
) -> Result<SampledRun> {
    let Sampling { slice_cycles, pipeline, .. } = sampling;
    let row_cycles = (slice_cycles / ROWS_OF_A_SLICE).max(SHORTEST_ROW_CYCLES);
    let cycles = match machines.pmu.profile().vendor {
        Vendor::Intel => "CPU_CLK_UNHALTED.THREAD",
        Vendor::Amd => "CYCLES_NOT_IN_HALT",
    };
    let recorded = Recorded {
        clock: cycles,
        vpmu: vec![format!("pipeline={pipeline}"), format!("every={row_cycles}c")],
    };
    let job = machine::job(&list.events, slice_cycles, seed);
    let ran = machines.run(&job, program, &recorded)?;
    let slices = ran.slices()?;
    let rounds = rounds(&slices, &list.plan, slice_cycles)
        .ok_or_else(|| Failure::new(ExitStatus::CheckFailed, "slices are in no rounds"))?;
    if rounds.len() < FEWEST_ROUNDS {
        let why = format!(
            "{}: {} rounds of {} slices of {slice_cycles} cycles, and {FEWEST_ROUNDS} are needed: use \
             more --instructions or a shorter --slice",
            program.join(" "),
            rounds.len(),
            sampling.ratio,
        );
        return Err(Failure::new(ExitStatus::ProgramTooShort, why));
    }
    let vendor = machines.pmu.profile().vendor;
    let in_slices = over_time(&slices, &list.plan);
    let event = |(index, event): (usize, &PaperEvent)| {
        let full = |round: &Round| {
            let (from, to) = (round.start_cycles, round.start_cycles + round.cycles);
            ran.series.between(event.of(vendor), from, to)
        };
        let sample = |round: &Round| round.sample(&slices, &list.plan, index);
        let in_slices = in_slices[index].as_ref();
        let predicted = |round: &Round| Some(in_slices?[round.slices.clone()].iter().sum());
        let over_time = || {
            Some(OverTime {
                full: rounds.iter().map(full).collect::<Option<_>>()?,
                sampled: rounds.iter().map(sample).collect::<Option<_>>()?,
                predicted: rounds.iter().map(predicted).collect::<Option<_>>()?,
            })
        };
        over_time().ok_or_else(|| {
            let why = format!("{}: the machine has no counts over time", event.of(vendor));
            Failure::new(ExitStatus::CheckFailed, why)
        })
    };
    let end = ran.series.end();
    Ok(SampledRun {
        instructions: ran.series.between(TABLE_2[0].of(vendor), 0, end).unwrap_or_default(),
        rounds: rounds.iter().map(|round| (round.start_cycles, round.cycles)).collect(),
        events: TABLE_2.iter().enumerate().map(event).collect::<Result<_>>()?,
    })
}

impl SampledRun {
    /// Cycles of all rounds.
    fn cycles(&self) -> u64 {
        self.rounds.iter().map(|(_, cycles)| cycles).sum()
    }

    /// The distance of an event of Table 2.
    pub(super) fn cell(&self, event: usize, how: Estimated) -> Cell {
        let OverTime { full, sampled, predicted } = &self.events[event];
        let (all, cycles) = (full.iter().sum::<u64>(), self.cycles());
        let distance = || match how {
            Estimated::Scaled => distance::of_samples(full, sampled),
            Estimated::Predicted => distance::of_estimates(full, predicted),
        };
        Cell {
            distance: distance::is_significant(all, cycles).then(distance).flatten(),
            is_frequent: all.saturating_mul(FREQUENT) >= cycles,
        }
    }
}
