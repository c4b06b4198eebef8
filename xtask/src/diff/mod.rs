//! `cargo xtask diff A B`: comparison of two runs, with the values that differ by more than their
//! intervals allow, or of the functions of two traces with samples.

mod cells;
mod compared;
mod functions;
mod matched;
mod measured;
mod page;

use std::{
    fmt::{self, Write},
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use clap::Args;
use tally_abi::{ExitStatus, record::MAGIC};

use self::cells::{range, ratio_text};
pub use self::{
    compared::{Compared, ComparedSession, Diff, Verdict},
    functions::TraceDiff,
    measured::{Measured, Run},
};
use crate::{Failure, Result, output, project, visible::visible};

/// Columns of an event's name; a longer name has its own line.
const NAME: usize = 27;

/// Options of `cargo xtask diff`.
#[derive(Args, Clone, Debug)]
pub struct DiffArgs {
    /// The first run: what `run --json` printed, a page of `run --report`, or a trace of `record`
    a: PathBuf,
    /// The second run, or trace
    b: PathBuf,
    /// The file of a program that was sampled in one of two traces; repeatable
    #[arg(long, value_name = "FILE")]
    symbols: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Write the comparison into this file too: a page for a browser, with the JSON object inside
    #[arg(long, value_name = "FILE", conflicts_with = "symbols")]
    report: Option<PathBuf>,
}

/// Reads the runs or traces and prints the comparison.
///
/// # Errors
/// A file cannot be read, or is not a run's; the runs have different numbers of sessions; the
/// traces have no samples of the same event; the page cannot be written.
pub fn main(args: &DiffArgs) -> Result<u8> {
    if [&args.a, &args.b].into_iter().any(|path| is_trace(path)) {
        if args.report.is_some() {
            let why = "--report: pages compare runs; of traces use --json";
            return Err(Failure::new(ExitStatus::Usage, why));
        }
        let diff = TraceDiff::read([&args.a, &args.b], &args.symbols)?;
        output::print(args.json, &diff, &diff.to_string())?;
        return Ok(0);
    }
    if !args.symbols.is_empty() {
        let why = "--symbols: names functions of traces, and neither file is one; leave it out";
        return Err(Failure::new(ExitStatus::Usage, why));
    }
    args.report.as_deref().map(project::check_writable).transpose()?;
    let diff = Diff::of(Run::read(&args.a)?, Run::read(&args.b)?)?;
    if let Some(path) = &args.report {
        project::write(path, page::render(&diff)?.as_bytes())?;
    }
    output::print(args.json, &diff, &render(&diff))?;
    Ok(0)
}

/// Returns whether a file is a trace, which its first bytes say.
fn is_trace(path: &Path) -> bool {
    let mut first = [0; MAGIC.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok()
        && first == *MAGIC.as_bytes()
}

/// The comparison as a table of 80 columns.
pub fn render(diff: &Diff) -> String {
    let mut text = String::new();
    write_all(&mut text, diff).expect("writing to a string does not fail");
    text
}

fn write_all(text: &mut String, diff: &Diff) -> fmt::Result {
    for (name, run) in [("A", &diff.a), ("B", &diff.b)] {
        writeln!(text, "{name}: {}: {}", run.file, run.title())?;
    }
    for session in &diff.sessions {
        writeln!(text)?;
        if !session.cycles.is_empty() {
            write_rows(text, "cycles in", &session.cycles)?;
            writeln!(text)?;
        }
        write_rows(text, "event", &session.events)?;
    }
    let (differ, estimated) = (diff.differ(), diff.estimated());
    writeln!(text, "{differ} of {} differ by more than the intervals allow: *", diff.compared())?;
    if estimated > 0 {
        let chance = (estimated as f64 / 20.0).ceil();
        writeln!(text, "of the {estimated} that are estimated, some {chance:.0} would by chance")?;
    }
    Ok(())
}

fn write_rows(text: &mut String, what: &str, rows: &[Compared]) -> fmt::Result {
    writeln!(text, "{what:<NAME$} {:>13} {:>13} {:>8} {:>14}", "A", "B", "B/A", "95 %")?;
    for row in rows {
        let name = &*visible(&row.name);
        if name.chars().count() > NAME {
            writeln!(text, "{name}")?;
            write!(text, "{:NAME$} ", "")?;
        } else {
            write!(text, "{name:<NAME$} ")?;
        }
        let [a, b] = [&row.a, &row.b].map(|of| of.as_ref().map_or("-".into(), Measured::text));
        let ratio = row.ratio.map_or("-".into(), ratio_text);
        let mark = if row.verdict == Verdict::Differs { "*" } else { "" };
        writeln!(text, "{a:>13} {b:>13} {ratio:>8} {:>14}{mark}", range(row))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tally_abi::{Reading, Value, reading::Reason};

    use super::*;
    use crate::report::{EventReport, Report, SessionReport};

    fn run(seed: u64, file: &str, values: &[(&str, Value)]) -> Run {
        let event = |(name, value): &(&str, Value)| {
            let (counted_cycles, total_cycles) = (1, 4);
            let reading =
                Reading { value: *value, counted: 0, counted_cycles, total_cycles, slices: 9 };
            EventReport::of(name, &reading, None)
        };
        let events = values.iter().map(event).collect();
        let first = SessionReport { program: "p".into(), events, ..SessionReport::default() };
        let (seed, pmu) = (Some(seed), Some("P".into()));
        let report = Report { seed, pmu, first: Some(first), ..Report::default() };
        Run::of(report, file.into())
    }

    fn estimated(estimate: u64, half_width_95: f64) -> Value {
        Value::Estimated { estimate, stderr: half_width_95 / 2.0, half_width_95 }
    }

    #[test]
    fn the_table_marks_what_differs() {
        let missing = Value::NotMeasured { reason: Reason::TooFewSlices };
        let a = [
            ("INSTRUCTIONS", Value::Exact { count: 5_000_000 }),
            ("BR_INST_RETIRED.ALL_BRANCHES", estimated(1_000_000, 20_000.0)),
            ("MISSES", estimated(40_000, 4_000.0)),
            ("RARE", estimated(10, 30.0)),
            ("NONE", missing),
            ("ONLY_A", estimated(3, 1.0)),
        ];
        let b = [
            ("INSTRUCTIONS", Value::Exact { count: 5_000_001 }),
            ("BR_INST_RETIRED.ALL_BRANCHES", estimated(1_010_000, 20_000.0)),
            ("MISSES", estimated(80_000, 5_000.0)),
            ("RARE", estimated(0, 30.0)),
            ("NONE", estimated(7, 1.0)),
        ];
        let diff = Diff::of(run(1, "a.json", &a), run(2, "b.html", &b)).unwrap();
        let text = render(&diff);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        expect![[r#"
            A: a.json: p, P, seed 1
            B: b.html: p, P, seed 2

            event                                   A             B      B/A           95 %
            INSTRUCTIONS                    5,000,000     5,000,001    1.000          exact*
            BR_INST_RETIRED.ALL_BRANCHES
                                            1,000,000     1,010,000    1.010   0.982..1.039
            MISSES                             40,000        80,000    2.000   1.782..2.258*
            RARE                                   10             0    0.000      unbounded
            NONE                                    -             7        -        unknown
            ONLY_A                                  3             -        -        unknown
            2 of 4 differ by more than the intervals allow: *
            of the 3 that are estimated, some 1 would by chance
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn runs_without_sessions_in_common_are_refused() {
        let a = run(1, "a", &[]);
        let none = Run::of(Report::default(), "b".into());
        let refused = Diff::of(a, none).unwrap_err();
        assert!(refused.message.starts_with("a has 1 sessions and b has 0"), "{refused}");
    }
}
