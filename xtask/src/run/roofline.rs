//! `run --roofline FILE`: the program's floating-point operations a cycle beside the machine's
//! roofs, as lines and as a picture.
//!
//! Source: Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009; with a point for each
//! level of the memory hierarchy, as LIKWID and Intel Advisor have it.

use std::path::{Path, PathBuf};

use clap::Args;
use tally_abi::ExitStatus;
use tally_breakdown::{Count, Intensity};

use crate::{
    Failure, Result,
    machine::{self, Artefacts, Request},
    output,
    picture::{Point, Roof, Roofline},
    project,
    report::Report,
};

/// The program that measures the roofs.
const ROOFS: &str = "roofs";

/// The option for the picture.
#[derive(Args, Clone, Debug)]
pub(super) struct RooflineArgs {
    /// Write a picture into this file (.svg): the program's floating-point operations for each byte
    /// and cycle beside the machine's roofs, which a second boot measures; print them too
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["check", "events", "breakdown", "explain", "repeat", "phases",
                                "jobs", "gdb"])]
    pub(super) roofline: Option<PathBuf>,
}

impl RooflineArgs {
    /// The events that are counted for the picture.
    pub(super) fn events(&self, signature: u32) -> Option<String> {
        self.roofline.as_ref()?;
        Some(Intensity::of(signature).ok()?.events().join(","))
    }

    /// Checks that the processor has the events, and that the file is a picture.
    ///
    /// # Errors
    /// The processor counts no floating-point operations, or the file's name has another end.
    pub(super) fn check(&self, signature: u32) -> Result<()> {
        let Some(path) = &self.roofline else { return Ok(()) };
        let refused = |status, why: String| {
            Err(Failure::new(status, format!("--roofline {}: {why}", path.display())))
        };
        if path.extension().is_none_or(|extension| extension != "svg") {
            return refused(ExitStatus::Usage, "a picture's name ends in .svg".into());
        }
        match Intensity::of(signature) {
            Ok(_) => Ok(()),
            Err(why) => refused(ExitStatus::NoBreakdown, why.into()),
        }
    }
}

/// Measures the roofs on the machine of `request`, prints how far from them the program was, and
/// writes the picture.
///
/// # Errors
/// The machine does not measure its roofs, the program was not counted, or the file cannot be
/// written.
pub(super) fn write(
    artefacts: &Artefacts,
    request: &Request,
    signature: u32,
    report: &Report,
    path: &Path,
) -> Result<()> {
    let bytes =
        Intensity::of(signature).map_err(|why| Failure::new(ExitStatus::NoBreakdown, why))?;
    let Some(session) = &report.first else {
        let why = "--roofline: the program was not counted";
        return Err(Failure::new(ExitStatus::TooShort, why));
    };
    let counts = |name: &str| session.events.iter().find(|event| event.name == name)?.count();
    let Some(points) = points(bytes, &counts) else {
        let why = "--roofline: an event was not measured: run the program for longer";
        return Err(Failure::new(ExitStatus::TooShort, why));
    };
    if points.iter().all(|point| point.rate.estimate <= 0.0) {
        let why = "--roofline: no floating-point operation was counted: the program has none, or ran \
                   too short";
        return Err(Failure::new(ExitStatus::TooShort, why));
    }
    let (flops, loads) = roofs(artefacts, request)?;
    let picture = Roofline { program: session.program.clone(), flops, loads, points };
    output::note(render(&picture).trim_end());
    project::write(path, picture.draw()?.as_bytes())
}

/// The program's points, one for each level of the hierarchy that gave it bytes; `None` if an event
/// was not measured.
fn points(bytes: &Intensity, counts: &dyn Fn(&str) -> Option<Count>) -> Option<Vec<Point>> {
    let rate = bytes.flops_a_cycle(counts)?;
    let mut points = Vec::new();
    for (level, intensity) in bytes.flops_a_byte(counts)? {
        if intensity.estimate.is_finite() {
            points.push(Point { level: level.to_owned(), intensity, rate });
        }
    }
    Some(points)
}

