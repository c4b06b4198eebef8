//! Panels of curves side by side: the figures of a study.

use plotters::prelude::*;
use xtask::{
    Result,
    picture::{Area, Drawn, color, drawn, legend},
};

/// Size of a panel in pixels.
const SIZE: (u32, u32) = (560, 400);

/// A panel.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Title of the panel.
    pub caption: String,
    /// Labels of the axes: horizontal, vertical.
    pub axes: [String; 2],
    /// Names and points of the curves.
    pub curves: Vec<(String, Vec<(f64, f64)>)>,
    /// Whether points are marked.
    pub has_points: bool,
}

/// Draws panels side by side: an SVG document.
///
/// # Errors
/// The plotting library fails.
pub fn panels(panels: &[Panel]) -> Result<String> {
    let width = SIZE.0 * panels.len().max(1) as u32;
    drawn((width, SIZE.1), |area| {
        area.fill(&WHITE)?;
        let parts = area.split_evenly((1, panels.len().max(1)));
        panels.iter().zip(&parts).try_for_each(|(panel, part)| draw(part, panel))?;
        area.present()?;
        Ok(())
    })
}

fn draw(area: &Area<'_>, panel: &Panel) -> Drawn {
    let points = || panel.curves.iter().flat_map(|(_, points)| points);
    let right = points().map(|(x, _)| *x).fold(0.0, f64::max);
    let high = points().map(|(_, y)| *y).fold(0.0, f64::max);
    let end = |largest: f64, room: f64| if largest > 0.0 { room * largest } else { 1.0 };
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.caption, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..end(right, 1.02), 0.0..end(high, 1.25))?;
    chart
        .configure_mesh()
        .light_line_style(WHITE.mix(0.0))
        .x_desc(&panel.axes[0])
        .y_desc(&panel.axes[1])
        .draw()?;
    for (index, (name, points)) in panel.curves.iter().enumerate() {
        // The strongest colours come first, as the curves of one panel cross.
        let color = color([5, 3, 0, 1, 4, 2][index % 6]);
        let line = LineSeries::new(points.iter().copied(), color.stroke_width(1))
            .point_size(if panel.has_points { 3 } else { 0 });
        chart
            .draw_series(line)?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    legend(&mut chart, SeriesLabelPosition::UpperRight, WHITE.mix(0.8))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_panel_has_its_caption_and_its_curves() {
        let panel = |caption: &str, names: &[&str]| Panel {
            caption: caption.into(),
            axes: ["time".into(), "rate".into()],
            curves: names
                .iter()
                .map(|name| ((*name).into(), vec![(0.0, 1.0), (2.0, 3.0)]))
                .collect(),
            has_points: true,
        };
        let svg = panels(&[panel("one", &["full", "sampled"]), panel("two", &["full"])]).unwrap();
        assert!(svg.starts_with("<svg"));
        // Each text is on a separate line.
        let count = |text: &str| svg.lines().filter(|line| *line == text).count();
        assert_eq!(["one", "two", "full", "sampled"].map(count), [1, 1, 2, 1], "{svg}");
        assert!(panels(&[panel("none", &[])]).unwrap().contains("none"));
    }
}
