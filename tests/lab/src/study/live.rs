//! `cargo xtask study live`: readings at random moments while a program runs, and the differences
//! between them, compared with the truth at the same moments.
//!
//! The test guest `live` prints its readings. A region of the truth is open between any two
//! successive moments at which it reads.

use std::{collections::BTreeMap, ops::RangeInclusive};

use clap::{Args, ValueEnum};
use serde::Serialize;
use tally_abi::{
    ExitStatus, SessionConfig,
    boot::DEFAULT_PARANOID,
    truth::{RegionKind, Truth},
};
use xtask::{
    Failure, Result,
    explain::{self, Asked},
    job,
    machine::{self, Artefacts, Boot, Pmu, Request},
    output,
    project::Project,
};

use super::seeds::{self, CLAIMED};

/// Number of readings in a run.
const READINGS: u32 = 40;
/// Options of `cargo xtask study live`.
#[derive(Args, Clone, Debug)]
pub struct LiveArgs {
    /// Run the seeds 1 to N, or A to B
    #[arg(long, value_name = "N|A..B", default_value = "20", value_parser = seeds::parse)]
    seeds: RangeInclusive<u64>,
    /// PMU of the machine
    #[arg(long, value_enum, default_value_t)]
    pmu: Pmu,
    /// Source of the program's readings
    #[arg(long, value_enum, default_value_t = Source::Bank)]
    source: Source,
    /// Events to count, separated by commas; without it, the default job's
    #[arg(long, value_name = "LIST")]
    events: Option<String>,
    /// Length of a time slice, in cycles
    #[arg(long, value_name = "CYCLES", default_value_t = 20_000, value_parser = job::slice)]
    slice: u64,
    /// Print one JSON object, alone on standard output
    #[arg(long)]
    json: bool,
}

/// Source of the readings.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Source {
    /// The bank.
    Bank,
    /// SESSION_READ.
    Calls,
    /// SESSION_READ, while a bank is mapped and read.
    Both,
}

/// A value of an event, and its truth.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    value: u64,
    half_width_95: f64,
    truth: u64,
}

/// Number of values with an interval, and of those whose interval contains the truth.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Held {
    /// Number of values with an interval.
    pub judged: u64,
    /// Number of values whose interval contains the truth.
    pub within: u64,
}

impl Held {
    fn add(&mut self, is_within: bool) {
        self.judged += 1;
        self.within += u64::from(is_within);
    }

    /// The share of values whose interval contains the truth; `None` without values.
    pub fn share(self) -> Option<f64> {
        (self.judged > 0).then(|| self.within as f64 / self.judged as f64)
    }
}

/// The results of an event.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LiveEvent {
    /// Results of readings.
    pub readings: Held,
    /// Results of differences between a reading and the one before it.
    pub differences: Held,
    /// Values that had no interval yet.
    pub unknown: u64,
    /// Half widths divided by values.
    #[serde(skip)]
    widths: Vec<f64>,
    /// Median of `widths`.
    pub median_relative_half_width: Option<f64>,
}

/// The results of all estimated events, over all seeds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LiveStudy {
    /// The number of runs.
    pub seeds: u64,
    /// Readings of all events.
    pub readings: Held,
    /// Differences of all events.
    pub differences: Held,
    /// The lowest share of readings of a single seed.
    pub worst_seed: Option<f64>,
    /// Results by event name.
    pub events: BTreeMap<String, LiveEvent>,
}

impl LiveStudy {
    /// Whether the claim holds for the readings.
    fn holds(&self) -> bool {
        self.readings.share().is_some_and(|share| CLAIMED.contains(&share))
    }
}

/// The machine for a seed: `source` is a word of [`Source`].
pub fn request(seed: u64, pmu: Pmu, source: &str, slice: u64, events: Option<&str>) -> Request {
    let events = events.unwrap_or_default();
    let line = format!("seed={seed} wire -- live {seed} {READINGS} {source} {slice} {events}");
    Request { pmu, ..Request::new(line) }
}

pub(super) fn main(project: &Project, args: &LiveArgs) -> Result<u8> {
    if let Some(list) = &args.events {
        let (config, paranoid) = (SessionConfig::default(), Some(DEFAULT_PARANOID));
        let asked = Asked { events: list.clone(), config, paranoid };
        explain::plan_of(&machine::virtual_pmu_of(args.pmu, &[])?, &asked)?;
    }
    let artefacts = Artefacts::make(project)?;
    let source = args.source.to_possible_value().map(|value| value.get_name().to_owned());
    let source = source.unwrap_or_default();
    let runs = seeds::each(args.seeds.clone(), |seed| {
        let request = request(seed, args.pmu, &source, args.slice, args.events.as_deref());
        readings(&seeds::boot(&artefacts, &request, seed)?)
    })?;
    let study = judge(&runs);
    output::print(args.json, &study, &render(&study))?;
    Ok(if study.holds() { 0 } else { ExitStatus::CheckFailed.into() })
}

/// The readings of a run by event, in the order of time; `None` for a reading without an interval.
pub type Readings = BTreeMap<String, Vec<Option<Reading>>>;

