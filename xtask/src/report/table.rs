//! Prints a report as a table of 80 columns.

use std::fmt::{self, Write};

use tally_abi::text::Grouped;

use super::{EventReport, Kind, Report, SessionReport};

/// Columns of an event's name; a longer name has its own line.
const NAME: usize = 27;

/// The whole report.
pub fn render(report: &Report) -> String {
    let mut text = String::new();
    write_all(&mut text, report).expect("writing to a string does not fail");
    text
}

fn write_all(text: &mut String, report: &Report) -> fmt::Result {
    for session in report.sessions() {
        let pmu = report.pmu.as_deref().unwrap_or("no PMU");
        let program = &session.program;
        let number = match session.session {
            Some(number) if !report.others.is_empty() => format!(", session {number}"),
            _ => String::new(),
        };
        writeln!(text, "{program}{number}: {pmu}, seed {}", report.seed.unwrap_or_default())?;
        write_events(text, &session.events)?;
        write_engine(text, session)?;
    }
    Ok(())
}

fn write_events(text: &mut String, events: &[EventReport]) -> fmt::Result {
    let (name, estimate, bar, share, truth) = ("event", "estimate", "± 95 %", "counted", "truth");
    writeln!(text, "{name:<NAME$} {estimate:>13} {bar:>8} {share:>7} {truth:>13} {:>6}", "error")?;
    for event in events {
        write_event(text, event)?;
    }
    let outside = events.iter().filter(|event| event.is_within() == Some(false)).count();
    let judged = events.iter().filter(|event| event.is_within().is_some()).count();
    if judged > 0 {
        writeln!(text, "{}/{judged} within ± 95 %; ! marks the others", judged - outside)?;
    }
    writeln!(text)
}

fn write_event(text: &mut String, event: &EventReport) -> fmt::Result {
    let name = &event.name;
    if let Some(reason) = event.reason {
        return writeln!(text, "{name}\n  not measured: {reason}");
    }
    if name.chars().count() > NAME {
        writeln!(text, "{name}")?;
        write!(text, "{:NAME$} ", "")?;
    } else {
        write!(text, "{name:<NAME$} ")?;
    }
    let estimate =
        event.estimate.map_or_else(String::new, |estimate| Grouped(estimate).to_string());
    let bar = match event.kind {
        Kind::Exact => "exact".into(),
        _ => event.relative_half_width().map_or_else(|| "unknown".into(), |w| percent(w, false)),
    };
    let share = event.coverage.map_or_else(|| "unknown".into(), |share| percent(share, false));
    write!(text, "{estimate:>13} {bar:>8} {share:>7}")?;
    if let Some(truth) = event.truth {
        let error = event.relative_error().map_or_else(|| "-".into(), |error| percent(error, true));
        let mark = if event.is_within() == Some(false) { "!" } else { "" };
        write!(text, " {:>13} {error:>6}{mark}", Grouped(truth))?;
    }
    writeln!(text)
}

fn write_engine(text: &mut String, session: &SessionReport) -> fmt::Result {
    let count = |value: Option<u64>| {
        value.map_or_else(|| "not measured".into(), |value| Grouped(value).to_string())
    };
    let number = |value: Option<f64>| {
        value.map_or_else(|| "not measured".into(), |value| format!("{value:.1}"))
    };
    let share = session.engine_share.map_or_else(|| "not measured".into(), |s| percent(s, false));
    for (what, value) in [
        ("slices", count(session.slices)),
        ("lengthened for the budget", count(session.lengthened)),
        ("rounds", count(session.rounds)),
        ("PMIs", count(session.pmis)),
        ("MSR accesses per switch", number(session.msr_accesses_per_switch)),
        ("instructions per switch", number(session.instructions_per_switch)),
        ("engine's share of the time", share),
    ] {
        writeln!(text, "{what:<NAME$} {value:>13}")?;
    }
    Ok(())
}

