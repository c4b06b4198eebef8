//! `cargo xtask run --over-time FILE`: cycles by cause in each interval of a run, as a table or as
//! a picture.

use std::path::Path;

use tally_abi::ExitStatus;

use crate::{
    Failure, Result, picture, project,
    report::{Interval, Report, SessionReport},
};

/// Format of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Csv,
    Svg,
}

impl Format {
    /// The format for the extension of a file's name.
    ///
    /// # Errors
    /// The extension is neither.
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

/// Writes the file for the first session.
///
/// # Errors
/// The session has no intervals, or the file cannot be written.
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
        Format::Svg => picture::stack(&session.program, intervals),
    }
}

/// A line for each part of each interval, and one line for an interval without parts.
fn table(intervals: &[Interval]) -> String {
    let mut text =
        "start_cycles,cycles,instructions,part,part_cycles,half_width_95,ring\n".to_owned();
    for interval in intervals {
        let Interval { start_cycles, cycles, instructions, parts, kernel_parts, .. } = interval;
        let begin = format!("{start_cycles},{cycles},{instructions}");
        if parts.is_empty() && kernel_parts.is_empty() {
            text += &format!("{begin},,,,\n");
        }
        // The same words as in the virtual PMU's series.
        let rings = [("user", parts), ("kernel", kernel_parts)];
        for (ring, part) in rings.iter().flat_map(|(ring, of)| of.iter().map(move |it| (ring, it)))
        {
            let (name, part_cycles, bar) = (&part.name, part.cycles, part.half_width_95);
            text += &format!("{begin},\"{name}\",{part_cycles:.0},{bar:.0},{ring}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use plotters::style::RGBColor;

    use super::*;
    use crate::report::CyclePart;

    fn interval(start_cycles: u64, shares: [f64; 2]) -> Interval {
        let part = |(name, share): (&'static str, f64)| CyclePart {
            name: name.into(),
            metric: "".into(),
            level: 1,
            of_cycles: false,
            cycles: 1_000.0 * share,
            share,
            formula: share,
            cpi: 2.0 * share,
            half_width_95: 50.0,
            low_95: 1_000.0 * share - 50.0,
            high_95: 1_000.0 * share + 50.0,
            truth: None,
        };
        let parts = ["retiring", "memory"].into_iter().zip(shares).map(part).collect();
        let kernel_parts = Vec::new();
        Interval {
            start_cycles,
            cycles: 1_000,
            instructions: 500,
            parts,
            kernel_parts,
            events: Vec::new(),
        }
    }

    #[test]
    fn a_table_has_a_line_for_each_part_and_a_picture_a_box_and_a_bar() {
        let empty = Interval { parts: Vec::new(), ..interval(1_000, [0.0; 2]) };
        let intervals = vec![interval(0, [0.25, 0.75]), empty, interval(2_000, [0.5, 0.5])];
        let session = SessionReport { program: "p".into(), intervals, ..SessionReport::default() };
        let csv = render(&session, Format::Csv).unwrap();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(
            lines[1..3],
            ["0,1000,500,\"retiring\",250,50,user", "0,1000,500,\"memory\",750,50,user"]
        );
        assert_eq!(lines[3], "1000,1000,500,,,,");
        let svg = render(&session, Format::Svg).unwrap();
        for index in 0..2 {
            let RGBColor(r, g, b) = picture::color(index);
            let color = format!("#{r:02X}{g:02X}{b:02X}");
            let boxes = svg.matches(&format!("fill=\"{color}\"")).count();
            assert_eq!(boxes, 3, "two intervals and the legend: {color} in {svg}");
        }
        let both = |of: &Interval| Interval { kernel_parts: of.parts.clone(), ..of.clone() };
        let intervals = session.intervals.iter().map(both).collect();
        let session = SessionReport { intervals, ..session };
        let csv = render(&session, Format::Csv).unwrap();
        assert_eq!(csv.matches(",kernel\n").count(), 4, "{csv}");
        let both = render(&session, Format::Svg).unwrap();
        assert!(both.contains("in ring 0") && !svg.contains("in ring 0"), "{both}");
        let behind = both.split_once("</svg>").map(|(_, rest)| rest.trim());
        assert_eq!(behind, Some(""), "both pictures are in the document's root: {both}");
        assert!(both.matches("<rect").count() >= 2 * svg.matches("<rect").count(), "{both}");
    }

    #[test]
    fn the_name_s_end_says_the_format() {
        assert_eq!(Format::of(Path::new("a.csv")).unwrap(), Format::Csv);
        assert_eq!(Format::of(Path::new("b/a.svg")).unwrap(), Format::Svg);
        assert!(Format::of(Path::new("svg")).is_err());
    }
}