/// The readings of estimated events that the guest printed, with their truth.
///
/// # Errors
/// The output or the truth lacks a reading.
pub fn readings(boot: &Boot) -> Result<Readings> {
    let lacks = || Failure::new(ExitStatus::CheckFailed, "a reading or its truth is missing");
    let (_, session) = boot.transcript.sessions.first_key_value().ok_or_else(lacks)?;
    let truth = boot.truth.as_ref().ok_or_else(lacks)?;
    let mut sums = Sums::default();
    let mut all = Readings::new();
    for line in boot.transcript.text().lines() {
        let [moment, event, value, half_width] =
            <[&str; 4]>::try_from(line.split(' ').collect::<Vec<_>>()).map_err(|_| lacks())?;
        let event = event.parse::<usize>().ok().and_then(|event| session.readings.get(event));
        let event = event.ok_or_else(lacks)?;
        let name = event.native.as_ref().unwrap_or(&event.name);
        sums.advance(truth, moment.parse().map_err(|_| lacks())?).ok_or_else(lacks)?;
        let Some(truth) = sums.events.get(name) else { continue };
        let value = value.parse().map_err(|_| lacks())?;
        let half_width_95 = half_width.parse().ok();
        let reading =
            half_width_95.map(|half_width_95| Reading { value, half_width_95, truth: *truth });
        all.entry(event.name.clone()).or_default().push(reading);
    }
    // An exact count has half widths of 0.
    all.retain(|_, readings| readings.iter().flatten().any(|reading| reading.half_width_95 > 0.0));
    Ok(all)
}

/// The truth from the session's start to a moment.
#[derive(Default)]
struct Sums<'a> {
    moment: u32,
    events: BTreeMap<&'a String, u64>,
}

impl<'a> Sums<'a> {
    /// Adds the regions up to `moment`; `None` if one is missing, or if `moment` has passed.
    fn advance(&mut self, truth: &'a Truth, moment: u32) -> Option<()> {
        while self.moment < moment {
            self.moment += 1;
            let region = truth.region(RegionKind::Marked, self.moment)?;
            for (name, count) in &region.events {
                *self.events.entry(name).or_default() += count.user;
            }
        }
        (self.moment == moment).then_some(())
    }
}

/// Compares readings and their differences with the truth.
pub fn judge(runs: &[Readings]) -> LiveStudy {
    let mut study = LiveStudy { seeds: runs.len() as u64, ..LiveStudy::default() };
    for run in runs {
        let mut of_run = Held::default();
        for (name, readings) in run {
            let event = study.events.entry(name.clone()).or_default();
            event.unknown += readings.iter().filter(|reading| reading.is_none()).count() as u64;
            for reading in readings.iter().flatten() {
                let is_within =
                    reading.value.abs_diff(reading.truth) as f64 <= reading.half_width_95;
                of_run.add(is_within);
                study.readings.add(is_within);
                event.readings.add(is_within);
                event.widths.push(reading.half_width_95 / reading.value.max(1) as f64);
            }
            for pair in readings.windows(2) {
                let [Some(first), Some(second)] = pair else { continue };
                let is_within = difference_holds(first, second);
                study.differences.add(is_within);
                event.differences.add(is_within);
            }
        }
        let share = of_run.share().unwrap_or(1.0);
        study.worst_seed = Some(study.worst_seed.map_or(share, |worst| worst.min(share)));
    }
    for event in study.events.values_mut() {
        event.widths.sort_by(f64::total_cmp);
        event.median_relative_half_width = event.widths.get(event.widths.len() / 2).copied();
    }
    study
}

/// Returns whether the error of a difference of two readings is at most the sum of their half
/// widths.
fn difference_holds(first: &Reading, second: &Reading) -> bool {
    let value = second.value as f64 - first.value as f64;
    let truth = second.truth as f64 - first.truth as f64;
    (value - truth).abs() <= first.half_width_95 + second.half_width_95
}

fn render(study: &LiveStudy) -> String {
    let share =
        |share: Option<f64>| share.map_or("-".into(), |share| format!("{:.1} %", 100.0 * share));
    let mut text = format!(
        "{} seeds, {READINGS} readings each\n{:<42}{:>8}{:>9}{:>12}{:>8}\n",
        study.seeds, "event", "± 95 %", "readings", "differences", "unknown"
    );
    for (name, event) in &study.events {
        text += &format!(
            "{name:<42}{:>8}{:>9}{:>12}{:>8}\n",
            share(event.median_relative_half_width),
            share(event.readings.share()),
            share(event.differences.share()),
            event.unknown,
        );
    }
    text += &format!(
        "{} of {} readings and {} of {} differences contain the truth; worst seed {}\n{}: claimed \
         are {:.0} to {:.0} % of the readings\n",
        share(study.readings.share()),
        study.readings.judged,
        share(study.differences.share()),
        study.differences.judged,
        share(study.worst_seed),
        if study.holds() { "pass" } else { "FAIL" },
        100.0 * CLAIMED.start(),
        100.0 * CLAIMED.end(),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_and_differences_are_judged_where_they_have_an_interval() {
        let reading = |value, truth| Some(Reading { value, half_width_95: 10.0, truth });
        // The second reading misses the truth by more than its half width, but by less than both.
        let readings = vec![None, reading(100, 95), reading(215, 200), reading(300, 290)];
        let study = judge(&[Readings::from([("E".to_owned(), readings)])]);
        let event = &study.events["E"];
        assert_eq!((event.readings.judged, event.readings.within, event.unknown), (3, 2, 1));
        assert_eq!((event.differences.judged, event.differences.within), (2, 2));
        assert_eq!(study.worst_seed, Some(2.0 / 3.0));
        assert_eq!(study.events["E"].median_relative_half_width, Some(10.0 / 215.0));
    }
}
