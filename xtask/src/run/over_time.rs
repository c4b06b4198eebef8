//! `cargo xtask run --over-time FILE`: where the cycles went in each interval of a run, as a table
//! or as a picture.

use std::path::Path;

use plotters::{coord::Shift, prelude::*};
use tally_abi::ExitStatus;

use crate::{
    Failure, Result, project,
    report::{Interval, Report, SessionReport},
};

/// Size of the picture in pixels.
const SIZE: (u32, u32) = (900, 480);

type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// What a file of this name has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Csv,
    Svg,
}

impl Format {
    /// By the name's end.
    ///
    /// # Errors
    /// It is neither.
    pub(super) fn of(path: &Path) -> Result<Format> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Ok(Format::Csv),
            Some("svg") => Ok(Format::Svg),
            _ => {
                let why = format!(
                    "--over-time {}: a table's name ends in .csv, a picture's in .svg",
                    path.display()
                );
                Err(Failure::new(ExitStatus::Usage, why))
            }
        }
    }
}

/// Writes the file, of the first session.
///
/// # Errors
/// It has no intervals, or the file cannot be written.
pub(super) fn write(report: &Report, path: &Path) -> Result<()> {
    let Some(session) = report.first.as_ref().filter(|first| !first.intervals.is_empty()) else {
        let why = "--over-time: no session has a complete trace: run one program, and longer";
        return Err(Failure::new(ExitStatus::BadTrace, why));
    };
    project::write(path, render(session, Format::of(path)?)?.as_bytes())
}

/// The content of the file.
fn render(session: &SessionReport, format: Format) -> Result<String> {
    let intervals = session.intervals.as_slice();
    match format {
        Format::Csv => Ok(table(intervals)),
        Format::Svg => picture(&session.program, intervals),
    }
}

/// The names of the parts, in the order of the pipeline.
fn names(intervals: &[Interval]) -> Vec<&'static str> {
    let known = intervals.iter().find(|interval| !interval.parts.is_empty());
    known.map(|known| known.parts.iter().map(|part| part.name).collect()).unwrap_or_default()
}

/// A line for each part of each interval, and one without a part for an interval that has none.
fn table(intervals: &[Interval]) -> String {
    let mut text = "start_cycles,cycles,instructions,part,part_cycles,half_width_95\n".to_owned();
    for interval in intervals {
        let Interval { start_cycles, cycles, instructions, parts } = interval;
        let begin = format!("{start_cycles},{cycles},{instructions}");
        if parts.is_empty() {
            text += &format!("{begin},,,\n");
        }
        for part in parts {
            let (name, part_cycles, bar) = (part.name, part.cycles, part.half_width_95);
            text += &format!("{begin},\"{name}\",{part_cycles:.0},{bar:.0}\n");
        }
    }
    text
}

fn picture(program: &str, intervals: &[Interval]) -> Result<String> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    let drawn = plot(&area, program, intervals);
    drop(area);
    let failed = |error: Box<dyn std::error::Error>| {
        Failure::new(ExitStatus::HostError, format!("the picture cannot be drawn: {error}"))
    };
    drawn.map_err(failed)?;
    Ok(svg)
}

/// Stacks of cycles an instruction; each part has its bar, at the right of the one below it.
#[expect(clippy::too_many_lines, reason = "one picture, drawn part by part")]
fn plot(area: &DrawingArea<SVGBackend<'_>, Shift>, program: &str, intervals: &[Interval]) -> Drawn {
    let cpi = |interval: &Interval, cycles: f64| cycles / interval.instructions.max(1) as f64;
    let known = || intervals.iter().filter(|interval| !interval.parts.is_empty());
    let highest = known().map(|known| cpi(known, known.cycles as f64)).fold(0.0, f64::max);
    let end = intervals.last().map_or(1, |last| last.start_cycles + last.cycles) as f64 / 1e6;
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(area)
        .caption(format!("Where the cycles of {program} go, with 95 % bars"), ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..end * 1.5, 0.0..(highest * 1.1).max(0.1))?;
    chart
        .configure_mesh()
        .light_line_style(WHITE.mix(0.0))
        .x_desc("million cycles of the session")
        .y_desc("cycles an instruction")
        .draw()?;
    let names = names(intervals);
    for (index, name) in names.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        let below = |interval: &Interval| -> f64 {
            interval.parts[..index].iter().map(|part| part.cycles).sum()
        };
        let side = |interval: &Interval| {
            let start = interval.start_cycles as f64 / 1e6;
            (start, start + interval.cycles as f64 / 1e6)
        };
        chart
            .draw_series(known().map(|interval| {
                let ((left, right), low) = (side(interval), below(interval));
                let high = low + interval.parts[index].cycles;
                let corners = [(left, cpi(interval, low)), (right, cpi(interval, high))];
                Rectangle::new(corners, color.filled())
            }))?
            .label(*name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 12, y + 4)], color.filled()));
        chart.draw_series(known().map(|interval| {
            let (left, right) = side(interval);
            let at = left + (right - left) * (index as f64 + 0.5) / names.len() as f64;
            let part = &interval.parts[index];
            let ends = [part.low_95, part.high_95];
            let ends = ends.map(|end| (at, cpi(interval, below(interval) + end)));
            PathElement::new(ends, BLACK.mix(0.6))
        }))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE)
        .border_style(BLACK.mix(0.3))
        .draw()?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::CyclePart;

    fn interval(start_cycles: u64, shares: [f64; 2]) -> Interval {
        let part = |(name, share): (&'static str, f64)| CyclePart {
            name,
            cycles: 1_000.0 * share,
            share,
            cpi: 2.0 * share,
            half_width_95: 50.0,
            low_95: 1_000.0 * share - 50.0,
            high_95: 1_000.0 * share + 50.0,
            truth: None,
        };
        let parts = ["work", "memory"].into_iter().zip(shares).map(part).collect();
        Interval { start_cycles, cycles: 1_000, instructions: 500, parts }
    }

    #[test]
    fn a_table_has_a_line_for_each_part_and_a_picture_a_box_and_a_bar() {
        let empty = Interval { parts: Vec::new(), ..interval(1_000, [0.0; 2]) };
        let intervals = vec![interval(0, [0.25, 0.75]), empty, interval(2_000, [0.5, 0.5])];
        let session = SessionReport { program: "p".into(), intervals, ..SessionReport::default() };
        let csv = render(&session, Format::Csv).unwrap();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines[1..3], ["0,1000,500,\"work\",250,50", "0,1000,500,\"memory\",750,50"]);
        assert_eq!(lines[3], "1000,1000,500,,,");
        let svg = render(&session, Format::Svg).unwrap();
        for index in 0..2 {
            let (r, g, b) = Palette99::pick(index).to_rgba().rgb();
            let color = format!("#{r:02X}{g:02X}{b:02X}");
            let boxes = svg.matches(&format!("fill=\"{color}\"")).count();
            assert_eq!(boxes, 3, "two intervals and the legend: {color} in {svg}");
        }
    }

    #[test]
    fn the_name_s_end_says_the_format() {
        assert_eq!(Format::of(Path::new("a.csv")).unwrap(), Format::Csv);
        assert_eq!(Format::of(Path::new("b/a.svg")).unwrap(), Format::Svg);
        assert!(Format::of(Path::new("svg")).is_err());
    }
}
