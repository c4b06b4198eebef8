//! Prints a report as a table of 80 columns.

use std::fmt::{self, Write};

use tally_abi::text::{Grouped, percent};
use tally_breakdown::added_lines;

use super::{
    EventReport, Kind, Report, SessionReport,
    cells::{Cells, TruthCells, engine_rows, estimate_and_bar},
    phases, relative_error,
    summary::{judged, write_judgement, write_summary},
};

/// Events that were not measured and are named without `-v`.
const MOST_UNMEASURED: usize = 6;
/// Text in place of a truth that the virtual PMU does not keep.
const NO_TRUTH: &str = "-";
/// Columns of an event's name; a longer name has its own line.
const NAME: usize = 27;

/// Part of a report that is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Everything.
    All,
    /// Where the cycles go, or the events where nothing says that; a line for the rest.
    Answer,
    /// A line for the comparison with the truth, as the program has printed its counts itself.
    Truth,
}

/// The report as text.
pub fn render(report: &Report, detail: Detail) -> String {
    let mut text = String::new();
    write_all(&mut text, report, detail).expect("writing to a string does not fail");
    text
}

fn write_all(text: &mut String, report: &Report, detail: Detail) -> fmt::Result {
    if detail == Detail::Truth {
        return write_judgement(text, report.sessions().map(|session| judged(&session.events)));
    }
    for session in report.sessions() {
        let pmu = report.pmu.as_deref().unwrap_or("no PMU");
        let program = &session.program;
        let number = match session.session {
            Some(number) if !report.others.is_empty() => format!(", session {number}"),
            _ => String::new(),
        };
        let job = session.job.map_or_else(String::new, |job| format!(", job {}", job.number));
        let seed = session.job.map(|job| job.seed).or(report.seed).unwrap_or_default();
        writeln!(text, "{program}{job}{number}: {pmu}, seed {seed}")?;
        write_cycles(text, session)?;
        if let Some(phases) = &session.phases {
            phases::render(text, phases)?;
        }
        if let Some(cycles @ 1..) = session.stopped_cycles {
            let cycles = Grouped(cycles);
            writeln!(text, "no truth: the program stopped its bank, for {cycles} cycles unseen")?;
        }
        if detail == Detail::All || session.breakdown.is_none() {
            write_events(text, &session.events, detail)?;
        }
        write_unit(text, &session.events)?;
        write_unobserved(text, &session.events)?;
        write_refined(text, &session.events)?;
        match detail {
            Detail::All => write_engine(text, session)?,
            _ => write_summary(text, session)?,
        }
    }
    Ok(())
}

/// Writes where the cycles of a session go.
fn write_cycles(text: &mut String, session: &SessionReport) -> fmt::Result {
    if let Some(breakdown) = &session.breakdown {
        write!(text, "{breakdown}")?;
    }
    if let Some(breakdown) = &session.kernel_breakdown {
        write!(text, "in ring 0, without the engine's interrupts:\n{breakdown}")?;
    }
    session.what_if.as_ref().map_or(Ok(()), |what_if| write!(text, "{what_if}"))
}

fn write_events(text: &mut String, events: &[EventReport], detail: Detail) -> fmt::Result {
    let (name, estimate, bar, share, truth) = ("event", "estimate", "± 95 %", "counted", "truth");
    writeln!(text, "{name:<NAME$} {estimate:>13} {bar:>8} {share:>7} {truth:>13} {:>6}", "error")?;
    if let Some(reason) = reason_of_all(events) {
        writeln!(text, "{} events, not measured: {reason}", events.len())?;
    } else {
        let measured = events.iter().filter(|event| event.reason.is_none());
        measured.clone().try_for_each(|event| write_event(text, event))?;
        write_unmeasured(text, events, detail)?;
    }
    let (within, judged) = judged(events);
    if judged > 0 {
        writeln!(text, "{within}/{judged} within ± 95 %; ! marks the others")?;
    }
    if events.iter().any(|event| event.lacks_truth && event.reason.is_none()) {
        writeln!(text, "{NO_TRUTH}: a truth is of one event, not of a sum of events or a mask")?;
    }
    write_likely_added(text, events)?;
    writeln!(text)
}

