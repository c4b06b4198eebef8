//! Pictures in two layers: a frame with the vertical axis, and a plot over time, which a page can
//! stretch to zoom. The page adds the horizontal axis.

use std::ops::Range;

use plotters::{coord::types::RangedCoordf64, prelude::*};

use super::{
    Area, Drawn, PartsOf, RateInterval, color, drawn, highest, label, part_names, per_instruction,
    top,
};
use crate::{
    Result,
    report::{Interval, PhaseInterval},
};

/// The plotting area in an interval's coordinates: million cycles of the session, and a number.
type Plot<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Pixels of the plot per pixel of its place: the factor up to which zooming shows no steps.
const DETAIL: u32 = 16;
/// Size of a stack or of phases over time in pixels, and of a rate.
const LARGE: (u32, u32) = (900, 320);
const SMALL: (u32, u32) = (320, 112);
/// Pixels around a frame.
const MARGIN: u32 = 6;

/// A picture in two layers.
#[derive(Clone, Debug)]
pub struct TimeLine {
    /// The document with the vertical axis.
    pub frame: String,
    /// The document with the plot, which is as high as its place, but wider.
    pub plot: String,
    /// Place of the plot in the frame, in pixels: from the left, from above, width, height.
    pub place: [u32; 4],
    /// Width of the plot's document.
    pub plot_width: u32,
    /// The end of the time axis, in million cycles.
    pub end: f64,
}

/// A time span in a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// Start, in million cycles.
    pub start: f64,
    /// End, in million cycles.
    pub end: f64,
    /// The phase.
    pub phase: u8,
}

/// The phases of a session over its time. Consecutive intervals of the same phase are joined.
pub fn bands(intervals: &[PhaseInterval]) -> Vec<Band> {
    let (mut bands, mut start): (Vec<Band>, f64) = (Vec::new(), 0.0);
    for PhaseInterval { phase, cycles, .. } in intervals {
        let end = start + *cycles as f64 / 1e6;
        match bands.last_mut() {
            Some(last) if last.phase == *phase => last.end = end,
            _ => bands.push(Band { start, end, phase: *phase }),
        }
        start = end;
    }
    bands
}

fn layered(
    size: (u32, u32),
    (end, top, title): (f64, f64, &str),
    numbers: &dyn Fn(&f64) -> String,
    draw: impl FnOnce(&mut Plot<'_, '_>) -> Drawn,
) -> Result<TimeLine> {
    let end = if end > 0.0 { end } else { 1.0 };
    let axis = if title.is_empty() { 48 } else { 64 };
    let mut place = [0; 4];
    let frame = drawn(size, |area: &Area<'_>| {
        let mut chart = ChartBuilder::on(area)
            .margin(MARGIN)
            .margin_right(3 * MARGIN)
            .y_label_area_size(axis)
            .build_cartesian_2d(0.0..end, 0.0..top)?;
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh().light_line_style(WHITE.mix(0.0)).y_label_formatter(numbers);
        mesh.y_labels(if title.is_empty() { 3 } else { 8 }).y_desc(title).draw()?;
        let (x, y): (Range<i32>, Range<i32>) = chart.plotting_area().get_pixel_range();
        place = [x.start, y.start, x.end - x.start, y.end - y.start].map(|at| at.max(0) as u32);
        Ok(())
    })?;
    let plot_width = DETAIL * place[2];
    let plot = drawn((plot_width, place[3]), |area: &Area<'_>| {
        let mut chart = ChartBuilder::on(area).build_cartesian_2d(0.0..end, 0.0..top)?;
        draw(&mut chart)
    })?;
    Ok(TimeLine { frame, plot, place, plot_width, end })
}

fn side(start_cycles: u64, cycles: u64) -> (f64, f64) {
    let start = start_cycles as f64 / 1e6;
    (start, start + cycles as f64 / 1e6)
}

fn shade(chart: &mut Plot<'_, '_>, top: f64, bands: &[Band]) -> Drawn {
    chart.draw_series(bands.iter().map(|band| {
        let corners = [(band.start, 0.0), (band.end, top)];
        Rectangle::new(corners, color(band.phase.into()).mix(0.25).filled())
    }))?;
    Ok(())
}

fn unmeasured(
    chart: &mut Plot<'_, '_>,
    top: f64,
    sides: impl Iterator<Item = (f64, f64)>,
) -> Drawn {
    chart.draw_series(sides.map(|(left, right)| {
        Rectangle::new([(left, 0.0), (right, top)], BLACK.mix(0.12).filled())
    }))?;
    Ok(())
}

