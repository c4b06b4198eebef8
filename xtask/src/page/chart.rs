//! Pictures as parts of a page: with a title and a description that are read aloud.

use minijinja::Value;
use serde::Serialize;

/// A picture of a page.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    /// Distinguishes it on the page.
    id: String,
    title: String,
    /// What it shows, for those who do not see it.
    description: String,
    /// Size in pixels, where it is not scaled.
    width: u32,
    height: u32,
    /// The elements in the document's root.
    body: Value,
}

impl Chart {
    /// The picture of the SVG document `svg`; none if it has no root of a known size.
    pub(super) fn of(svg: &str, id: String, title: String, description: String) -> Option<Chart> {
        let (_, rest) = svg.split_once("<svg")?;
        let (root, rest) = rest.split_once('>')?;
        let (body, _) = rest.rsplit_once("</svg>")?;
        let size = |name: &str| {
            let (_, value) = root.split_once(&format!(" {name}=\""))?;
            value.split_once('"')?.0.parse().ok()
        };
        let (width, height) = (size("width")?, size("height")?);
        let body = Value::from_safe_string(body.to_owned());
        Some(Chart { id, title, description, width, height, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_what_is_in_the_root() {
        let svg = "<?xml?>\n<svg width=\"9\" height=\"4\" viewBox=\"0 0 9 4\">\n<g/>\n</svg>\n";
        let chart = Chart::of(svg, "c".into(), String::new(), String::new()).unwrap();
        assert_eq!((chart.width, chart.height), (9, 4));
        assert_eq!(chart.body.as_str(), Some("\n<g/>\n"));
        assert!(Chart::of("<svg>", "c".into(), String::new(), String::new()).is_none());
    }
}
