//! The page that compares two runs (`cargo xtask diff --report FILE`).

use serde::Serialize;

use super::{
    cells::{bar, range, ratio_text},
    compared::{Compared, ComparedSession, Diff, Verdict},
    measured::{Measured, Run},
};
use crate::{Result, page::page};

/// Possible ends of the axes of ratios, as differences from 1.
const AXES: [f64; 6] = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0];

/// The page of a comparison.
///
/// # Errors
/// The page cannot be made.
pub(super) fn render(diff: &Diff) -> Result<String> {
    let axis = axis(diff);
    let several = diff.sessions.len() > 1;
    let session = |(index, session): (usize, &ComparedSession)| SessionView {
        index,
        of: if several { format!(" of {}", session.programs.join(" and ")) } else { String::new() },
        cycles: session.cycles.iter().map(|of| Row::of(of, axis)).collect(),
        events: session.events.iter().map(|of| Row::of(of, axis)).collect(),
    };
    let view = View {
        runs: [&diff.a, &diff.b].map(|run| RunView { title: run.title(), run }),
        sessions: diff.sessions.iter().enumerate().map(session).collect(),
        differ: diff.differ(),
        compared: diff.compared(),
        estimated: diff.estimated(),
        by_chance: (diff.estimated() as f64 / 20.0).ceil(),
        axis,
    };
    page("diff.html", &view, diff)
}

#[derive(Serialize)]
struct View<'a> {
    runs: [RunView<'a>; 2],
    sessions: Vec<SessionView>,
    /// Numbers of values: those that differ, all compared ones, and the estimated ones among these.
    differ: usize,
    compared: usize,
    estimated: usize,
    /// Expected number of estimated values that would differ by chance.
    by_chance: f64,
    /// Half length of the axis of ratios: from 1 minus this to 1 plus this.
    axis: f64,
}

#[derive(Serialize)]
struct RunView<'a> {
    title: String,
    run: &'a Run,
}

#[derive(Serialize)]
struct SessionView {
    /// Distinguishes the session on the page.
    index: usize,
    /// Suffix of headings, if there are several sessions.
    of: String,
    cycles: Vec<Row>,
    events: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    /// The values of both runs.
    values: [Option<Cell>; 2],
    /// The ratio and its interval.
    ratio: Option<f64>,
    ratio_text: Option<String>,
    range: String,
    plot: Option<Plot>,
    is_exact: bool,
    differs: Option<bool>,
}

#[derive(Serialize)]
struct Cell {
    estimate: f64,
    text: String,
    bar: String,
}

/// Places on an axis, 0 to 100, with a ratio of 1 at 50.
#[derive(Serialize)]
struct Plot {
    low: f64,
    high: f64,
    ratio: f64,
    is_cut: bool,
}

impl Row {
    fn of(of: &Compared, axis: f64) -> Row {
        let cell = |value: &Measured| Cell {
            estimate: value.estimate,
            text: value.text(),
            bar: bar(value),
        };
        Row {
            name: of.name.clone(),
            values: [&of.a, &of.b].map(|value| value.as_ref().map(cell)),
            ratio: of.ratio,
            ratio_text: of.ratio.map(ratio_text),
            range: range(of),
            plot: Plot::of(of, axis),
            is_exact: of.is_exact(),
            differs: (of.verdict != Verdict::Unknown).then_some(of.verdict == Verdict::Differs),
        }
    }
}

impl Plot {
    fn of(of: &Compared, axis: f64) -> Option<Plot> {
        let place = |ratio: f64| 50.0 + 50.0 * (ratio - 1.0) / axis;
        let [low, high, ratio] = [of.ratio_low_95?, of.ratio_high_95?, of.ratio?].map(place);
        let is_cut = low < 0.0 || high > 100.0;
        let [low, high, ratio] = [low, high, ratio].map(|at| at.clamp(0.0, 100.0));
        Some(Plot { low, high, ratio, is_cut })
    }
}

/// Smallest of [`AXES`] that contains the upper end of every second ratio's interval.
fn axis(diff: &Diff) -> f64 {
    let values = diff.sessions.iter().flat_map(|of| of.cycles.iter().chain(&of.events));
    let mut far: Vec<f64> = values.filter_map(|of| Some((of.ratio_high_95? - 1.0).abs())).collect();
    far.sort_by(f64::total_cmp);
    let most = far.get(far.len() / 2).copied().unwrap_or_default();
    AXES.into_iter().find(|axis| *axis >= most).unwrap_or(AXES[AXES.len() - 1])
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::Path};

    use scraper::{Html, Selector};
    use serde_json::Value;

    use super::*;
    use crate::page::tests::{HOSTILE, all, number, object, sample};

    #[test]
    fn the_page_of_two_runs_has_both_and_what_differs() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page/sample.json");
        let folder = env::temp_dir().join(format!("tally-diff-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut other = sample();
        let events = &mut other.first.as_mut().unwrap().events;
        events[0].estimate = events[0].estimate.map(|estimate| estimate + 1);
        let known = events[1].name.clone();
        events[1].name = HOSTILE.into();
        // A page with the object can be read as well as the object itself.
        let page = folder.join("b.html");
        crate::page::write(&other, &crate::page::Samples::default(), &page).unwrap();
        let diff = Diff::of(Run::read(&path).unwrap(), Run::read(&page).unwrap()).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let page = Html::parse_document(&super::render(&diff).unwrap());
        assert!(page.errors.is_empty(), "{:?}", page.errors);
        let object = object(&page);
        assert_eq!(object, serde_json::to_value(&diff).unwrap());
        let events = object["sessions"][0]["events"].as_array().unwrap();
        let verdict =
            |name: &str| &events.iter().find(|event| event["name"] == name).unwrap()["verdict"];
        let first = sample().first.unwrap().events[0].name.clone();
        assert_eq!([&*first, HOSTILE, &known].map(verdict), ["differs", "unknown", "unknown"]);
        assert_eq!(diff.differ(), 1, "all others are as they were");
        let rows = all(&page, "tr[data-name]");
        let cycles = object["sessions"][0]["cycles"].as_array().unwrap();
        assert_eq!(rows.len(), cycles.len() + events.len());
        let data = Selector::parse("data").unwrap();
        for (row, of) in rows.into_iter().zip(cycles.iter().chain(events)) {
            assert_eq!(row.attr("data-name"), of["name"].as_str());
            let values: Vec<f64> = row.select(&data).map(|it| number(it.attr("value"))).collect();
            let wanted = [&of["a"]["estimate"], &of["b"]["estimate"], &of["ratio"]];
            assert_eq!(values, wanted.into_iter().filter_map(Value::as_f64).collect::<Vec<_>>());
        }
    }
}
