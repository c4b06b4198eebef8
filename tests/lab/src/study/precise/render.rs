//! The study as text of 80 columns.

use std::fmt::Write as _;

use super::results::{GOAL, PreciseStudy, Row};

/// Renders a line for each program, the means, and the goal.
pub(super) fn render(study: &PreciseStudy) -> String {
    let mut text = "Time at the wrong instruction, in percent of the cycles in ring 3\n".to_owned();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "{:18}{:^29}{:>9}{:>24}",
        "", "samples", "sampling", "a sample of every cycle"
    );
    let _ = writeln!(
        text,
        "{:<9}{:>7} {:>6}{:>8}{:>7}{:>9}{:>9}{:>8}{:>8}{:>8}",
        "program",
        "samples",
        "late",
        "precise",
        "+ br.",
        "exposed",
        "alone",
        "next",
        "last",
        "disp."
    );
    let machines = study.rows.chunk_by(|one, other| one.profile == other.profile);
    for (rows, mean) in machines.zip(&study.means) {
        let _ = writeln!(text, "{}", mean.profile);
        rows.iter().chain([mean]).for_each(|row| text += &line(row));
    }
    text += "papers             61.8     9.3                      1.6     9.3    55.4    53.1\n";
    let word = if study.holds { "pass" } else { "FAIL" };
    let _ = writeln!(
        text,
        "{word}: the goal is that 'exposed' has at most {:.0} % of the error of 'precise'",
        100.0 * GOAL
    );
    text
}

fn line(row: &Row) -> String {
    let Row { program, samples, late, precise, branches, exposed, sampling, .. } = row;
    let [late, precise, branches, exposed, sampling] =
        [late, precise, branches, exposed, sampling].map(|error| 100.0 * error);
    let [next, last, dispatched] =
        [row.next_to_retire, row.last_retired, row.dispatched].map(|error| 100.0 * error);
    format!(
        "{program:<9}{samples:>7} {late:>6.1}{precise:>8.1}{branches:>7.1}{exposed:>9.1}\
         {sampling:>9.1}{next:>8.1}{last:>8.1}{dispatched:>8.1}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::{super::results::tests::row, *};

    #[test]
    fn a_row_has_its_errors() {
        let text = render(&PreciseStudy::of(vec![row(0.4, 0.1)]));
        let expected =
            "lua         5000   70.0    40.0   40.0     10.0      5.0    40.0    50.0    60.0";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("pass: the goal"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
