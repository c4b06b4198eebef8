//! Pictures of a run, as SVG documents. Pure black and white mark the colours that a page changes
//! in dark mode.

mod roofline;
mod timeline;

use plotters::{coord::Shift, data::float::pretty_print_float, prelude::*};
use tally_abi::ExitStatus;

pub use self::roofline::{Point, Roof, Roofline};
pub use self::timeline::{Band, TimeLine, bands, phase_line, rate_line, stack_line};
use crate::{
    Failure, Result,
    report::{CyclePart, Interval},
};

/// Size of a stack over time in pixels.
const STACK: (u32, u32) = (900, 480);
/// Colours that colour-blind people can distinguish: those of Okabe and Ito, *Color Universal
/// Design* (2008), except black, then some of Tol, *Colour Schemes* (2021).
const COLORS: [RGBColor; 12] = [
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xf0, 0xe4, 0x42),
    RGBColor(0x99, 0x99, 0x99),
    RGBColor(0x88, 0x22, 0x55),
    RGBColor(0x44, 0xaa, 0x99),
    RGBColor(0xdd, 0xcc, 0x77),
    RGBColor(0x66, 0x55, 0xbb),
];

/// Result of drawing with the plotting library.
pub type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;
/// The drawing area.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The colour of the part at this index of a stack.
pub fn color(index: usize) -> RGBColor {
    COLORS[index % COLORS.len()]
}

/// Makes an SVG document of this size.
///
/// # Errors
/// The plotting library fails.
pub fn drawn(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn) -> Result<String> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let result = draw(&area);
    drop(area);
    let failed = |error: Box<dyn std::error::Error>| {
        Failure::new(ExitStatus::HostError, format!("the picture cannot be drawn: {error}"))
    };
    result.map_err(failed)?;
    Ok(svg)
}

/// Draws the names of a chart's curves, in a frame.
///
/// # Errors
/// The plotting library fails.
pub fn legend<'a, C: CoordTranslate>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, C>,
    position: SeriesLabelPosition,
    background: impl Into<ShapeStyle>,
) -> Drawn {
    chart
        .configure_series_labels()
        .position(position)
        .background_style(background)
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}

/// Selects parts of an interval: those of user mode, or of ring 0.
pub type PartsOf = fn(&Interval) -> &[CyclePart];

/// Selects the parts of user mode.
pub const USER: PartsOf = |interval| &interval.parts;
/// Selects the parts of ring 0.
pub const RING_0: PartsOf = |interval| &interval.kernel_parts;

/// The names of the parts, in the order of the pipeline.
pub fn part_names(intervals: &[Interval], parts: PartsOf) -> Vec<&str> {
    let known = intervals.iter().map(parts).find(|parts| !parts.is_empty());
    known.map(|known| known.iter().map(|part| &*part.name).collect()).unwrap_or_default()
}

/// Cycles of parts per instruction of user mode.
fn per_instruction(interval: &Interval, cycles: f64) -> f64 {
    cycles / interval.instructions.max(1) as f64
}

/// Maximum cycles of all parts of an interval, per instruction of user mode.
fn highest(intervals: &[Interval], parts: PartsOf) -> f64 {
    let all = |of: &Interval| parts(of).iter().map(|part| part.cycles).sum();
    intervals.iter().map(|of| per_instruction(of, all(of))).fold(0.0, f64::max)
}

/// Draws the cycles of a program by cause in each interval, and below them those of ring 0, if
/// known.
///
/// # Errors
/// The plotting library fails.
pub fn stack(program: &str, intervals: &[Interval]) -> Result<String> {
    let user = (format!("Where the cycles of {program} go, with 95 % bars"), USER);
    if part_names(intervals, RING_0).is_empty() {
        return drawn(STACK, |area| draw_stack(area, user, intervals));
    }
    let kernel = ("Its cycles in ring 0, for each instruction of user mode".into(), RING_0);
    drawn((STACK.0, 2 * STACK.1), |area| {
        let (above, below) = area.split_vertically(STACK.1);
        draw_stack(&above, user, intervals)?;
        draw_stack(&below, kernel, intervals)
    })
}

