//! The roofline of a machine with a program's points, both axes logarithmic.

use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};
use tally_breakdown::Count;

use super::{Drawn, color, drawn};
use crate::Result;

/// Size of the picture in pixels.
const SIZE: (u32, u32) = (900, 560);

/// Logarithm of the distance of two points whose names could touch.
const NEAR: f64 = 0.8;

/// A limit of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Roof {
    /// The width of vectors, or the level of the memory hierarchy.
    pub name: String,
    /// Operations or bytes a cycle.
    pub value: f64,
}

impl Roof {
    /// The name of a roof of arithmetic.
    pub fn vectors(&self) -> String {
        match &*self.name {
            "scalar" => "scalar".into(),
            bits => format!("vectors of {bits} bits"),
        }
    }
}

/// A program's operations, beside the bytes of one level.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The level.
    pub level: String,
    /// Operations for each byte from the level.
    pub intensity: Count,
    /// Operations a cycle.
    pub rate: Count,
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Roofline {
    /// The program's name.
    pub program: String,
    /// The roofs of arithmetic.
    pub flops: Vec<Roof>,
    /// The roofs of loads, by level.
    pub loads: Vec<Roof>,
    /// The program's points.
    pub points: Vec<Point>,
}

impl Roofline {
    /// The highest roof of arithmetic.
    fn top(&self) -> Option<&Roof> {
        self.flops.iter().max_by(|a, b| a.value.total_cmp(&b.value))
    }

    /// The roof above a point, in operations a cycle: of its level's bytes, or of arithmetic if
    /// that is lower; and its name.
    pub fn roof_above(&self, point: &Point) -> (f64, String) {
        let arithmetic = self.top().map(|top| (top.value, top.vectors()));
        let loads = self.loads.iter().find(|roof| roof.name == point.level);
        let loads = loads.map(|roof| {
            (roof.value * point.intensity.estimate, format!("bytes from {}", roof.name))
        });
        let lower = arithmetic.into_iter().chain(loads).min_by(|a, b| a.0.total_cmp(&b.0));
        lower.unwrap_or((f64::INFINITY, "none".into()))
    }

    /// The picture as an SVG document.
    ///
    /// # Errors
    /// The plotting library fails.
    pub fn draw(&self) -> Result<String> {
        drawn(SIZE, |area| {
            area.fill(&WHITE)?;
            let (across, up) = self.ranges();
            let caption = format!("Roofs of the machine, and {}", self.program);
            let mut chart = ChartBuilder::on(area)
                .caption(caption, ("sans-serif", 18))
                .margin(12)
                .x_label_area_size(44)
                .y_label_area_size(64)
                .build_cartesian_2d((across.0..across.1).log_scale(), (up.0..up.1).log_scale())?;
            chart
                .configure_mesh()
                .light_line_style(WHITE.mix(0.0))
                .x_desc("floating-point operations for each byte from the level")
                .y_desc("floating-point operations a cycle")
                .draw()?;
            self.draw_roofs(&mut chart, across, up.1)?;
            self.draw_points(&mut chart)?;
            super::legend(&mut chart, SeriesLabelPosition::LowerRight, WHITE)?;
            area.present()?;
            Ok(())
        })
    }

