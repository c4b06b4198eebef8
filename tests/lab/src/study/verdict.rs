//! Verdict on a machine's counts of the default job: right, refused, or wrong.

use std::fmt;

use serde::Serialize;
use tally_abi::{ExitStatus, reading::Reason};
use xtask::{
    Result,
    machine::{self, Artefacts, Boot, Outcome, Request},
    output,
    report::{Kind, Report},
};

use super::seeds;
use crate::camera;

/// Smallest share of a run's estimates whose interval must contain the truth. It is low because
/// few estimates are judged, and those of one run are correlated.
const LEAST_WITHIN: f64 = 0.6;

/// The exit statuses of a program to which the kernel refuses a session.
const REFUSALS: [ExitStatus; 2] = [ExitStatus::NoPmu, ExitStatus::EventNotSupported];

/// Verdict on a machine's counts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Exact counts equal the truth, and the intervals of estimates contain it.
    Right {
        /// Number of estimates.
        estimates: usize,
        /// Number of estimates whose interval contains the truth.
        within: usize,
    },
    /// Refusal: nothing was counted.
    Refused {
        /// The reported reason.
        why: String,
    },
    /// Error: counts were wrong, or the run failed.
    Wrong {
        /// Description of the error.
        what: String,
    },
}

impl Verdict {
    /// The verdict on a run of the default job.
    pub fn of(boot: &Boot) -> Verdict {
        match &boot.outcome {
            Outcome::Done(0) => Verdict::of_counts(&Report::of(boot)),
            Outcome::Refused { why, .. } => Verdict::Refused { why: why.clone() },
            // The kernel was not loaded.
            Outcome::MachineFailed { said, .. } if said.starts_with("loader: ") => {
                Verdict::Refused { why: said.clone() }
            }
            // The program cannot open a session, and reports why.
            Outcome::Done(status) if REFUSALS.map(u8::from).contains(status) => {
                let errors = boot.transcript.output.iter().filter(|output| output.fd == 2);
                let errors: Vec<u8> = errors.flat_map(|output| output.bytes.clone()).collect();
                Verdict::Refused { why: String::from_utf8_lossy(&errors).trim().to_owned() }
            }
            other => Verdict::Wrong { what: format!("{other:?}") },
        }
    }

    fn of_counts(report: &Report) -> Verdict {
        let (mut estimates, mut within) = (0, 0);
        for event in report.sessions().flat_map(|session| &session.events) {
            // Such an event is withheld, and the reason is reported.
            if event.reason.as_deref() == Some(Reason::CountsNothing.message()) {
                continue;
            }
            let (Some(estimate), Some(truth)) = (event.estimate, event.truth) else {
                return Verdict::Wrong { what: format!("{} was not counted", event.name) };
            };
            let off = estimate.abs_diff(truth);
            match event.kind {
                Kind::Exact if off > 0 => {
                    let what = format!("{} is called exact and is {off} off", event.name);
                    return Verdict::Wrong { what };
                }
                Kind::Estimated => {
                    estimates += 1;
                    let half_width = event.half_width_95.unwrap_or_default();
                    within += usize::from(off as f64 <= half_width);
                }
                _ => {}
            }
        }
        if (within as f64) < LEAST_WITHIN * estimates as f64 {
            let what = format!("{within} of {estimates} intervals contain the truth");
            return Verdict::Wrong { what };
        }
        Verdict::Right { estimates, within }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Right { estimates, within } => {
                write!(f, "right, {within} of {estimates} within")
            }
            Verdict::Refused { why } => {
                let (_, reason) = why.split_once("cannot count: ").unwrap_or(("", why));
                write!(f, "refused: {reason}")
            }
            Verdict::Wrong { what } => write!(f, "WRONG: {what}"),
        }
    }
}

/// A machine of a study, and its verdict.
#[derive(Clone, Debug, Serialize)]
struct Row {
    /// The vendor.
    machine: &'static str,
    /// Property of the machine that others do not have.
    with: String,
    /// Verdict on the machine.
    #[serde(flatten)]
    verdict: Verdict,
}

/// A machine to boot with the default job: its vendor, and its special property.
pub(super) struct Candidate {
    pub(super) machine: &'static str,
    pub(super) with: String,
    pub(super) request: Request,
    /// Whether the results come as codes on the screen, instead of by a serial port.
    pub(super) by_codes: bool,
}

impl Candidate {
    /// Boots the machine. Without a serial port, the results are read from its screen.
    fn boot(&self, artefacts: &Artefacts, number: u64) -> Result<Boot> {
        if !self.by_codes {
            return machine::boot(artefacts, &self.request, &mut |_| {});
        }
        let name = format!("study-{number}");
        let (boot, shown) = camera::photographed(artefacts, &self.request, &name)?;
        let Some(shown) = shown else { return Ok(boot) };
        let imported = machine::of_messages(&shown.messages, &mut |_| {})?;
        Ok(Boot { truth: boot.truth, ..imported })
    }
}

/// Boots the machines of `artefacts` and prints a verdict for each, as JSON if requested. Returns
/// the process's status.
///
/// # Errors
/// Something cannot be built, or QEMU cannot be started.
pub(super) fn judge(artefacts: &Artefacts, all: &[Candidate], json: bool) -> Result<u8> {
    let rows = seeds::in_parallel("machines", 1..=all.len() as u64, |number| {
        let candidate = &all[number as usize - 1];
        let Candidate { machine, with, .. } = candidate;
        let boot = candidate.boot(artefacts, number)?;
        Ok(Row { machine, with: with.clone(), verdict: Verdict::of(&boot) })
    })?;
    let verdicts = Verdicts::of(rows);
    output::print(json, &verdicts, &verdicts.to_string())?;
    Ok(if verdicts.wrong == 0 { 0 } else { ExitStatus::CheckFailed.into() })
}

/// The result of a study.
#[derive(Clone, Debug, Serialize)]
struct Verdicts {
    right: usize,
    refused: usize,
    wrong: usize,
    rows: Vec<Row>,
}

impl Verdicts {
    /// Counts the verdicts of `rows`.
    fn of(rows: Vec<Row>) -> Verdicts {
        let count = |is: fn(&Verdict) -> bool| rows.iter().filter(|row| is(&row.verdict)).count();
        Verdicts {
            right: count(|verdict| matches!(verdict, Verdict::Right { .. })),
            refused: count(|verdict| matches!(verdict, Verdict::Refused { .. })),
            wrong: count(|verdict| matches!(verdict, Verdict::Wrong { .. })),
            rows,
        }
    }
}

/// A line for each machine, of 80 columns, and their sum.
impl fmt::Display for Verdicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const COLUMNS: usize = 80;
        for Row { machine, with, verdict } in &self.rows {
            let row = format!("{machine:<6} {with:<34} {verdict}");
            writeln!(f, "{}", row.chars().take(COLUMNS).collect::<String>())?;
        }
        let Verdicts { right, refused, wrong, rows } = self;
        let all = rows.len();
        writeln!(f, "{all} machines: {right} right, {refused} refused in words, {wrong} wrong")
    }
}
