//! Prints a study of errors in 80 columns.

use tally_abi::text::percent;

use super::judge::{Accuracy, ErrorStudy, FREQUENT, FrequentError, ProgramError, Refinement};

/// Columns of an event's name, and of a program's words.
const NAME: usize = 44;

/// The whole study.
pub(super) fn render(study: &ErrorStudy) -> String {
    let mut text = format!(
        "{:<NAME$} {:>10} {:>11} {:>12}\n",
        "event", "coverage", "mean error", "mean ± 95 %"
    );
    for event in &study.events {
        let within = if event.judged == 0 { "-".into() } else { percent(event.within, false) };
        let (error, width) =
            (share(event.mean_relative_error), share(event.mean_relative_half_width));
        text += &format!("{:<NAME$} {within:>10} {error:>11} {width:>12}\n", event.name);
    }
    if study.programs.len() > 1 {
        text += &render_programs(&study.programs);
    }
    text += &format!(
        "coverage of 95 % intervals: {} of {} values over {} seeds ({});\n\
         {} of {} estimated values; worst seed {}\n",
        (study.within * study.judged as f64).round(),
        study.judged,
        study.seeds,
        percent(study.within, false),
        percent(study.accuracy.estimated_within, false),
        study.accuracy.estimated,
        percent(study.worst_seed_within, false),
    );
    if study.not_judged > 0 {
        text += &format!("{} values without interval or truth\n", study.not_judged);
    }
    text += &render_frequent(&study.accuracy.frequent);
    text += &study.refinement.as_ref().map(render_refinement).unwrap_or_default();
    let verdict = if study.holds { "pass" } else { "FAIL" };
    let [least, most] = study.claimed.map(|share| 100.0 * share);
    text += &format!(
        "{verdict}: the claimed coverage of estimated values is {least:.0} to {most:.0} %, and of \
         each\nprogram's at least {:.0} %",
        100.0 * study.claimed_of_each
    );
    text
}

fn render_programs(programs: &[ProgramError]) -> String {
    let (coverage, error, width) = ("coverage", "median", "± 95 %");
    let mut text = format!("{:<NAME$} {coverage:>10} {error:>11} {width:>12}\n", "program");
    for ProgramError { program, accuracy } in programs {
        let words = if program.is_empty() { "the default job" } else { program };
        if words.len() > NAME {
            text += &format!("{words}\n{:NAME$}", "");
        } else {
            text += &format!("{words:<NAME$}");
        }
        let within = percent(accuracy.estimated_within, false);
        let (error, width) = (
            share(accuracy.frequent.median_relative_error),
            share(accuracy.frequent.median_relative_half_width),
        );
        text += &format!(" {within:>10} {error:>11} {width:>12}\n");
    }
    text
}

fn render_frequent(frequent: &FrequentError) -> String {
    format!(
        "{} estimated values above {FREQUENT} events: error median {}, 99th percentile {}; median \
         ± 95 % {}\n",
        frequent.values,
        share(frequent.median_relative_error),
        share(frequent.p99_relative_error),
        share(frequent.median_relative_half_width),
    )
}

fn render_refinement(Refinement { engine, refined }: &Refinement) -> String {
    let one = |what: &str, Accuracy { estimated, estimated_within, frequent }: &Accuracy| {
        let within = percent(*estimated_within, false);
        format!("{what} coverage {within} of {estimated};\n  {}", render_frequent(frequent))
    };
    let engine = one("values that can be refined, as the engine estimates them:", engine);
    engine + &one("refined:", refined)
}

fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| percent(value, false))
}