/// A share as a percentage of at most six characters, with its sign.
pub fn percent(share: f64, signed: bool) -> String {
    let percent = share * 100.0;
    let most = if signed { 99.95 } else { 999.95 };
    match percent.abs() {
        size if size >= 9999.5 && signed => format!("{percent:+.0e}%"),
        size if size >= 99999.5 => format!("{percent:.0e}%"),
        size => {
            let decimals = usize::from(size < most) + usize::from(size < 9.995);
            if signed {
                format!("{percent:+.decimals$}%")
            } else {
                format!("{percent:.decimals$}%")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tally_abi::{Reading, Value, reading::Reason};

    fn check(value: Value, truth: Option<u64>, expect: &str) {
        let reading = Reading { value, counted_cycles: 1, total_cycles: 8, slices: 3 };
        let mut text = String::new();
        write_event(&mut text, &EventReport::of("E", &reading, truth)).unwrap();
        assert_eq!(text.split_whitespace().collect::<Vec<_>>().join(" "), expect);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn each_kind_of_value_has_its_own_form() {
        let estimated = |estimate| Value::Estimated { estimate, stderr: 1.0, half_width_95: 20.0 };
        check(estimated(2000), Some(2010), "E 2,000 1.00% 12.5% 2,010 -0.50%");
        check(estimated(2000), Some(3000), "E 2,000 1.00% 12.5% 3,000 -33.3%!");
        check(estimated(9_999_999_999), None, "E 9,999,999,999 0.00% 12.5%");
        check(estimated(0), Some(0), "E 0 unknown 12.5% 0 +0.00%");
        check(estimated(5), Some(0), "E 5 400.0% 12.5% 0 -");
        check(estimated(4000), Some(2000), "E 4,000 0.50% 12.5% 2,000 +100%!");
        check(estimated(9_999_999_999), Some(9_999), "E 9,999,999,999 0.00% 12.5% 9,999 +1e8%!");
        let long = Value::Estimated { estimate: 1, stderr: 1.0, half_width_95: 12_345_678.0 };
        check(long, Some(1_000_000_000), "E 1 1e9% 12.5% 1,000,000,000 -100%!");
        check(Value::Exact { count: 7 }, Some(7), "E 7 exact 12.5% 7 +0.00%");
        let reason = Reason::TooFewSlices;
        let expect =
            "E not measured: fewer than four slices counted: run longer or use shorter slices";
        check(Value::NotMeasured { reason }, Some(7), expect);
    }

    #[test]
    fn two_sessions_of_a_program_have_titles_of_their_own() {
        let of = |session| SessionReport {
            program: "p".into(),
            session: Some(session),
            ..SessionReport::default()
        };
        let (seed, pmu) = (Some(7), Some("P".into()));
        let one = Report { seed, pmu, first: Some(of(1)), others: vec![], panic: None, status: 0 };
        let two = Report { others: vec![of(2)], ..one.clone() };
        assert!(render(&one).starts_with("p: P, seed 7\n"));
        let text = render(&two);
        let titles: Vec<&str> = text.lines().filter(|line| line.contains("seed")).collect();
        assert_eq!(titles, ["p, session 1: P, seed 7", "p, session 2: P, seed 7"]);
    }

    #[test]
    fn percentages_have_six_characters() {
        for (share, signed, unsigned) in [
            (0.099_94, "+9.99%", "9.99%"),
            (0.999_4, "+99.9%", "99.9%"),
            (0.999_6, "+100%", "100.0%"),
            (9.9996, "+1000%", "1000%"),
            (99.994, "+9999%", "9999%"),
            (100.0, "+1e4%", "10000%"),
            (1e9, "+1e11%", "1e11%"),
        ] {
            assert_eq!((&*percent(share, true), &*percent(share, false)), (signed, unsigned));
            assert!(percent(-share, true).len() <= 6, "{share}");
        }
    }
}
