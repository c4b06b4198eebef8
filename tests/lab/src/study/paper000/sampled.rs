//! Runs with multiplexed events: the sampled counts in each interval, and the full count (paper
//! 000, section 6.2).

use tally_abi::ExitStatus;
use tally_engine::Plan;
use tally_vpmu::Vendor;
use xtask::{
    Failure, Result,
    machine::Pmu,
    report::{Report, Series, Slice, over_time},
};

use super::{
    distance::{self, Sample},
    grid::Cell,
    paper::{PaperEvent, TABLE_2},
    rounds::{Rounds, intervals},
};
use crate::study::timed::{self, Machines, Program, Recorded};

/// Cycles per event up to which it is frequent; the paper's "infrequent" is rarer.
const FREQUENT: u64 = 100;
/// Rows of the series in an interval, whose bounds lie between rows.
const ROWS_OF_AN_INTERVAL: u64 = 40;
/// The shortest row of a series.
const SHORTEST_ROW_CYCLES: u64 = 2_000;
/// The fewest intervals for a meaningful distance.
const FEWEST_INTERVALS: usize = 4;

/// Parameters of sampling.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampling {
    /// Length of a slice in cycles.
    pub(super) slice_cycles: u64,
    /// Slices of a round: groups of events.
    pub(super) ratio: usize,
    /// Rounds of an interval, in which sampled and full counts are compared.
    pub(super) rounds: usize,
    /// The virtual PMU's pipeline.
    pub(super) pipeline: &'static str,
}

impl Sampling {
    /// Core cycles of an interval.
    fn interval_cycles(self) -> u64 {
        self.slice_cycles * (self.ratio * self.rounds) as u64
    }

    /// The truth over time to record with the run.
    fn recorded(self, vendor: Vendor) -> Recorded<'static> {
        let row_cycles = (self.interval_cycles() / ROWS_OF_AN_INTERVAL).max(SHORTEST_ROW_CYCLES);
        Recorded {
            clock: match vendor {
                Vendor::Intel => "CPU_CLK_UNHALTED.THREAD",
                Vendor::Amd => "CYCLES_NOT_IN_HALT",
            },
            vpmu: vec![format!("pipeline={}", self.pipeline), format!("every={row_cycles}c")],
            beside: Vec::new(),
        }
    }
}

/// Method of estimating an event's count in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Estimated {
    /// From the slices in which it was counted, by linear scaling: the paper's method.
    Scaled,
    /// The counts of the other slices are predicted from similar slices (decision 37).
    Predicted,
}

/// The events of a sampled run and their plan.
#[derive(Clone, Debug)]
pub(super) struct EventList {
    /// Table 2's events, then others, which fill the groups.
    events: Vec<String>,
    plan: Plan,
}

/// An event over time: values by interval.
#[derive(Clone, Debug)]
pub(super) struct OverTime {
    /// Full counts.
    pub(super) full: Vec<u64>,
    /// Counts of its slices.
    pub(super) sampled: Vec<Sample>,
    /// Counts including predictions for slices in which the event was not counted (decision 37).
    pub(super) predicted: Vec<f64>,
}

/// A sampled run.
#[derive(Clone, Debug)]
pub(super) struct SampledRun {
    /// Instructions of the whole run.
    pub(super) instructions: u64,
    /// By interval: the session's cycles up to its start, and the interval's cycles.
    pub(super) intervals: Vec<(u64, u64)>,
    /// The events of Table 2.
    pub(super) events: Vec<OverTime>,
    /// Cycles of the overflow handlers per cycle of the session, 0 to 1.
    pub(super) handlers: f64,
}

impl EventList {
    /// Makes a list of Table 2's events, and of as many other events of the processor as are needed
    /// for `ratio` groups.
    ///
    /// # Errors
    /// There are more groups already, or too few events.
    pub(super) fn of(pmu: Pmu, ratio: usize) -> Result<EventList> {
        let pmu = timed::virtual_pmu(pmu)?;
        let vendor = pmu.profile().vendor;
        let own = TABLE_2.iter().map(|event| event.of(vendor));
        let mut events: Vec<String> = own.map(str::to_owned).collect();
        let mut plan = timed::plan_of(&pmu, &events)?;
        for event in pmu.profile().events() {
            if plan.groups.len() >= ratio {
                break;
            }
            if event.is_tallys() || events.iter().any(|known| known == event.name) {
                continue;
            }
            events.push(event.name.to_owned());
            match timed::plan_of(&pmu, &events) {
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
    program: &Program,
    seed: u64,
) -> Result<SampledRun> {
    let Sampling { slice_cycles, rounds, .. } = sampling;
    let vendor = machines.pmu.profile().vendor;
    let job = timed::job(&list.events, slice_cycles, seed);
    let ran = machines.run(&job, &program.command, &sampling.recorded(vendor))?;
    let slices = ran.slices()?;
    let intervals = intervals(&slices, &list.plan, slice_cycles, rounds)
        .ok_or_else(|| Failure::new(ExitStatus::CheckFailed, "slices are in no rounds"))?;
    if intervals.len() < FEWEST_INTERVALS {
        let why = format!(
            "{}: {} intervals of {} cycles, and {FEWEST_INTERVALS} are needed: use more \
             --instructions or a shorter --slice",
            program.name,
            intervals.len(),
            sampling.interval_cycles(),
        );
        return Err(Failure::new(ExitStatus::TooShort, why));
    }
    let (end, report) = (ran.series.end(), Report::of(&ran.boot));
    let events = events(&ran.series, vendor, &list.plan, &slices, &intervals);
    Ok(SampledRun {
        instructions: ran.series.between(TABLE_2[0].of(vendor), 0, end).unwrap_or_default(),
        intervals: intervals.iter().map(|it| (it.start_cycles, it.cycles)).collect(),
        events: events.ok_or_else(|| {
            let why = "the machine's series or slices lack an event of Table 2";
            Failure::new(ExitStatus::CheckFailed, why)
        })?,
        handlers: report.first.and_then(|first| first.handler_cycle_share).unwrap_or_default(),
    })
}

/// The events of Table 2 in these intervals; `None` if one is missing.
fn events(
    series: &Series,
    vendor: Vendor,
    plan: &Plan,
    slices: &[Slice],
    intervals: &[Rounds],
) -> Option<Vec<OverTime>> {
    let in_slices = over_time(slices, plan);
    let of = |(index, event): (usize, &PaperEvent)| {
        let full = |it: &Rounds| {
            series.between(event.of(vendor), it.start_cycles, it.start_cycles + it.cycles)
        };
        let in_slices = in_slices[index].as_ref()?;
        let predicted = |it: &Rounds| in_slices[it.slices.clone()].iter().sum();
        let sampled = |it: &Rounds| it.sample(slices, plan, index);
        Some(OverTime {
            full: intervals.iter().map(full).collect::<Option<_>>()?,
            sampled: intervals.iter().map(sampled).collect::<Option<_>>()?,
            predicted: intervals.iter().map(predicted).collect(),
        })
    };
    TABLE_2.iter().enumerate().map(of).collect()
}

impl SampledRun {
    /// Cycles of all intervals.
    fn cycles(&self) -> u64 {
        self.intervals.iter().map(|(_, cycles)| cycles).sum()
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