/// Boots the machine again with the program that measures it. Returns the roofs of arithmetic, in
/// operations a cycle, and of loads, in bytes a cycle.
fn roofs(artefacts: &Artefacts, request: &Request) -> Result<(Vec<Roof>, Vec<Roof>)> {
    let request = Request { command_line: format!("wire -- {ROOFS}"), ..request.clone() };
    let boot = machine::boot(artefacts, &request, &mut |_| {})?;
    let text = boot.transcript.text();
    let of_kind = |kind: &str| -> Vec<Roof> {
        let roof = |line: &str| {
            let mut words = line.split(' ');
            let (Some(first), Some(name), Some(value)) = (words.next(), words.next(), words.next())
            else {
                return None;
            };
            let value = value.parse().ok().filter(|value| *value > 0.0 && first == kind)?;
            Some(Roof { name: name.to_owned(), value })
        };
        text.lines().filter_map(roof).collect()
    };
    let (flops, loads) = (of_kind("flops"), of_kind("bytes"));
    if flops.is_empty() || loads.is_empty() {
        let why = format!("--roofline: the machine did not measure its roofs: {}", boot.outcome);
        return Err(Failure::new(ExitStatus::CheckFailed, why));
    }
    Ok((flops, loads))
}

/// The points as lines, each with the roof above it and the share of it that the program reached.
fn render(picture: &Roofline) -> String {
    let mut text = "floating-point operations (flops) beside the machine's roofs:\n".to_owned();
    for roof in &picture.flops {
        text += &format!("  {:>9.2} flops a cycle at most, {}\n", roof.value, roof.vectors());
    }
    for point in &picture.points {
        let Point { level, intensity, rate } = point;
        let (limit, name) = picture.roof_above(point);
        text += &format!(
            "  {:>9.4} ± {:.4} flops a byte from {level}, {:.4} ± {:.4} a cycle: {:.0} % of the \
             roof, {name}\n",
            intensity.estimate,
            intensity.half_width_95,
            rate.estimate,
            rate.half_width_95,
            100.0 * rate.estimate / limit,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_needs_events_of_arithmetic_and_its_name_an_end() {
        let args = |path: &str| RooflineArgs { roofline: Some(path.into()) };
        let (ice_lake, zen_4) = (0x606a6, 0xa10f11);
        assert_eq!(args("x.svg").check(ice_lake), Ok(()));
        assert_eq!(args("x.png").check(ice_lake).unwrap_err().status, ExitStatus::Usage);
        assert_eq!(args("x.svg").check(zen_4), Ok(()));
        assert_eq!(args("x.svg").check(0).unwrap_err().status, ExitStatus::NoBreakdown);
        assert!(args("x.svg").events(ice_lake).unwrap().contains("256B_PACKED_DOUBLE"));
        assert_eq!(RooflineArgs { roofline: None }.events(ice_lake), None);
    }

    #[test]
    fn a_point_is_below_the_lower_roof() {
        let exact = |estimate| Count { estimate, ..Count::default() };
        let roof = |name: &str, value| Roof { name: name.into(), value };
        let point = |intensity, rate| Point {
            level: "memory".into(),
            intensity: exact(intensity),
            rate: exact(rate),
        };
        let picture = Roofline {
            program: "p".into(),
            flops: vec![roof("scalar", 2.0), roof("256", 16.0)],
            loads: vec![roof("L1", 64.0), roof("memory", 4.0)],
            points: vec![point(0.25, 0.5), point(8.0, 4.0)],
        };
        let text = render(&picture);
        assert!(text.contains("50 % of the roof, bytes from memory"), "{text}");
        assert!(text.contains("25 % of the roof, vectors of 256 bits"), "{text}");
    }
}
