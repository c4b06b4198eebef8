//! The study's picture: the effects of halts on the paper's events, by length and by number.

use plotters::prelude::*;
use xtask::{
    Result,
    picture::{Area, Drawn, drawn, legend},
};

use super::{
    experiment::Varied,
    paper::{FINDINGS, Finding},
    results::{EventResult, HaltingStudy, Point},
};

/// Size in pixels.
const SIZE: (u32, u32) = (960, 420);
/// Events that are drawn, by their names in the paper.
const DRAWN: [&str; 5] = [
    "global power events (cycles)",
    "data TLB misses",
    "ITLB misses",
    "L1 misses",
    "conditional branch mispredictions",
];

/// A name, and differences in percent of the unhalted count, by abscissa, with half widths.
type Curve = (&'static str, Vec<(f64, f64, f64)>);

/// Draws the first program's longest line of each experiment: an SVG document.
///
/// # Errors
/// The plotting library fails.
pub(super) fn draw(study: &HaltingStudy) -> Result<String> {
    drawn(SIZE, |area| plot(area, study))
}

fn plot(area: &Area<'_>, study: &HaltingStudy) -> Drawn {
    area.fill(&WHITE)?;
    let (left, right) = area.split_horizontally(SIZE.0 / 2);
    for (area, varied) in [(left, Varied::Length), (right, Varied::Frequency)] {
        panel(&area, study, varied)?;
    }
    area.present()?;
    Ok(())
}

/// The curves of one experiment, of the line with the most conditions.
fn curves(study: &HaltingStudy, varied: Varied) -> Vec<Curve> {
    let vendor = usize::from(study.pmu.starts_with("zen"));
    let lines = study.programs.first().into_iter().flat_map(|program| &program.lines);
    let line = lines
        .filter(|line| line.varied == varied)
        .max_by_key(|line| line.events.first().map_or(0, |event| event.points.len()));
    let of = |Finding { name, ours, .. }: &Finding| {
        let mut events = line?.events.iter();
        let result = events.find(|result| result.event == ours[vendor])?;
        Some((*name, points(result, varied)))
    };
    FINDINGS.iter().filter(|finding| DRAWN.contains(&finding.name)).filter_map(of).collect()
}

fn points(result: &EventResult, varied: Varied) -> Vec<(f64, f64, f64)> {
    let share = 100.0 / result.unhalted.max(1.0);
    let of = |point: &Point| {
        let x = match varied {
            Varied::Length => point.length_cycles as f64 / 1_000.0,
            Varied::Frequency => point.halts,
        };
        (x, share * point.difference.mean, share * point.difference.half_width_95)
    };
    result.points.iter().map(of).collect()
}

fn panel(area: &Area<'_>, study: &HaltingStudy, varied: Varied) -> Drawn {
    let curves = curves(study, varied);
    let all = || curves.iter().flat_map(|(_, points)| points);
    let right = all().map(|(x, ..)| *x).fold(1.0, f64::max);
    let high = all().map(|(_, y, half)| y + half).fold(1.0, f64::max);
    let low = all().map(|(_, y, half)| y - half).fold(-1.0, f64::min);
    let (caption, unit) = match varied {
        Varied::Length => ("By length", "thousand cycles of a halt"),
        Varied::Frequency => ("By number", "halts of a run"),
    };
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..1.05 * right, 1.1 * low..1.1 * high)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE.mix(0.0))
        .x_desc(unit)
        .y_desc("difference to the unhalted run, %")
        .draw()?;
    for (index, (name, points)) in curves.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        let line = points.iter().map(|(x, y, _)| (*x, *y));
        chart
            .draw_series(LineSeries::new(line, color.stroke_width(2)).point_size(3))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
        let bars = points.iter().map(|(x, y, half)| {
            PathElement::new([(*x, y - half), (*x, y + half)], color.stroke_width(1))
        });
        chart.draw_series(bars)?;
    }
    legend(&mut chart, SeriesLabelPosition::UpperLeft, WHITE.mix(0.8))?;
    Ok(())
}