/// Writes the events to which interrupts are likely to have added a noticeable share.
fn write_likely_added(text: &mut String, events: &[EventReport]) -> fmt::Result {
    let share = |event: &EventReport| {
        event.added_share().map(|share| format!("{} {}", event.name, percent(share, false)))
    };
    let shares: Vec<String> = events.iter().filter_map(share).collect();
    added_lines(&shares, "").iter().try_for_each(|line| writeln!(text, "{line}"))
}

/// The reason why no event was measured, if all have the same and there are several events.
fn reason_of_all(events: &[EventReport]) -> Option<&str> {
    let [first, others @ ..] = events else { return None };
    let is_same = others.iter().all(|event| event.reason == first.reason);
    first.reason.as_deref().filter(|_| is_same && !others.is_empty())
}

/// Writes the events that were not measured, those with the same reason together.
fn write_unmeasured(text: &mut String, events: &[EventReport], detail: Detail) -> fmt::Result {
    let mut by_reason: Vec<(&str, Vec<String>)> = Vec::new();
    for event in events {
        let Some(reason) = event.reason.as_deref() else { continue };
        match by_reason.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, names)) => names.push(event.name.clone()),
            None => by_reason.push((reason, vec![event.name.clone()])),
        }
    }
    for (reason, names) in by_reason {
        if detail != Detail::All && names.len() > MOST_UNMEASURED {
            writeln!(text, "{} events not measured: {reason}", names.len())?;
            continue;
        }
        wrapped(&names).iter().try_for_each(|line| writeln!(text, "{line}"))?;
        writeln!(text, "  not measured: {reason}")?;
    }
    Ok(())
}

/// Lines of at most 80 columns with these names, unless one name is longer.
fn wrapped(names: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut() {
            Some(line) if line.chars().count() + name.chars().count() + 2 <= 79 => {
                *line += &format!(", {name}");
            }
            last => {
                last.into_iter().for_each(|line| line.push(','));
                lines.push(name.clone());
            }
        }
    }
    lines
}

fn write_event(text: &mut String, event: &EventReport) -> fmt::Result {
    let name = &event.name;
    if name.chars().count() > NAME {
        writeln!(text, "{name}")?;
        write!(text, "{:NAME$} ", "")?;
    } else {
        write!(text, "{name:<NAME$} ")?;
    }
    let Cells { estimate, bar, counted, truth } = Cells::of(event);
    write!(text, "{estimate:>13} {bar:>8} {counted:>7}")?;
    if let Some(TruthCells { truth, error, mark }) = truth {
        write!(text, " {truth:>13} {error:>6}{mark}")?;
    } else if event.lacks_truth {
        write!(text, " {NO_TRUTH:>13}")?;
    }
    writeln!(text)
}

/// Writes the counter unit's counts next to the events' estimates, if there are any.
fn write_unit(text: &mut String, events: &[EventReport]) -> fmt::Result {
    if events.iter().all(|event| event.unit.is_none()) {
        return Ok(());
    }
    let (estimate, bar, unit, truth) = ("estimate", "± 95 %", "unit", "truth");
    writeln!(text, "{:<NAME$} {estimate:>13} {bar:>8} {unit:>13} {truth:>13}", "event")?;
    for event in events {
        let number = |it: Option<u64>| it.map_or_else(|| "-".into(), |it| Grouped(it).to_string());
        let Cells { estimate, bar, .. } = Cells::of(event);
        let (unit, truth) = (number(event.unit), number(event.truth));
        let name = &event.name;
        if name.chars().count() > NAME {
            write!(text, "{name}\n{:<NAME$} ", "")?;
        } else {
            write!(text, "{name:<NAME$} ")?;
        }
        writeln!(text, "{estimate:>13} {bar:>8} {unit:>13} {truth:>13}")?;
    }
    let judged = events.iter().filter_map(|event| event.unit.zip(event.truth));
    let (equal, judged) = judged.fold((0, 0), |(equal, judged), (unit, truth)| {
        (equal + usize::from(unit == truth), judged + 1)
    });
    if judged > 0 {
        writeln!(text, "{equal}/{judged} counts of the unit are the truth")?;
    }
    writeln!(text)
}