    /// Draws the roofs of arithmetic, and those of loads up to the highest of the former, over the
    /// range `across`. `highest` is the end of the other axis.
    fn draw_roofs<X, Y>(
        &self,
        chart: &mut ChartContext<'_, SVGBackend<'_>, Cartesian2d<X, Y>>,
        across: (f64, f64),
        highest: f64,
    ) -> Drawn
    where
        X: Ranged<ValueType = f64>,
        Y: Ranged<ValueType = f64>,
    {
        let top = self.top().map_or(highest, |top| top.value);
        for roof in &self.flops {
            let ends = [(across.0, roof.value), (across.1, roof.value)];
            chart.draw_series([PathElement::new(ends, BLACK.mix(0.7).stroke_width(2))])?;
            // The roofs of loads are to the left.
            let at = (across.1 / 1.15, roof.value);
            let text = format!("{}: {:.1} flops a cycle", roof.vectors(), roof.value);
            let style = TextStyle::from(("sans-serif", 13).into_font());
            let style = style.pos(Pos::new(HPos::Right, VPos::Bottom));
            chart.draw_series([EmptyElement::at(at) + Text::new(text, (0, -2), style)])?;
        }
        for (index, roof) in self.loads.iter().enumerate() {
            let color = color(index);
            let end = (top / roof.value).min(across.1);
            let ends = [(across.0, roof.value * across.0), (end, roof.value * end)];
            chart
                .draw_series([PathElement::new(ends, color.stroke_width(2))])?
                .label(format!("{}: {:.1} bytes a cycle", roof.name, roof.value))
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 14, y)], color.stroke_width(2))
                });
        }
        Ok(())
    }

    /// Draws the points in the colours of their levels, with the intervals of both values.
    fn draw_points<X, Y>(
        &self,
        chart: &mut ChartContext<'_, SVGBackend<'_>, Cartesian2d<X, Y>>,
    ) -> Drawn
    where
        X: Ranged<ValueType = f64>,
        Y: Ranged<ValueType = f64>,
    {
        for (number, Point { level, intensity, rate }) in self.points.iter().enumerate() {
            let index = self.loads.iter().position(|roof| roof.name == *level);
            let color = color(index.unwrap_or(self.loads.len()));
            let (x, y) = (intensity.estimate, rate.estimate);
            let ends = |of: &Count| {
                [of.estimate - of.half_width_95, of.estimate + of.half_width_95]
                    .map(|end| end.max(of.estimate / 100.0))
            };
            let [left, right] = ends(intensity);
            let [low, high] = ends(rate);
            chart.draw_series([
                PathElement::new([(left, y), (right, y)], color.stroke_width(1)),
                PathElement::new([(x, low), (x, high)], color.stroke_width(1)),
            ])?;
            // Points of several levels can be at one place.
            let is_near = |of: &&Point| (of.intensity.estimate / x).ln().abs() < NEAR;
            let below = 14 * self.points[..number].iter().filter(is_near).count() as i32 - 5;
            chart.draw_series([Circle::new((x, y), 5, color.filled())])?;
            chart
                .draw_series([EmptyElement::at((x, y))
                    + Text::new(level.clone(), (8, below), ("sans-serif", 13))])?;
        }
        Ok(())
    }

    /// The ranges of both axes: where the roofs meet and the points are, and twice as far.
    fn ranges(&self) -> ((f64, f64), (f64, f64)) {
        let top = self.top().map_or(1.0, |top| top.value);
        let knees = self.loads.iter().map(|roof| top / roof.value);
        let across: Vec<f64> =
            self.points.iter().map(|point| point.intensity.estimate).chain(knees).collect();
        let least = across.iter().copied().fold(f64::INFINITY, f64::min).min(1.0) / 4.0;
        let most = across.iter().copied().fold(0.0, f64::max).max(1.0) * 4.0;
        let slowest = self.loads.iter().map(|roof| roof.value * least);
        let rates = self.points.iter().map(|point| point.rate.estimate).chain(slowest);
        let low = rates.filter(|rate| *rate > 0.0).fold(top, f64::min) / 2.0;
        ((least, most), (low, top * 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_on_the_axes() {
        let exact = |estimate, half_width_95| Count { estimate, half_width_95, truth: None };
        let roof = |name: &str, value| Roof { name: name.into(), value };
        let point = |intensity| Point {
            level: "memory".into(),
            intensity: exact(intensity, 0.4 * intensity),
            rate: exact(1e-3, 1e-4),
        };
        let picture = Roofline {
            program: "p".into(),
            flops: vec![roof("scalar", 2.0), roof("256", 16.0)],
            loads: vec![roof("L1", 64.0), roof("memory", 4.0)],
            points: vec![point(1e-3), point(1e4)],
        };
        let ((left, right), (low, high)) = picture.ranges();
        assert!(left < 1e-3 && right > 1e4 && low < 1e-3 && high > 16.0);
        let svg = picture.draw().unwrap();
        for text in ["vectors of 256 bits: 16.0", "memory: 4.0 bytes a cycle", "Roofs of the"] {
            assert!(svg.contains(text), "{svg}");
        }
        assert_eq!(svg.matches("<circle").count(), 2);
    }
}
