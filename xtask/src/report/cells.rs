//! The values of a report as text, for tables on a terminal and on a page.

use tally_abi::text::{Grouped, percent};

use super::{EventReport, Kind, SessionReport, estimate::Estimate};

/// An event's values as text.
#[derive(Debug)]
pub struct Cells {
    /// The estimate; empty if there is none.
    pub estimate: String,
    /// Half the width of the 95 % interval: relative, in events, or *exact*.
    pub bar: String,
    /// The share of the time in which the event was counted.
    pub counted: String,
    /// The truth, if it is known.
    pub truth: Option<TruthCells>,
}

/// An event's truth as text.
#[derive(Debug)]
pub struct TruthCells {
    /// The true count.
    pub truth: String,
    /// The estimate's relative error.
    pub error: String,
    /// `!` if the interval does not contain the truth; else empty.
    pub mark: &'static str,
}

impl Cells {
    /// The cells of an event.
    pub fn of(event: &EventReport) -> Cells {
        let bar = match event.kind {
            Kind::Exact => "exact".into(),
            _ => match (event.relative_half_width(), event.half_width_95) {
                (Some(relative), _) => percent(relative, false),
                // An estimate of 0 has no relative half width, so it is in events.
                (None, Some(events)) if events < 100.0 => format!("±{events:.1}"),
                (None, Some(events)) => format!("±{}", Grouped(events.round() as u64)),
                (None, None) => "unknown".into(),
            },
        };
        let error = || event.relative_error().map_or_else(|| "-".into(), |it| percent(it, true));
        Cells {
            estimate: event.estimate.map_or_else(String::new, |it| Grouped(it).to_string()),
            bar,
            counted: event.coverage.map_or_else(|| "unknown".into(), |it| percent(it, false)),
            truth: event.truth.map(|truth| TruthCells {
                truth: Grouped(truth).to_string(),
                error: error(),
                mark: if event.is_within() == Some(false) { "!" } else { "" },
            }),
        }
    }
}

/// An estimate made after the run as text, and half the width of its interval.
pub fn estimate_and_bar(value: Estimate) -> (String, String) {
    let bar = match (value.half_width_95, value.estimate) {
        (0.0, _) => "exact".to_owned(),
        (width, 0.0) => format!("±{width:.1}"),
        (width, estimate) => percent(width / estimate, false),
    };
    (Grouped(value.estimate.round() as u64).to_string(), bar)
}

/// The engine's work and costs in a session: names and values.
pub fn engine_rows(session: &SessionReport) -> Vec<(&'static str, String)> {
    let count = |value: Option<u64>| {
        value.map_or_else(|| "not measured".into(), |value| Grouped(value).to_string())
    };
    let number = |value: Option<f64>| {
        value.map_or_else(|| "not measured".into(), |value| format!("{value:.1}"))
    };
    let share = |value: Option<f64>| {
        value.map_or_else(|| "not measured".into(), |value| percent(value, false))
    };
    let lost = session.lost_pmis.filter(|lost| *lost > 0);
    let mut rows = vec![
        ("slices", count(session.slices)),
        ("cycles per slice", count(session.cycles_per_slice.map(|cycles| cycles as u64))),
        ("lengthened for the budget", count(session.lengthened)),
        ("rounds", count(session.rounds)),
        ("PMIs", count(session.pmis)),
        ("MSR accesses per switch", number(session.msr_accesses_per_switch)),
        ("instructions per switch", number(session.instructions_per_switch)),
        ("cycles per switch", count(session.cycles_per_switch)),
        ("engine's share of the time", share(session.engine_share)),
        ("handler's share of cycles", share(session.handler_cycle_share)),
    ];
    let mhz = session.mean_hz.map(|hz| format!("{} MHz", Grouped(hz / 1_000_000)));
    // The virtual PMU's handler shows that a model's clock counted.
    let is_modelled = session.handler_cycle_share.is_some();
    let frequency = if is_modelled { "mean frequency (modelled)" } else { "mean frequency" };
    rows.extend(mhz.map(|mhz| (frequency, mhz)));
    rows.extend(lost.map(|lost| ("PMIs that did not come", count(Some(lost)))));
    rows
}