/// Writes the numbers without interrupts, if there are any.
fn write_unobserved(text: &mut String, events: &[EventReport]) -> fmt::Result {
    if events.iter().all(|event| event.unobserved.is_none()) {
        return Ok(());
    }
    writeln!(text, "{:<42} {:>13} {:>8} {:>13}", "event", "unobserved", "± 95 %", "interrupts")?;
    for event in events {
        let name = &event.name;
        let Some(value) = event.unobserved else { continue };
        let (estimate, bar) = estimate_and_bar(value);
        let added = event.added().map_or_else(|| "-".into(), |added| percent(added, true));
        writeln!(text, "{name:<42} {estimate:>13} {bar:>8} {added:>13}")?;
    }
    let unknown = events.iter().filter(|event| event.unobserved.is_none()).count();
    if unknown > 0 {
        writeln!(text, "{unknown} events unknown: too few slices counted them; run it for longer")?;
    }
    writeln!(text)
}

/// Writes the refined estimates, if there are any.
fn write_refined(text: &mut String, events: &[EventReport]) -> fmt::Result {
    if events.iter().all(|event| event.refined.is_none()) {
        return Ok(());
    }
    writeln!(text, "{:<42} {:>13} {:>8} {:>13}", "event", "refined", "± 95 %", "error")?;
    for event in events.iter().filter(|event| event.kind == Kind::Estimated) {
        let name = &event.name;
        let Some(value) = event.refined else {
            writeln!(text, "{name:<42} {:>13}", "as above")?;
            continue;
        };
        let (estimate, bar) = estimate_and_bar(value);
        let error = event.truth.and_then(|truth| relative_error(value.estimate, truth as f64));
        let error = error.map_or_else(|| "-".into(), |error| percent(error, true));
        writeln!(text, "{name:<42} {estimate:>13} {bar:>8} {error:>13}")?;
    }
    writeln!(text)
}

