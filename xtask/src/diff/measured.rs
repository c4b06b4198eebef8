//! A run as read from its file.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use tally_abi::{ExitStatus, text::Grouped};

use crate::{
    Failure, Result, page, project,
    repeat::Merged,
    report::{Breakdown, CyclePart, EventReport, Made, Report},
    visible::visible,
};

/// A run, or several that were merged.
#[derive(Debug, Serialize)]
pub struct Run {
    /// The file's name.
    pub file: String,
    /// The PMU.
    pub pmu: Option<String>,
    /// The seed, or the first one.
    pub seed: Option<u64>,
    /// Number of runs.
    pub runs: u64,
    /// Description of how the run was made.
    pub made: Option<Made>,
    /// Sessions of the run.
    #[serde(skip)]
    pub(super) sessions: Vec<MeasuredSession>,
}

/// Values measured in a session.
#[derive(Debug)]
pub(super) struct MeasuredSession {
    pub(super) program: String,
    /// Cycles by cause; empty without a breakdown.
    pub(super) cycles: Vec<(String, Option<Measured>)>,
    pub(super) events: Vec<(String, Option<Measured>)>,
}

/// A number with its error, in events or cycles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The number.
    pub estimate: f64,
    /// Half the width of the 95 % interval; 0 if the number is exact.
    pub half_width_95: f64,
}

impl Measured {
    fn of(estimate: Option<f64>, half_width_95: Option<f64>) -> Option<Measured> {
        estimate
            .zip(half_width_95)
            .map(|(estimate, half_width_95)| Measured { estimate, half_width_95 })
    }

    /// The number, without its error.
    pub fn text(&self) -> String {
        Grouped(self.estimate.round() as u64).to_string()
    }
}

impl Run {
    /// Reads a file of JSON, or a page that contains the object.
    ///
    /// # Errors
    /// The file cannot be read, or has no run's object.
    pub fn read(path: &Path) -> Result<Run> {
        Run::of_bytes(&project::read(path)?, path)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// The bytes have no run's object.
    pub(crate) fn of_bytes(bytes: &[u8], path: &Path) -> Result<Run> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let failed = |why: &dyn std::fmt::Display| {
            let why = format!(
                "{}: not the results of a run: {why}; use what `run --json` printed, or a page of \
                 `run --report`",
                path.display()
            );
            Failure::new(ExitStatus::BadTrace, why)
        };
        let json = if text.trim_start().starts_with('<') {
            page::object(&text).ok_or_else(|| failed(&"the page has no JSON object"))?
        } else {
            &text
        };
        let value: Value = serde_json::from_str(json).map_err(|error| failed(&error))?;
        let file = path.display().to_string();
        let run = if value.get("runs").is_some() {
            serde_json::from_value(value).map(|merged| Run::of_merged(merged, file))
        } else {
            serde_json::from_value(value).map(|report| Run::of(report, file))
        };
        run.map_err(|error| failed(&error))
    }

    pub(super) fn of(report: Report, file: String) -> Run {
        let event = |event: &EventReport| {
            let estimate = event.estimate.map(|estimate| estimate as f64);
            (event.name.clone(), Measured::of(estimate, event.half_width_95))
        };
        let sessions = report.sessions().map(|session| MeasuredSession {
            program: session.program.clone(),
            cycles: session.breakdown.as_ref().map(cycles).unwrap_or_default(),
            events: session.events.iter().map(event).collect(),
        });
        let sessions = sessions.collect();
        let Report { pmu, seed, made, .. } = report;
        Run { file, pmu, seed, runs: 1, made, sessions }
    }

    fn of_merged(merged: Merged, file: String) -> Run {
        let Merged { runs, first_seed: seed, pmu, sessions, .. } = merged;
        let sessions = sessions.into_iter().map(|session| {
            let events = session.events.into_iter().map(|event| {
                let value = Measured::of(event.estimate, event.half_width_95);
                (event.name, value)
            });
            MeasuredSession {
                program: session.program,
                cycles: Vec::new(),
                events: events.collect(),
            }
        });
        Run { file, pmu, seed, runs, made: None, sessions: sessions.collect() }
    }

    /// A title of the run: its programs and its machine.
    pub fn title(&self) -> String {
        let programs: Vec<&str> = self.sessions.iter().map(|of| of.program.as_str()).collect();
        let pmu = self.pmu.as_deref().unwrap_or("no PMU");
        let seed = self.seed.unwrap_or_default();
        let seeds = match self.runs {
            1 => format!("seed {seed}"),
            runs => format!("{runs} runs from seed {seed} on"),
        };
        visible(&format!("{}, {pmu}, {seeds}", programs.join(", "))).into_owned()
    }
}

fn cycles(breakdown: &Breakdown) -> Vec<(String, Option<Measured>)> {
    let part = |part: &CyclePart| {
        (part.name.to_string(), Measured::of(Some(part.cycles), Some(part.half_width_95)))
    };
    breakdown.parts.iter().map(part).collect()
}
