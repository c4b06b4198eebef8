//! The page of a run (`cargo xtask run --report FILE`).

use std::{path::Path, process::Command};

use plotters::style::RGBColor;
use serde::Serialize;

use super::{chart::Chart, cycles::Cycles, rates, samples::Samples, template::page};
use crate::{
    Result, machine,
    picture::{self, Band},
    project,
    report::{
        Estimate, EventReport, Kind, PhaseShare, Report, SessionReport,
        cells::{Cells, TruthCells, engine_rows, estimate_and_bar},
        glyph,
    },
};

/// Possible ends of the axes of the events' intervals, as shares of the estimate.
const AXES: [f64; 7] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];

/// Makes the page of a report and of its run's samples.
///
/// # Errors
/// A picture cannot be drawn.
pub fn render(report: &Report, samples: &Samples) -> Result<String> {
    let several = report.sessions().count() > 1;
    let sessions = report.sessions().enumerate();
    let view = View {
        run: report,
        samples,
        is_complete: report.first.is_some() && report.sessions().all(is_complete),
        command: report
            .made
            .as_ref()
            .map(|made| machine::in_shell(Command::new("cargo").arg("xtask").args(&made.command))),
        sessions: sessions
            .map(|(index, session)| SessionView::of(session, index, several))
            .collect::<Result<_>>()?,
    };
    page("run.html", &view, report)
}

/// Writes the page of a report into a file.
///
/// # Errors
/// As [`render`], or the file cannot be written.
pub fn write(report: &Report, samples: &Samples, path: &Path) -> Result<()> {
    project::write(path, render(report, samples)?.as_bytes())
}

#[derive(Serialize)]
struct View<'a> {
    run: &'a Report,
    samples: &'a Samples,
    /// Whether the list of unmeasured things is empty.
    is_complete: bool,
    /// The command line, for a shell.
    command: Option<String>,
    sessions: Vec<SessionView<'a>>,
}