fn write_engine(text: &mut String, session: &SessionReport) -> fmt::Result {
    for (what, value) in engine_rows(session) {
        writeln!(text, "{what:<NAME$} {value:>13}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use tally_abi::{Reading, Value, reading::Reason};

    /// Columns of a line.
    const COLUMNS: usize = 80;

    /// A table with these values and truths, each event named by its place.
    fn table(values: &[(Value, Option<u64>)]) -> String {
        let event = |(name, (value, truth)): (u8, &(Value, Option<u64>))| {
            let reading = Reading {
                value: *value,
                counted: 0,
                counted_cycles: 1,
                total_cycles: 8,
                slices: 3,
            };
            let report = EventReport::of(&char::from(name).to_string(), &reading, *truth);
            EventReport { lacks_truth: truth.is_none(), ..report }
        };
        let events: Vec<EventReport> = (b'A'..).zip(values).map(event).collect();
        let mut text = String::new();
        write_events(&mut text, &events, Detail::All).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text
    }

    #[test]
    fn each_kind_of_value_has_its_own_form() {
        let estimated = |estimate| Value::Estimated { estimate, stderr: 1.0, half_width_95: 20.0 };
        let wide = Value::Estimated { estimate: 1, stderr: 1.0, half_width_95: 12_345_678.0 };
        let reason = Reason::TooFewSlices;
        let text = table(&[
            (estimated(2000), Some(2010)),
            (estimated(2000), Some(3000)),
            (estimated(9_999_999_999), None),
            (estimated(0), Some(0)),
            (estimated(5), Some(0)),
            (estimated(4000), Some(2000)),
            (estimated(9_999_999_999), Some(9_999)),
            (wide, Some(1_000_000_000)),
            (Value::Exact { count: 7 }, Some(7)),
            (Value::NotMeasured { reason }, Some(7)),
        ]);
        expect![[r#"
            event                            estimate   ± 95 % counted         truth  error
            A                                   2,000    1.00%   12.5%         2,010 -0.50%
            B                                   2,000    1.00%   12.5%         3,000 -33.3%!
            C                           9,999,999,999    0.00%   12.5%             -
            D                                       0    ±20.0   12.5%             0 +0.00%
            E                                       5   400.0%   12.5%             0      -
            F                                   4,000    0.50%   12.5%         2,000  +100%!
            G                           9,999,999,999    0.00%   12.5%         9,999  +1e8%!
            H                                       1     1e9%   12.5% 1,000,000,000  -100%!
            I                                       7    exact   12.5%             7 +0.00%
            J
              not measured: fewer than four slices counted: run longer or use shorter slices
            4/8 within ± 95 %; ! marks the others
            -: a truth is of one event, not of a sum of events or a mask

        "#]]
        .assert_eq(&text);
    }

    /// A session with one event, whose name is too long for its column.
    fn session(number: u32) -> SessionReport {
        let value = Value::Estimated { estimate: 1_000, stderr: 5.0, half_width_95: 10.0 };
        let reading =
            Reading { value, counted: 0, counted_cycles: 1, total_cycles: 5, slices: 300 };
        SessionReport {
            program: "p".into(),
            session: Some(number),
            slices: Some(1_366),
            cycles_per_slice: Some(105_000.5),
            lengthened: Some(0),
            rounds: Some(273),
            pmis: Some(1_365),
            lost_pmis: Some(0),
            msr_accesses_per_switch: Some(5.81),
            cycles_per_switch: Some(2_100),
            engine_share: Some(0.01161),
            events: vec![EventReport::of("BR_INST_RETIRED.ALL_BRANCHES", &reading, Some(1_004))],
            ..SessionReport::default()
        }
    }

    #[test]
    fn a_report_has_a_title_a_table_and_the_engines_figures() {
        let (seed, pmu) = (Some(7), Some("P".into()));
        let first = Some(session(1));
        let report = Report { seed, pmu, first, ..Report::default() };
        expect![[r#"
            p: P, seed 7
            event                            estimate   ± 95 % counted         truth  error
            BR_INST_RETIRED.ALL_BRANCHES
                                                1,000    1.00%   20.0%         1,004 -0.40%
            1/1 within ± 95 %; ! marks the others

            slices                              1,366
            cycles per slice                  105,000
            lengthened for the budget               0
            rounds                                273
            PMIs                                1,365
            MSR accesses per switch               5.8
            instructions per switch      not measured
            cycles per switch                   2,100
            engine's share of the time          1.16%
            handler's share of cycles    not measured
        "#]]
        .assert_eq(&render(&report, Detail::All));
    }

    #[test]
    fn what_interrupts_are_likely_to_have_added_is_told_in_lines_of_80_columns() {
        let event = |(number, added): (u8, f64)| EventReport {
            likely_added: Some(added),
            name: format!("EVENT_WITH_A_NAME.{number}"),
            ..session(1).events[0].clone()
        };
        let events: Vec<_> = (0..).zip([200.0, 4.9, 5.0, 2_000.0, 0.0, 90.0]).map(event).collect();
        let mut text = String::new();
        write_likely_added(&mut text, &events).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        expect![[r#"
            interrupts are likely to have added up to: EVENT_WITH_A_NAME.0 20.0%,
              EVENT_WITH_A_NAME.2 0.50%, EVENT_WITH_A_NAME.3 100.0%,
              EVENT_WITH_A_NAME.5 9.00%
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn two_sessions_of_a_program_have_titles_of_their_own() {
        let (seed, pmu) = (Some(7), Some("P".into()));
        let (first, others) = (Some(session(1)), vec![session(2)]);
        let text = render(&Report { seed, pmu, first, others, ..Report::default() }, Detail::All);
        let titles: Vec<&str> = text.lines().filter(|line| line.contains("seed")).collect();
        assert_eq!(titles, ["p, session 1: P, seed 7", "p, session 2: P, seed 7"]);
    }
}
