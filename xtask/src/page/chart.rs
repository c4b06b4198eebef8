//! Pictures as parts of a page: with a title and a description for screen readers.

use minijinja::Value;
use serde::Serialize;

use crate::picture::TimeLine;

/// Numbers of ticks below a large picture, and below a small one.
const TICKS: [u32; 2] = [7, 3];
/// Width in pixels from which on a picture is large.
const LARGE: u32 = 600;

/// A picture over time.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    /// Id of the picture on the page.
    id: String,
    title: String,
    /// Description of the content for screen readers.
    description: String,
    /// Size of the frame in pixels, if it is not scaled.
    width: u32,
    height: u32,
    /// The elements in the frame's root.
    frame: Value,
    /// Place of the plot in the frame: from the left, from above, width, height.
    place: [u32; 4],
    /// The elements in the plot's root, and the plot's width.
    plot: Value,
    plot_width: u32,
    /// The end of the time axis, in million cycles.
    end: f64,
    ticks: Vec<Tick>,
}

/// A tick below a picture.
#[derive(Debug, Serialize)]
struct Tick {
    /// Distance from the left in pixels.
    at: u32,
    text: String,
}

impl Chart {
    /// Makes the picture from these documents; `None` if one has no root of a known size.
    pub(super) fn of(
        line: &TimeLine,
        id: String,
        title: String,
        description: String,
    ) -> Option<Chart> {
        let (frame, [width, height]) = root(&line.frame)?;
        let (plot, _) = root(&line.plot)?;
        let number = TICKS[usize::from(width < LARGE)] - 1;
        let [left, _, place_width, _] = line.place;
        let tick = |at: u32| Tick {
            at: left + place_width * at / number,
            text: tick_text(line.end * f64::from(at) / f64::from(number)),
        };
        Some(Chart {
            id,
            title,
            description,
            width,
            height,
            frame,
            place: line.place,
            plot,
            plot_width: line.plot_width,
            end: line.end,
            ticks: (0..=number).map(tick).collect(),
        })
    }
}

/// The content of an SVG document's root, and the root's size.
fn root(svg: &str) -> Option<(Value, [u32; 2])> {
    let (_, rest) = svg.split_once("<svg")?;
    let (root, rest) = rest.split_once('>')?;
    let (body, _) = rest.rsplit_once("</svg>")?;
    let size = |name: &str| {
        let (_, value) = root.split_once(&format!(" {name}=\""))?;
        value.split_once('"')?.0.parse().ok()
    };
    Some((Value::from_safe_string(body.to_owned()), [size("width")?, size("height")?]))
}

/// Formats a number with four digits.
fn tick_text(number: f64) -> String {
    let whole = number.abs().max(1.0).log10().floor() as usize;
    format!("{number:.0$}", 3_usize.saturating_sub(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_what_is_in_the_roots() {
        let document = |body: &str| {
            format!("<?xml?>\n<svg width=\"90\" height=\"4\" viewBox=\"0 0 9 4\">{body}</svg>\n")
        };
        let line = TimeLine {
            frame: document("<g/>"),
            plot: document("<a/>"),
            place: [10, 1, 80, 3],
            plot_width: 800,
            end: 261.5,
        };
        let chart = Chart::of(&line, "c".into(), String::new(), String::new()).unwrap();
        assert_eq!((chart.width, chart.height), (90, 4));
        assert_eq!((chart.frame.as_str(), chart.plot.as_str()), (Some("<g/>"), Some("<a/>")));
        let ticks: Vec<_> = chart.ticks.iter().map(|tick| (tick.at, &*tick.text)).collect();
        assert_eq!(ticks, [(10, "0.000"), (50, "130.8"), (90, "261.5")]);
        let bad = TimeLine { plot: "<svg>".into(), ..line };
        assert!(Chart::of(&bad, "c".into(), String::new(), String::new()).is_none());
    }
}