#[derive(Serialize)]
struct SessionView<'a> {
    /// Index of the session on the page.
    index: usize,
    /// Suffix of headings: the program and number, if there are several sessions.
    of: String,
    session: &'a SessionReport,
    /// Cycles by cause, for each ring that is broken down.
    breakdowns: Vec<Cycles<'a>>,
    over_time: Vec<Chart>,
    /// The names of the parts in `over_time` and their colours, in CSS.
    legend: Vec<(&'a str, String)>,
    /// The phases over time.
    phases: Option<Chart>,
    /// The rows of the phases.
    phase_rows: Vec<PhaseRow>,
    /// The rates of each event over time.
    rates: Vec<Chart>,
    /// The groups' shares of the cycles, 0 to 1, in their order; `None` if they are unknown.
    group_shares: Vec<Option<f64>>,
    rows: Vec<Row<'a>>,
    /// Whether rows have refined estimates, and numbers without interrupts.
    has_refined: bool,
    has_unobserved: bool,
    /// Number of truths that are within their intervals, and of all truths.
    within: [usize; 2],
    /// Events to which interrupts are likely to have added a noticeable part.
    added: Vec<Added<'a>>,
    /// Half length of the rows' axis: from minus this share of the estimate to plus it.
    axis: f64,
    engine: Vec<(&'static str, String)>,
}

impl<'a> SessionView<'a> {
    fn of(session: &'a SessionReport, index: usize, several: bool) -> Result<SessionView<'a>> {
        let number = session.session.unwrap_or_default();
        let axis = axis(&session.events);
        let judged = || session.events.iter().filter_map(EventReport::is_within);
        Ok(SessionView {
            index,
            of: if several {
                format!(" of {}, session {number}", session.program)
            } else {
                String::new()
            },
            session,
            breakdowns: Cycles::of(session),
            over_time: over_time(session, index)?,
            legend: legend(session),
            phases: phases_over_time(session, index)?,
            phase_rows: phase_rows(session),
            rates: rates::charts(&session.intervals, &bands(session), index)?,
            group_shares: group_shares(session),
            rows: session.events.iter().map(|event| Row::of(event, axis)).collect(),
            has_refined: session.events.iter().any(|event| event.refined.is_some()),
            has_unobserved: session.events.iter().any(|event| event.unobserved.is_some()),
            within: [judged().filter(|within| *within).count(), judged().count()],
            added: session.events.iter().filter_map(Added::of).collect(),
            axis,
            engine: engine_rows(session),
        })
    }
}

/// Likely maximum of the events that interrupts added, as a part of the estimate.
#[derive(Serialize)]
struct Added<'a> {
    event: &'a str,
    share: f64,
}

impl<'a> Added<'a> {
    fn of(event: &'a EventReport) -> Option<Added<'a>> {
        event.added_share().map(|share| Added { event: &event.name, share })
    }
}

/// An event's row.
#[derive(Serialize)]
struct Row<'a> {
    event: &'a EventReport,
    estimate: String,
    bar: String,
    counted: String,
    /// Half width as a share of the estimate; `None` for an estimate of 0.
    relative_half_width: Option<f64>,
    truth: Option<String>,
    error: Option<String>,
    relative_error: Option<f64>,
    is_within: Option<bool>,
    /// The refined estimate, from the records of all slices.
    refined: Option<Later>,
    /// The number without interrupts.
    unobserved: Option<Later>,
    /// Positions of the interval and the truth relative to the estimate, if that is above 0.
    plot: Option<Plot>,
}

/// An estimate that was made after the run.
#[derive(Serialize)]
struct Later {
    estimate: f64,
    text: String,
    bar: String,
}

impl Later {
    fn of(value: Estimate) -> Later {
        let (text, bar) = estimate_and_bar(value);
        Later { estimate: value.estimate, text, bar }
    }
}

/// Places on an axis, 0 to 100, with the estimate at 50.
#[derive(Serialize)]
struct Plot {
    low: f64,
    high: f64,
    truth: Option<f64>,
    /// Whether the interval or the truth exceeds the axis.
    is_cut: bool,
}

impl<'a> Row<'a> {
    fn of(event: &'a EventReport, axis: f64) -> Row<'a> {
        let Cells { estimate, bar, counted, truth } = Cells::of(event);
        let (truth, error) = truth.map(|TruthCells { truth, error, .. }| (truth, error)).unzip();
        Row {
            event,
            estimate,
            bar,
            counted,
            relative_half_width: event.relative_half_width(),
            truth,
            error,
            relative_error: event.relative_error(),
            is_within: event.is_within(),
            refined: event.refined.map(Later::of),
            unobserved: event.unobserved.map(Later::of),
            plot: Plot::of(event, axis),
        }
    }
}

impl Plot {
    fn of(event: &EventReport, axis: f64) -> Option<Plot> {
        let estimate = event.estimate.filter(|estimate| *estimate > 0)? as f64;
        let place = |count: f64| 50.0 + 50.0 * (count / estimate - 1.0) / axis;
        let [low, high] = [place(event.low_95?), place(event.high_95?)];
        let truth = event.truth.map(|truth| place(truth as f64));
        let is_cut = [low, high].into_iter().chain(truth).any(|at| !(0.0..=100.0).contains(&at));
        let cut = |at: f64| at.clamp(0.0, 100.0);
        Some(Plot { low: cut(low), high: cut(high), truth: truth.map(cut), is_cut })
    }
}

/// Smallest of [`AXES`] that contains the whole interval of every second estimate.
fn axis(events: &[EventReport]) -> f64 {
    let estimated = events.iter().filter(|event| event.kind == Kind::Estimated);
    let mut widths: Vec<f64> = estimated.filter_map(EventReport::relative_half_width).collect();
    widths.sort_by(f64::total_cmp);
    let most = widths.get(widths.len() / 2).copied().unwrap_or_default();
    AXES.into_iter().find(|axis| *axis >= most).unwrap_or(AXES[AXES.len() - 1])
}

/// Draws the stack of each interval, if the session has intervals, and that of its ring 0.
fn over_time(session: &SessionReport, index: usize) -> Result<Vec<Chart>> {
    let program = &session.program;
    let user = (picture::USER, "", format!("Where the cycles of {program} go over time"));
    let kernel = format!("Where the cycles of {program} in ring 0 go over time");
    let kernel = (picture::RING_0, "-ring-0", kernel);
    let charts = [user, kernel].into_iter().map(|(parts, suffix, title)| {
        let names = picture::part_names(&session.intervals, parts);
        if names.is_empty() {
            return Ok(None);
        }
        let line = picture::stack_line(&session.intervals, parts)?;
        let description = format!(
            "A stack for each of {} intervals of the run, in cycles for each instruction of user \
             mode. Its parts from below: {}.",
            session.intervals.len(),
            names.join(", ")
        );
        Ok(Chart::of(&line, format!("over-time-{index}{suffix}"), title, description))
    });
    charts.filter_map(Result::transpose).collect()
}

/// The names and colours of the parts over time, which are the same for ring 0.
fn legend(session: &SessionReport) -> Vec<(&str, String)> {
    let of = |parts| picture::part_names(&session.intervals, parts);
    let names = Some(of(picture::USER)).filter(|names| !names.is_empty());
    let names = names.unwrap_or_else(|| of(picture::RING_0)).into_iter().enumerate();
    names.map(|(index, name)| (name, css(index))).collect()
}

/// The colour of this index in a stack, in CSS.
fn css(index: usize) -> String {
    let RGBColor(red, green, blue) = picture::color(index);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The time spans of the phases.
fn bands(session: &SessionReport) -> Vec<Band> {
    session.phases.as_ref().map(|of| picture::bands(&of.intervals)).unwrap_or_default()
}

/// Draws the phases over time, if they were tracked.
fn phases_over_time(session: &SessionReport, index: usize) -> Result<Option<Chart>> {
    let Some(phases) = &session.phases else { return Ok(None) };
    let line = picture::phase_line(&phases.intervals)?;
    let description = format!(
        "Cycles an instruction in each of {} intervals, over a shade for its phase. {} times the next \
         interval has another phase.",
        phases.intervals.len(),
        phases.transitions
    );
    let title = format!("Phases of {}", session.program);
    Ok(Chart::of(&line, format!("phases-over-time-{index}"), title, description))
}

/// A phase's row.
#[derive(Serialize)]
struct PhaseRow {
    name: char,
    /// Color in CSS.
    color: String,
    #[serde(flatten)]
    phase: PhaseShare,
    /// Name of its largest cost.
    bottleneck_word: &'static str,
}

fn phase_rows(session: &SessionReport) -> Vec<PhaseRow> {
    let phases = session.phases.iter().flat_map(|of| &of.phases);
    let row = |phase: &PhaseShare| PhaseRow {
        name: glyph(phase.phase),
        color: css(phase.phase.into()),
        phase: phase.clone(),
        bottleneck_word: phase.bottleneck.word(),
    };
    phases.map(row).collect()
}

/// Each group's share of the cycles of all groups.
fn group_shares(session: &SessionReport) -> Vec<Option<f64>> {
    let cycles = session.groups.iter().map(|group| group.cycles);
    let all: Option<u64> = cycles.clone().sum();
    cycles.map(|own| Some(own? as f64 / all.filter(|all| *all > 0)? as f64)).collect()
}

/// Returns whether the list of unmeasured things is empty.
fn is_complete(session: &SessionReport) -> bool {
    session.breakdown.is_none()
        && session.cycles_per_switch.is_some()
        && session.instructions_per_switch_reason.is_none()
        && session.events.iter().all(|event| event.kind != Kind::NotMeasured)
}
