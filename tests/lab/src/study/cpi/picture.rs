//! The study's picture: a bar for each stack of each program, as in the paper's figure.

use plotters::prelude::*;
use xtask::{
    Result,
    picture::{Area, Drawn, color, drawn},
};

use super::{
    results::ProgramResult,
    stack::{COMPONENTS, Stack},
};

/// Pixels of a program's panel, and of the line with the components' names.
const PANEL: (u32, u32) = (300, 220);
const LEGEND_HEIGHT: u32 = 34;
const COLUMNS: usize = 4;
/// Names of the bars: the references, then the architectures.
const BARS: [&str; 8] = ["sim", "inv", "naive", "n-spec", "P5", "FMT", "sFMT", "+units"];

/// Draws all programs: an SVG document.
///
/// # Errors
/// The plotting library fails.
pub(super) fn draw(programs: &[ProgramResult]) -> Result<String> {
    let rows = programs.len().div_ceil(COLUMNS).max(1);
    let size = (PANEL.0 * COLUMNS as u32, PANEL.1 * rows as u32 + LEGEND_HEIGHT);
    drawn(size, |area| plot(area, programs, rows))
}

fn plot(area: &Area<'_>, programs: &[ProgramResult], rows: usize) -> Drawn {
    area.fill(&WHITE)?;
    let (legend, panels) = area.split_vertically(LEGEND_HEIGHT);
    for (index, component) in COMPONENTS.iter().enumerate() {
        let x = 20 + 90 * index as i32;
        let style = color(index).filled();
        legend.draw(&Rectangle::new([(x, 10), (x + 14, 24)], style))?;
        legend.draw(&Text::new(*component, (x + 20, 10), ("sans-serif", 14)))?;
    }
    for (panel, program) in panels.split_evenly((rows, COLUMNS)).iter().zip(programs) {
        bars(panel, program)?;
    }
    area.present()?;
    Ok(())
}

fn bars(area: &Area<'_>, program: &ProgramResult) -> Drawn {
    let stacks = [&program.reference, &program.inverse].into_iter();
    let stacks: Vec<&Stack> = stacks.chain(program.methods.iter().map(|m| &m.stack)).collect();
    let above = |stack: &&Stack| stack.0.iter().filter(|part| **part > 0.0).sum::<f64>();
    let below = |stack: &&Stack| stack.0.iter().filter(|part| **part < 0.0).sum::<f64>();
    let top = stacks.iter().map(above).fold(0.01, f64::max);
    let bottom = stacks.iter().map(below).fold(0.0, f64::min);
    let mut chart = ChartBuilder::on(area)
        .caption(&program.program, ("sans-serif", 15))
        .margin(6)
        .x_label_area_size(24)
        .y_label_area_size(36)
        .build_cartesian_2d(0.0..BARS.len() as f64, 1.05 * bottom..1.05 * top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .light_line_style(WHITE.mix(0.0))
        .y_labels(5)
        .draw()?;
    let width = chart.plotting_area().dim_in_pixel().0 as i32;
    for (place, name) in BARS.iter().enumerate() {
        let left = PANEL.0 as i32 - 6 - width;
        let x = left + width * place as i32 / BARS.len() as i32 + 3;
        area.draw(&Text::new(*name, (x, PANEL.1 as i32 - 24), ("sans-serif", 11)))?;
    }
    for (place, stack) in stacks.iter().enumerate() {
        let (mut high, mut low) = (0.0, 0.0);
        for (index, part) in stack.0.iter().enumerate() {
            let from = if *part < 0.0 { &mut low } else { &mut high };
            let (left, right) = (place as f64 + 0.12, place as f64 + 0.88);
            let corners = [(left, *from), (right, *from + part)];
            chart.draw_series([Rectangle::new(corners, color(index).filled())])?;
            *from += part;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::results::tests::result, *};

    #[test]
    fn each_program_has_a_bar_for_each_stack() {
        let svg = draw(&[result(), result()]).unwrap();
        assert!(svg.starts_with("<svg"));
        for text in ["base", "dtlb", "sFMT", "inv"] {
            assert!(svg.contains(text), "{text}");
        }
        let bars = svg.matches("<rect").count();
        assert!(bars >= 2 * BARS.len() * COMPONENTS.len(), "{bars}");
    }
}