/// Draws stacks of cycles per instruction. Each part's error bar is to the right of that of the
/// part below.
#[expect(clippy::too_many_lines, reason = "one picture, drawn part by part")]
fn draw_stack(
    area: &Area<'_>,
    (caption, parts): (String, PartsOf),
    intervals: &[Interval],
) -> Drawn {
    let known = || intervals.iter().filter(|interval| !parts(interval).is_empty());
    let highest = highest(intervals, parts);
    let end = intervals.last().map_or(1, |last| last.start_cycles + last.cycles) as f64 / 1e6;
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..end * 1.5, 0.0..(highest * 1.1).max(0.1))?;
    chart
        .configure_mesh()
        .light_line_style(WHITE.mix(0.0))
        .x_desc("million cycles of the session")
        .x_label_formatter(&|x| {
            if *x <= end { pretty_print_float(*x, false) } else { String::new() }
        })
        .y_desc("cycles an instruction")
        .draw()?;
    let names = part_names(intervals, parts);
    for (index, name) in names.iter().enumerate() {
        let color = color(index);
        let below = |interval: &Interval| -> f64 {
            parts(interval)[..index].iter().map(|part| part.cycles).sum()
        };
        let side = |interval: &Interval| {
            let start = interval.start_cycles as f64 / 1e6;
            (start, start + interval.cycles as f64 / 1e6)
        };
        chart
            .draw_series(known().map(|interval| {
                let ((left, right), low) = (side(interval), below(interval));
                let high = low + parts(interval)[index].cycles;
                let [low, high] = [low, high].map(|end| per_instruction(interval, end));
                let corners = [(left, low), (right, high)];
                Rectangle::new(corners, color.filled())
            }))?
            .label(*name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 12, y + 4)], color.filled()));
        chart.draw_series(known().map(|interval| {
            let (left, right) = side(interval);
            let at = left + (right - left) * (index as f64 + 0.5) / names.len() as f64;
            let part = &parts(interval)[index];
            let ends = [part.low_95, part.high_95].map(|end| below(interval) + end);
            let ends = ends.map(|end| (at, per_instruction(interval, end)));
            PathElement::new(ends, BLACK.mix(0.6))
        }))?;
    }
    legend(&mut chart, SeriesLabelPosition::UpperRight, WHITE)
}

/// An event's rate in an interval.
#[derive(Clone, Copy, Debug)]
pub struct RateInterval {
    /// Core cycles of the session from its start to the interval.
    pub start_cycles: u64,
    /// Core cycles of the interval.
    pub cycles: u64,
    /// Events per 1,000 instructions; `None` if the event was not measured.
    pub rate: Option<f64>,
    /// Half the width of the rate's 95 % interval.
    pub half_width: f64,
}

/// The upper end of the axis of rates. A few wide intervals do not flatten the rates.
fn top(intervals: &[RateInterval]) -> f64 {
    let rates = || intervals.iter().filter_map(|of| Some((of.rate?, of.half_width)));
    let highest = rates().map(|(rate, _)| rate).fold(0.0, f64::max);
    let widest = rates().map(|(rate, half_width)| rate + half_width).fold(0.0, f64::max);
    match (highest, widest) {
        (_, 0.0) => 1.0,
        (0.0, _) => widest,
        _ => 1.05 * widest.min(3.0 * highest),
    }
}

/// A label of an axis of rates.
fn label(rate: f64) -> String {
    match rate {
        0.0 => "0".into(),
        0.0..0.1 => format!("{rate:.3}"),
        0.0..10.0 => format!("{rate:.1}"),
        _ => format!("{rate:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part whose bar reaches far beyond the axis is drawn up to its end.
    #[test]
    fn bars_stay_on_their_axes() {
        let cycles = 1_000_000.0;
        let part = CyclePart {
            name: "retiring".into(),
            metric: "".into(),
            level: 1,
            of_cycles: false,
            cycles,
            share: 1.0,
            formula: 1.0,
            cpi: 1.0,
            half_width_95: 40.0 * cycles,
            low_95: 0.0,
            high_95: 41.0 * cycles,
            truth: None,
        };
        let (parts, kernel_parts, events) = (vec![part], Vec::new(), Vec::new());
        let (start_cycles, cycles, instructions) = (0, 1_000_000, 1_000_000);
        let interval = Interval { start_cycles, cycles, instructions, parts, kernel_parts, events };
        let svg = stack("p", &[interval]).unwrap();
        let lines = svg.split("<polyline").skip(1).filter_map(|line| {
            line.split_once("points=\"")?.1.split_once('"').map(|(points, _)| points)
        });
        let points = lines.flat_map(str::split_whitespace);
        let heights = points.filter_map(|point| point.split_once(',')?.1.parse::<i32>().ok());
        let heights: Vec<i32> = heights.collect();
        assert!(heights.len() > 2, "{svg}");
        // The axis ends below the caption.
        assert!(heights.iter().all(|height| (20..STACK.1 as i32).contains(height)), "{heights:?}");
    }
}
