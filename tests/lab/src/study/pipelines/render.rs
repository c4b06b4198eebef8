//! The study as text of 80 columns.

use std::fmt::Write as _;

use super::results::{Cycles, Errors, LARGEST, MEAN, PipelinesStudy, Row};

/// Number of causes that a row names.
const CAUSES: usize = 2;

/// Renders a line for each program and machine, and the errors with the goal.
pub(super) fn render(study: &PipelinesStudy) -> String {
    let mut text =
        "Cycles in ring 3 for 1,000 instructions, and where they differ most\n".to_owned();
    let _ = writeln!(
        text,
        "{:<8} {:<6} {:<15}{:>9}{:>7}{:>8}  causes of stalls",
        "program", "use", "machine", "interval", "ooo", "error"
    );
    study.rows.iter().for_each(|row| text += &line(row));
    let groups = [("tuning", &study.tuning), ("judging", &study.judging), ("all", &study.all)];
    for (name, Errors { rows, mean, largest, of }) in
        groups.into_iter().filter_map(|(name, errors)| Some((name, errors.as_ref()?)))
    {
        let [mean, largest] = [mean, largest].map(|error| 100.0 * error);
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{name:<8}{rows:>3} rows: mean {mean:.1} %, largest {largest:.1} %, {of}"
        );
    }
    let word = if study.holds { "pass" } else { "FAIL" };
    let [mean, largest] = [MEAN, LARGEST].map(|goal| 100.0 * goal);
    let _ = writeln!(
        text,
        "{word}: the goal, of all and of those that judge, is {mean:.0} % and {largest:.0} %"
    );
    text
}

fn line(row: &Row) -> String {
    let Row { program, tunes, profile, interval, ooo, error, .. } = row;
    let used_for = if *tunes { "tuning" } else { "judges" };
    let [cycles, others] = [interval, ooo].map(|one| per_thousand(one.cycles, one));
    let line = format!(
        "{program:<8} {used_for:<6} {profile:<15}{cycles:>9.0}{others:>7.0}{:>+6.1} %  {}",
        100.0 * error,
        largest_causes(interval, ooo)
    );
    line.trim_end().to_owned() + "\n"
}

/// The causes in which the pipelines differ most, in cycles per 1,000 instructions.
fn largest_causes(interval: &Cycles, ooo: &Cycles) -> String {
    let difference = |cause: &String| {
        let of = |one: &Cycles| per_thousand(one.causes.get(cause).copied().unwrap_or(0), one);
        of(interval) - of(ooo)
    };
    let mut all: Vec<(&String, f64)> =
        interval.causes.keys().map(|cause| (cause, difference(cause))).collect();
    all.sort_by(|(_, a), (_, b)| b.abs().total_cmp(&a.abs()));
    let words = all.iter().take(CAUSES).map(|(cause, cycles)| format!("{cause} {cycles:+.0}"));
    words.collect::<Vec<_>>().join(", ")
}

fn per_thousand(count: u64, of: &Cycles) -> f64 {
    1_000.0 * count as f64 / of.instructions.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::{super::results::tests::row, *};

    #[test]
    fn a_row_has_its_error_and_its_causes() {
        let study =
            PipelinesStudy::of(vec![row("deflate", true, 1_300, 1_000), row("xz", false, 9, 9)]);
        let text = render(&study);
        let expected = "deflate  tuning zen4                1300   1000 +30.0 %  chain +650\n";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("all       2 rows: mean 15.0 %, largest 30.0 %, deflate on zen4\n"));
        assert!(text.contains("FAIL: the goal"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
