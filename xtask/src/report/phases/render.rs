//! Phases as text of 80 columns.

use std::fmt::{self, Write};

use tally_abi::text::percent;

use super::{PhaseReport, PhaseShare};

/// Columns of the strip.
const COLUMNS: usize = 80;
/// The error of the model's time from which on the model does not fit the program: that of
/// penalties which are not calibrated (docs/decisions/0098).
const MOST_ERROR: f64 = 0.2;

/// Writes the phases, the predictors and the strip.
///
/// # Errors
/// `text` fails.
pub fn render(text: &mut impl Write, report: &PhaseReport) -> fmt::Result {
    let PhaseReport { intervals, unit, classes, .. } = report;
    let (number, length) = (intervals.len(), report.interval_instructions);
    if report.is_too_short() {
        return writeln!(
            text,
            "too short for phases: {number} intervals of at least {length} instructions;\n\
             --phases={} has ten times as many",
            length / 10
        );
    }
    writeln!(
        text,
        "{number} intervals of at least {length} instructions; {} classes, unit {unit}",
        classes.word()
    )?;
    let (sure, error) = (percent(report.sure, false), percent(report.model_error, false));
    writeln!(
        text,
        "{} transitions, {} changes; sure {sure}; the model's time errs by {error}",
        report.transitions, report.changes
    )?;
    render_phases(text, report)?;
    writeln!(text, "{:<12} {:>8} {:>15}", "predictor", "right", "at transitions")?;
    for of in &report.predictors {
        let [right, at] = [of.right, of.right_at_transitions]
            .map(|share| share.map_or_else(|| "-".into(), |share| percent(share, false)));
        writeln!(text, "{:<12} {right:>8} {at:>15}", of.name.word())?;
    }
    if !report.missing.is_empty() {
        let missing: Vec<&str> = report.missing.iter().map(|kind| kind.word()).collect();
        writeln!(text, "no event counted for: {}", missing.join(", "))?;
    }
    writeln!(text, "{}\n", strip(report))
}

/// Writes a line for each phase.
fn render_phases(text: &mut impl Write, report: &PhaseReport) -> fmt::Result {
    let (phase, share, largest) = ("phase", "share", "largest cost");
    writeln!(
        text,
        "{phase:<8} {:>9} {share:>8} {:>8}  {largest:<24} {:>8}",
        "intervals", "CPI", "of it"
    )?;
    for of in &report.phases {
        let PhaseShare { phase, intervals, share, cpi, bottleneck, bottleneck_share } = of;
        let share = percent(*share, false);
        let cost = match bottleneck_share {
            above if *above > 1.0 => "> 100%".to_owned(),
            cost => percent(*cost, false),
        };
        let name = glyph(*phase);
        let word = bottleneck.word();
        writeln!(text, "{name:<8} {intervals:>9} {share:>8} {cpi:>8.3}  {word:<24} {cost:>8}")?;
    }
    if report.phases.iter().any(|of| of.bottleneck_share > 1.0) {
        writeln!(text, "> 100%: these events overlap, and the model adds up their penalties")?;
    }
    if report.model_error > MOST_ERROR {
        writeln!(
            text,
            "the model does not fit: costs may hide behind others; --breakdown measures"
        )?;
    }
    Ok(())
}

/// The letter of a phase in a strip of phases.
pub fn glyph(phase: u8) -> char {
    char::from_digit(phase.into(), 36).unwrap_or('?')
}

/// The phases over time, in at most 80 columns: each shows the most frequent phase of its
/// intervals.
fn strip(report: &PhaseReport) -> String {
    let number = report.intervals.len();
    let columns = number.min(COLUMNS);
    let column = |index: usize| {
        let own = &report.intervals[index * number / columns..(index + 1) * number / columns];
        let times = |phase: u8| own.iter().filter(|interval| interval.phase == phase).count();
        // The first of equally frequent phases.
        let most = own.iter().rev().max_by_key(|interval| times(interval.phase));
        most.map_or('?', |interval| glyph(interval.phase))
    };
    (0..columns).map(column).collect()
}

#[cfg(test)]
mod tests {
    use tally_abi::{PhaseConfig, phase::Bottleneck};

    use super::*;
    use crate::report::phases::tests::records;

    #[test]
    fn text_has_80_columns_and_a_strip() {
        let missing = vec![Bottleneck::ResourceContention];
        let report = PhaseReport::of(&records(), PhaseConfig::default(), missing);
        let mut text = String::new();
        render(&mut text, &report).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert!(text.contains("\n000111000111\n") && text.contains("port-contention"), "{text}");
        let long = PhaseReport { intervals: [&report.intervals[..]; 20].concat(), ..report };
        assert_eq!(strip(&long).len(), COLUMNS);
    }
}
