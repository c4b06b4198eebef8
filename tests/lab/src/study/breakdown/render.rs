//! Prints a study of breakdowns in 80 columns.

use super::{
    answer::Answer,
    judge::{Kind, LEAST_OF_FUNCTION, LEAST_SHARE, Row, Study},
};

/// Tolerance within which two pipelines agree on a part.
const LEAST_APART: f64 = 0.03;

/// Columns of a name.
const NAME: usize = 36;

/// The whole study.
pub(super) fn render(study: &Study) -> String {
    let mut text = format!(
        "where cycles go on {}, seeds {} to {}\n",
        study.pmu, study.seeds[0], study.seeds[1]
    );
    for kind in &study.kinds {
        text += &head(kind.kind);
        let of_kind = |row: &&Row| row.kind == kind.kind;
        for row in study.programs.iter().filter(of_kind) {
            text += &line(row, &row.name);
        }
        for row in study.parts.iter().filter(of_kind) {
            text += &line(row, &format!("  {}", row.name));
        }
        text += &line(kind, "all");
        text += &format!("within 2 points of the truth: {} of {}\n", kind.near, kind.judged);
    }
    text += &answers(study);
    let [least, most] = study.claimed.map(|share| 100.0 * share);
    study.failed.iter().for_each(|why| text += &format!("did not run: {why}\n"));
    let verdict = if study.holds && study.failed.is_empty() { "pass" } else { "FAIL" };
    text += &format!(
        "parts of at least {:.1} % of the run, of functions {:.1} %; half widths are of all cycles\n\
         {verdict}: the claimed coverage is {least:.0} to {most:.0} %\n",
        100.0 * LEAST_SHARE,
        100.0 * LEAST_OF_FUNCTION
    );
    text
}

/// The first-named and the most saving group of each run, and the parts' mean distance from
/// savings.
fn answers(study: &Study) -> String {
    let Some(first) = study.answers.first() else { return String::new() };
    let mut text =
        String::from("of each group its part, and what the program saves without it, %\n");
    text += &format!("{:<12}{:<9}{:<10}{:<9}", "program", "pipeline", "first", "largest");
    first.groups.iter().for_each(|(name, ..)| text += &format!("{name:>10}"));
    text += "\n";
    for answer in &study.answers {
        let Answer { program, pipeline, named, largest, .. } = answer;
        let first = match &**named {
            [] => "not known",
            [one] => one,
            _ => "one of 2",
        };
        let mark = if answer.is_right == Some(false) { "!" } else { " " };
        text += &format!("{program:<12}{pipeline:<9}{first:<10}{largest:<8}{mark}");
        for (_, share, saved) in &answer.groups {
            text += &format!("{:>5.1}{:>5.1}", 100.0 * share, 100.0 * saved);
        }
        text += "\n";
    }
    let count = |is_right| study.answers.iter().filter(|it| it.is_right == is_right).count();
    let (right, unknown, all) = (count(Some(true)), count(None), study.answers.len());
    for (at, (name, ..)) in first.groups.iter().enumerate() {
        let distance = |answer: &Answer| (answer.groups[at].1 - answer.groups[at].2).abs();
        let mean = study.answers.iter().map(distance).sum::<f64>() / all as f64;
        text += &format!("{name}: the part is {:.1} points from its saving\n", 100.0 * mean);
    }
    text += &pipelines(&study.answers);
    let told = all - unknown;
    text + &format!(
        "first named is what saves most, or within 2 points: {right} of {told}; not known: {unknown}\n"
    )
}

/// The distances of the same program's first-level parts in two pipelines.
fn pipelines(answers: &[Answer]) -> String {
    let mut furthest: Vec<(f64, String)> = Vec::new();
    for (at, one) in answers.iter().enumerate() {
        for other in &answers[at + 1..] {
            let is_same = one.program == other.program && one.pipeline != other.pipeline;
            if let Some((part, distance)) = one.furthest(other).filter(|_| is_same) {
                furthest.push((distance, format!("{}, {part}", one.program)));
            }
        }
    }
    furthest.sort_by(|one, other| other.0.total_cmp(&one.0));
    let Some((most, what)) = furthest.first() else { return String::new() };
    let near = furthest.iter().filter(|(distance, _)| *distance <= LEAST_APART).count();
    format!(
        "first level of two pipelines: within {:.0} points of {near} of {}, furthest {:.1} ({what})\n",
        100.0 * LEAST_APART,
        furthest.len(),
        100.0 * most
    )
}

fn head(kind: Kind) -> String {
    let what = match kind {
        Kind::Cycles => "parts of the cycles",
        Kind::Functions => "functions",
        Kind::OfFunctions => "parts of functions",
    };
    let (bars, held, width, error) = ("bars", "hold", "± 95 %", "error");
    format!("{what:<NAME$} {bars:>7} {held:>8} {width:>8} {error:>8} {:>7}\n", "spread")
}

fn line(row: &Row, name: &str) -> String {
    let name: String = name.chars().take(NAME).collect();
    let percent = |share: f64| format!("{:.2}%", 100.0 * share);
    format!(
        "{name:<NAME$} {:>7} {:>7.1}% {:>8} {:>8} {:>7.2}\n",
        row.judged,
        100.0 * row.within,
        percent(row.median_half_width),
        percent(row.median_error),
        row.spread
    )
}
