//! The study's picture: overheads by frequency, both on logarithmic scales.

use plotters::prelude::*;
use xtask::{
    Result,
    picture::{Area, Drawn, drawn, legend},
};

/// Size in pixels.
const SIZE: (u32, u32) = (720, 440);

/// A name, and overheads in percent by frequency in kHz.
pub(super) type Curve = (String, Vec<(f64, f64)>);

/// Draws the curves: an SVG document.
///
/// # Errors
/// The plotting library fails.
pub(super) fn draw(curves: &[Curve]) -> Result<String> {
    drawn(SIZE, |area| plot(area, curves))
}

fn plot(area: &Area<'_>, curves: &[Curve]) -> Drawn {
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
    legend(&mut chart, SeriesLabelPosition::UpperLeft, WHITE)?;
    area.present()?;
    Ok(())
}
