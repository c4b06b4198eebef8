//! The study's picture: overheads by frequency, both on logarithmic scales.

use plotters::{coord::Shift, prelude::*};
use tally_abi::ExitStatus;

use crate::{Failure, Result};

/// Size in pixels.
const SIZE: (u32, u32) = (720, 440);

type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// A name, and overheads in percent by frequency in kHz.
pub(super) type Curve = (String, Vec<(f64, f64)>);

/// Draws the curves: an SVG document.
///
/// # Errors
/// The plotting library fails.
pub(super) fn draw(curves: &[Curve]) -> Result<String> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    let drawn = plot(&area, curves);
    drop(area);
    let failed = |error: Box<dyn std::error::Error>| {
        Failure::new(ExitStatus::HostError, format!("the picture cannot be drawn: {error}"))
    };
    drawn.map_err(failed)?;
    Ok(svg)
}

fn plot(area: &DrawingArea<SVGBackend<'_>, Shift>, curves: &[Curve]) -> Drawn {
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(area)
        .caption("What group switches cost, budget off", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d((1f64..1_000.0).log_scale(), (0.05f64..200.0).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE.mix(0.0))
        .x_desc("switches in a millisecond at 1.8 GHz (kHz)")
        .y_desc("overhead, %")
        .draw()?;
    for (index, (name, points)) in curves.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        chart
            .draw_series(
                LineSeries::new(points.iter().copied(), color.stroke_width(2)).point_size(3),
            )?
            .label(name.clone())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE)
        .border_style(BLACK.mix(0.3))
        .draw()?;
    area.present()?;
    Ok(())
}