/// Draws the cycles by cause in each interval, in cycles per instruction of user mode. Each part's
/// error bar is to the right of that of the part below. Intervals that are not broken down are
/// shaded.
///
/// # Errors
/// The plotting library fails.
pub fn stack_line(intervals: &[Interval], parts: PartsOf) -> Result<TimeLine> {
    let cpi = per_instruction;
    let known = || intervals.iter().filter(|of| !parts(of).is_empty());
    let top = (highest(intervals, parts) * 1.1).max(0.001);
    let end = intervals.last().map_or(0.0, |last| side(last.start_cycles, last.cycles).1);
    let of_side = |of: &Interval| side(of.start_cycles, of.cycles);
    let digits = if top < 0.1 { 4 } else { 2 };
    let axis = |cpi: &f64| format!("{cpi:.digits$}");
    layered(LARGE, (end, top, "cycles an instruction"), &axis, |chart| {
        let missing = intervals.iter().filter(|of| parts(of).is_empty());
        unmeasured(chart, top, missing.map(of_side))?;
        let number = part_names(intervals, parts).len();
        for index in 0..number {
            let below =
                |of: &Interval| parts(of)[..index].iter().map(|part| part.cycles).sum::<f64>();
            chart.draw_series(known().map(|of| {
                let ((left, right), low) = (of_side(of), below(of));
                let high = low + parts(of)[index].cycles;
                let corners = [(left, cpi(of, low)), (right, cpi(of, high))];
                Rectangle::new(corners, color(index).filled())
            }))?;
            chart.draw_series(known().map(|of| {
                let (left, right) = of_side(of);
                let at = left + (right - left) * (index as f64 + 0.5) / number as f64;
                let ends = [parts(of)[index].low_95, parts(of)[index].high_95];
                let ends = ends.map(|end| (at, cpi(of, below(of) + end).min(top)));
                PathElement::new(ends, BLACK.mix(0.6))
            }))?;
        }
        Ok(())
    })
}

/// Draws the cycles per instruction of each interval whose phase is known, over the shades of the
/// phases.
///
/// # Errors
/// The plotting library fails.
pub fn phase_line(intervals: &[PhaseInterval]) -> Result<TimeLine> {
    let cpi = |of: &PhaseInterval| of.cycles as f64 / of.instructions.max(1) as f64;
    let top = 1.1 * intervals.iter().map(cpi).fold(0.1, f64::max);
    let bands = bands(intervals);
    let end = bands.last().map_or(0.0, |last| last.end);
    layered(LARGE, (end, top, "cycles an instruction"), &|cpi| format!("{cpi:.2}"), |chart| {
        shade(chart, top, &bands)?;
        let mut start = 0.0;
        let steps = intervals.iter().flat_map(|of| {
            let (left, right) = (start, start + of.cycles as f64 / 1e6);
            start = right;
            [(left, cpi(of)), (right, cpi(of))]
        });
        chart.draw_series([PathElement::new(steps.collect::<Vec<_>>(), BLACK.stroke_width(2))])?;
        Ok(())
    })
}

/// Draws an event's rate over time, with its error intervals, over the shades of the phases.
/// Intervals in which it was not measured are shaded grey.
///
/// # Errors
/// The plotting library fails.
pub fn rate_line(intervals: &[RateInterval], bands: &[Band]) -> Result<TimeLine> {
    let of_side = |of: &RateInterval| side(of.start_cycles, of.cycles);
    let known = || intervals.iter().filter_map(|of| Some((of_side(of), of.rate?, of.half_width)));
    let top = top(intervals);
    let end = intervals.last().map_or(0.0, |last| of_side(last).1);
    layered(SMALL, (end, top, ""), &|rate| label(*rate), |chart| {
        shade(chart, top, bands)?;
        unmeasured(chart, top, intervals.iter().filter(|of| of.rate.is_none()).map(of_side))?;
        let color = color(5);
        chart.draw_series(known().map(|((left, right), rate, width)| {
            let [low, high] = [rate - width, rate + width].map(|end| end.clamp(0.0, top));
            Rectangle::new([(left, low), (right, high)], color.mix(0.3).filled())
        }))?;
        chart.draw_series(known().map(|((left, right), rate, _)| {
            PathElement::new([(left, rate), (right, rate)], color.stroke_width(2))
        }))?;
        Ok(())
    })
}
