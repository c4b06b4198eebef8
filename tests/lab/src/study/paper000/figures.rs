//! The study's pictures.

use xtask::{Result, picture};

use super::{
    results::{Figure5, RateOverTime, Results},
    sweep::{Point, Sweep},
};
use crate::study::panels::{Panel, panels};

/// The pictures of the parts that were run: names of files, and SVG documents.
///
/// # Errors
/// The plotting library fails.
pub(super) fn draw(results: &Results) -> Result<Vec<(&'static str, String)>> {
    let mut all = Vec::new();
    if let Some(figure) = &results.figure_5 {
        all.push(("paper000-figure5.svg", panels(&figure_5(figure))?));
    }
    if let Some(sweep) = &results.figure_6 {
        all.push(("paper000-figure6.svg", panels(&figure_6(sweep))?));
    }
    if let Some(study) = &results.figure_7 {
        let svg = picture::stack(&study.program, &study.intervals)?;
        all.push(("paper000-figure7.svg", svg));
    }
    Ok(all)
}

fn figure_5(figure: &Figure5) -> Vec<Panel> {
    let panel = |event: &RateOverTime| {
        let curve = |name: &str, rates: &[f64]| {
            let at = figure.middle_cycles.iter().map(|cycles| *cycles as f64 / 1e6);
            (name.to_owned(), at.zip(rates.iter().copied()).collect())
        };
        Panel {
            caption: format!("{} of {}", event.name, figure.program),
            axes: ["million cycles".into(), "events in a cycle".into()],
            curves: vec![
                curve("full", &event.full),
                curve("sampled, scaled", &event.sampled),
                curve("sampled, predicted", &event.predicted),
            ],
            has_points: false,
        }
    };
    figure.events.iter().map(panel).collect()
}

fn figure_6(sweep: &Sweep) -> Vec<Panel> {
    let panel = |what: &str, points: &[Point], at: fn(&Point) -> f64| {
        let curve = |index: usize, how: &str, of: fn(&Point) -> &[Option<f64>]| {
            let known = points.iter().filter_map(|point| {
                let distance = of(point).get(index).copied().flatten()?;
                Some((at(point), distance))
            });
            (format!("{}, {how}", sweep.events[index]), known.collect())
        };
        let curves = (0..sweep.events.len()).flat_map(|index| {
            [
                curve(index, "scaled", |point| &point.scaled),
                curve(index, "predicted", |point| &point.predicted),
            ]
        });
        Panel {
            caption: format!("Distance by {what}, {}", sweep.program),
            axes: [what.to_owned(), "distance, bits".into()],
            curves: curves.collect(),
            has_points: true,
        }
    };
    vec![
        panel("thousand cycles of a slice", &sweep.lengths, |point| {
            point.slice_cycles as f64 / 1e3
        }),
        panel("slices of a round", &sweep.ratios, |point| point.ratio as f64),
    ]
}
